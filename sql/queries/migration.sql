-- name: lock_batches!
-- Allow one batch to be judged at a time: the next one must know how much of the significance level it spent.
LOCK TABLE migration_batches IN SHARE ROW EXCLUSIVE MODE;

-- name: looks_so_far^
-- Interim quality tests of a migration, excluding this run's: how many, and how much of the significance level they
-- spent. The count starts again when a promotion or a rollback changes what serves, which is their reference.
-- params:  model text, chunking_hash text, run_id text
-- returns: recorded bigint, spent float8
WITH history AS (
    SELECT p.promoted_at, p.config_hash, lag(p.config_hash, 1, '') OVER (ORDER BY p.id) AS before
    FROM promotions AS p WHERE p.tenant_id = current_tenant()
)

SELECT count(*) AS recorded, coalesce(sum(b.level), 0) AS spent
FROM migration_batches AS b
WHERE
    b.tenant_id = current_tenant() AND b.model = :model AND b.chunking_hash = :chunking_hash AND b.run_id <> :run_id
    AND b.finished_at > coalesce(
        (SELECT max(h.promoted_at) FROM history AS h WHERE h.config_hash <> h.before), '-infinity'
    );

-- name: migrated_period^
-- The time around a batch in which every note is migrated to a model: between the nearest notes on both sides that wait
-- for chunks or for vectors. Notes that could not be indexed do not count.
-- params:  model text, month_start timestamptz, month_end timestamptz
-- returns: after timestamptz or null, until timestamptz or null
WITH waiting AS (
    SELECT n.created_at
    FROM notes AS n
    WHERE
        (n.expires_at IS NULL OR n.expires_at > now())
        AND (
            n.chunked_at IS NULL
            OR EXISTS (
                SELECT FROM pending_vectors AS p WHERE p.model = :model AND p.note_id = n.id
            )
        )
        AND NOT EXISTS (
            SELECT FROM indexing_failures AS f
            WHERE f.note_id = n.id AND (f.stage = 'chunk' OR (f.stage = 'embed_chunk' AND f.model = :model))
        )
)

SELECT
    (SELECT max(w.created_at) FROM waiting AS w WHERE w.created_at < :month_end) AS after,
    (SELECT min(w.created_at) FROM waiting AS w WHERE w.created_at >= :month_end) AS until;

-- name: golden_of_period
-- The golden questions with a relevant note in a period.
-- params:  created_from timestamptz or null, created_until timestamptz or null
-- returns: id uuid
SELECT g.id FROM golden_dataset AS g
WHERE g.tenant_id = current_tenant() AND EXISTS (
    SELECT FROM notes AS n
    WHERE
        n.id = ANY(g.relevant_note_ids)
        AND (:created_from::timestamptz IS NULL OR n.created_at >= :created_from)
        AND (:created_until::timestamptz IS NULL OR n.created_at < :created_until)
);

-- name: hits_of_evaluation
-- params:  evaluation_id uuid
-- returns: golden_id uuid, found bool
SELECT q.golden_id, coalesce(q.first_relevant_rank <= 10, FALSE) AS found
FROM evaluation_queries AS q WHERE q.evaluation_id = :evaluation_id;

-- name: upsert_batch!
-- Store a batch just measured. It replaces an earlier measurement of the same run, override included.
-- params:  the columns of migration_batches except finished_at and the override columns
INSERT INTO migration_batches (
    model, chunking_hash, run_id, months, finished_at, config_hash, golden_hash, total_queries, hit_rate_at_10, mrr,
    latency_p95_ms, found, missed, baseline_id, baseline_hit_rate_at_10, p_value, level, gate, reason, degraded_queries
)
VALUES (
    :model, :chunking_hash, :run_id, :months, clock_timestamp(), :config_hash, :golden_hash, :total_queries,
    :hit_rate_at_10, :mrr, :latency_p95_ms, :found, :missed, :baseline_id, :baseline_hit_rate_at_10, :p_value, :level,
    :gate, :reason, :degraded_queries
)
ON CONFLICT (model, run_id) DO UPDATE
    SET
        chunking_hash = excluded.chunking_hash, months = excluded.months, finished_at = excluded.finished_at,
        config_hash = excluded.config_hash, golden_hash = excluded.golden_hash,
        total_queries = excluded.total_queries, hit_rate_at_10 = excluded.hit_rate_at_10, mrr = excluded.mrr,
        latency_p95_ms = excluded.latency_p95_ms, found = excluded.found, missed = excluded.missed,
        baseline_id = excluded.baseline_id, baseline_hit_rate_at_10 = excluded.baseline_hit_rate_at_10,
        p_value = excluded.p_value, level = excluded.level, gate = excluded.gate, reason = excluded.reason,
        degraded_queries = excluded.degraded_queries,
        override_reason = NULL, overridden_at = NULL, override_run_id = NULL;

-- name: latest_batches
-- The latest batch of each given model under one chunking hash, oldest first.
-- params:  models text[], chunking_hash text
-- returns: the columns of migration_batches
-- index:   migration_batches_latest_idx
SELECT l.* FROM (
    SELECT DISTINCT ON (b.model) b.* FROM migration_batches AS b
    WHERE b.tenant_id = current_tenant() AND b.model = ANY(:models) AND b.chunking_hash = :chunking_hash
    ORDER BY b.model, b.finished_at DESC, b.id DESC
) AS l ORDER BY l.finished_at, l.id;

-- name: closed_batches
-- The last batch of each given model and tenant, if it closed the gate and nobody has overridden it. All tenants count,
-- because the next batch would change what each of them searches.
-- params:  models text[], chunking_hash text
-- returns: the columns of migration_batches, by model
-- index:   migration_batches_latest_idx
WITH latest AS (
    SELECT DISTINCT ON (b.tenant_id, b.model) b.* FROM migration_batches AS b
    WHERE b.model = ANY(:models) AND b.chunking_hash = :chunking_hash
    ORDER BY b.tenant_id, b.model, b.finished_at DESC, b.id DESC
)

SELECT l.* FROM latest AS l WHERE l.gate = 'closed' AND l.overridden_at IS NULL ORDER BY l.model, l.tenant_id;

-- name: override_batches!
-- params:  ids bigint[], override_reason text, run_id text
UPDATE migration_batches
SET override_reason = :override_reason, overridden_at = clock_timestamp(), override_run_id = :run_id
WHERE id = ANY(:ids);
