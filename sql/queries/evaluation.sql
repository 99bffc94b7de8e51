-- name: insert_evaluation!
-- params:  evaluation jsonb (the columns of evaluation_results)
INSERT INTO evaluation_results
SELECT e.* FROM
    jsonb_populate_record(
        NULL::evaluation_results,
        :evaluation || jsonb_build_object('created_at', now(), 'tenant_id', current_tenant())
    ) AS e;

-- name: insert_evaluation_queries!
-- params:  questions jsonb (an array of rows with the columns of evaluation_queries)
INSERT INTO evaluation_queries
SELECT q.* FROM
    jsonb_array_elements(:questions) AS g (question),
    LATERAL jsonb_populate_record(
        NULL::evaluation_queries, g.question || jsonb_build_object('tenant_id', current_tenant())
    ) AS q;

-- name: list_evaluations
-- The newest evaluations, of some configurations or of all, of one configuration hash or of any, ties by id.
-- params:  configurations text[] or null, config_hash text or null, row_limit int
-- returns: the columns of evaluation_results
-- index:   evaluation_results_latest_idx
SELECT e.* FROM evaluation_results AS e
WHERE
    e.tenant_id = current_tenant()
    AND (:configurations::text[] IS NULL OR e.configuration = ANY(:configurations))
    AND (:config_hash::text IS NULL OR e.config_hash = :config_hash)
ORDER BY e.created_at DESC, e.id LIMIT :row_limit;

-- name: fetch_evaluation^
-- params:  evaluation_id uuid
-- returns: the columns of evaluation_results
SELECT e.* FROM evaluation_results AS e WHERE e.id = :evaluation_id AND e.tenant_id = current_tenant();

-- name: judged_among_few^
-- The hits of an evaluation among the first twentieth of the notes, where these are few.
-- params:  evaluation_id uuid, few int (as many are not few)
-- returns: notes bigint, cutoff int, hits bigint, queries bigint; nothing if there are more notes, or none
-- index:   evaluation_queries_pkey
WITH searched AS (
    SELECT count(*) AS notes, ceil(count(*) / 20.0)::int AS cutoff
    FROM (SELECT FROM notes AS n WHERE n.tenant_id = current_tenant() ORDER BY n.id LIMIT :few) AS first_notes
)

SELECT
    s.notes, s.cutoff,
    count(*) FILTER (WHERE q.first_relevant_rank <= s.cutoff) AS hits, count(*) AS queries
FROM searched AS s INNER JOIN evaluation_queries AS q ON q.evaluation_id = :evaluation_id
WHERE s.notes < :few
GROUP BY s.notes, s.cutoff;

-- name: latest_evaluations
-- The newest evaluation of every configuration.
-- returns: the columns of evaluation_results
SELECT DISTINCT ON (e.configuration) e.* FROM evaluation_results AS e WHERE e.tenant_id = current_tenant()
ORDER BY e.configuration, e.created_at DESC, e.id;

-- name: evaluations_outside_runs
-- The oldest evaluations after a given one that no Dagster run made, ties by id.
-- params:  after_at timestamptz, after_id uuid, until timestamptz (as settled_until returns it), row_limit int
-- returns: the columns of evaluation_results
SELECT e.* FROM evaluation_results AS e
WHERE
    e.tenant_id = current_tenant() AND e.run_id IS NULL
    AND (e.created_at, e.id) > (:after_at, :after_id) AND e.created_at < :until
ORDER BY e.created_at, e.id LIMIT :row_limit;
