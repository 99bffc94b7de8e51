-- name: insert_retrievals!
-- Write questions of a process in one statement.
-- params:  tenant text, process uuid, caches jsonb, pool jsonb, records text (a JSON array of the other columns)
INSERT INTO retrieval_log (
    tenant_id, answered_at, process, config_hash, strategy, model, latency_ms, stage_latencies, results, degraded,
    failed, cached, caches, pool
)
SELECT
    :tenant, r.answered_at, :process, r.config_hash, r.strategy, r.model, r.latency_ms, r.stage_latencies, r.results,
    r.degraded, r.failed, r.cached, :caches, :pool
FROM jsonb_to_recordset(:records::jsonb) AS r (
    answered_at timestamptz, config_hash text, strategy text, model text, latency_ms float8, stage_latencies jsonb,
    results int, degraded text[], failed bool, cached bool
);

-- name: delete_old_retrievals!
-- params:  days int
-- index:   retrieval_log_answered_idx
DELETE FROM retrieval_log AS r WHERE r.answered_at < now() - make_interval(days => :days);

-- name: retrievals_by_day
-- The counts and latencies of the questions of each of the last days, latest day first.
-- params:  tenant text, days int
-- returns: day text (YYYY-MM-DD, UTC), questions bigint, cached bigint, degraded bigint, failed bigint, p50_ms float8,
--          p95_ms float8
-- index:   retrieval_log_answered_idx
SELECT
    to_char(r.answered_at AT TIME ZONE 'UTC', 'YYYY-MM-DD') AS day, count(*) AS questions,
    count(*) FILTER (WHERE r.cached) AS cached, count(*) FILTER (WHERE r.degraded <> '{}') AS degraded,
    count(*) FILTER (WHERE r.failed) AS failed,
    percentile_disc(0.5) WITHIN GROUP (ORDER BY r.latency_ms) AS p50_ms,
    percentile_disc(0.95) WITHIN GROUP (ORDER BY r.latency_ms) AS p95_ms
FROM retrieval_log AS r
WHERE r.tenant_id = :tenant AND r.answered_at >= now() - make_interval(days => :days)
GROUP BY day ORDER BY day DESC;

-- name: retrieval_stages
-- The latencies of each stage of the questions of the last days.
-- params:  tenant text, days int
-- returns: stage text, count bigint, p50_ms float8, p95_ms float8, the slowest first
-- index:   retrieval_log_answered_idx
SELECT
    s.key AS stage, count(*) AS count,
    percentile_disc(0.5) WITHIN GROUP (ORDER BY s.value::float8) AS p50_ms,
    percentile_disc(0.95) WITHIN GROUP (ORDER BY s.value::float8) AS p95_ms
FROM retrieval_log AS r CROSS JOIN jsonb_each_text(r.stage_latencies) AS s
WHERE r.tenant_id = :tenant AND r.answered_at >= now() - make_interval(days => :days)
GROUP BY s.key ORDER BY p50_ms DESC, s.key;

-- name: retrieval_caches
-- Hits and misses of the caches of the processes that answered in the last days, each since its start.
-- params:  tenant text, days int
-- returns: cache text, hits bigint, misses bigint
-- index:   retrieval_log_answered_idx
SELECT c.cache, sum(c.hits)::bigint AS hits, sum(c.misses)::bigint AS misses
FROM (
    SELECT r.process, s.key AS cache, max((s.value -> 0)::bigint) AS hits, max((s.value -> 1)::bigint) AS misses
    FROM retrieval_log AS r CROSS JOIN jsonb_each(r.caches) AS s
    WHERE r.tenant_id = :tenant AND r.answered_at >= now() - make_interval(days => :days)
    GROUP BY r.process, s.key
) AS c
GROUP BY c.cache ORDER BY c.cache;

-- name: retrieval_pools
-- The connections of the processes that answered last, as of their last question.
-- params:  tenant text, days int
-- returns: pool jsonb, latest first, at most 5
-- index:   retrieval_log_answered_idx
SELECT p.pool
FROM (
    SELECT DISTINCT ON (r.process) r.pool, r.answered_at
    FROM retrieval_log AS r
    WHERE r.tenant_id = :tenant AND r.answered_at >= now() - make_interval(days => :days)
    ORDER BY r.process, r.answered_at DESC
) AS p
ORDER BY p.answered_at DESC LIMIT 5;
