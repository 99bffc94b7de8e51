-- name: evaluations_to_archive
-- Evaluations whose questions can be archived. Excluded are those used for comparison: the newest of each
-- configuration, the promoted ones, and the baselines of migrations.
-- params:  keep_days int
-- returns: id uuid, configuration text, created_at timestamptz, oldest first
-- index:   evaluation_results_latest_idx, evaluation_queries_pkey
SELECT e.id, e.configuration, e.created_at FROM evaluation_results AS e
WHERE
    e.tenant_id = current_tenant()
    AND e.created_at < now() - make_interval(days => :keep_days)
    AND EXISTS (SELECT FROM evaluation_queries AS q WHERE q.evaluation_id = e.id)
    AND EXISTS (
        SELECT FROM evaluation_results AS n
        WHERE n.tenant_id = e.tenant_id AND n.configuration = e.configuration AND n.created_at > e.created_at
    )
    AND NOT EXISTS (SELECT FROM promotions AS p WHERE p.evaluation_id = e.id)
    AND NOT EXISTS (SELECT FROM migration_batches AS b WHERE b.baseline_id = e.id)
ORDER BY e.created_at, e.id;

-- name: has_questions$
-- Whether the questions of an evaluation are stored, not archived.
-- params:  evaluation_id uuid
-- returns: bool
-- index:   evaluation_queries_pkey
SELECT count(*) > 0 AS has_questions FROM evaluation_queries AS q WHERE q.evaluation_id = :evaluation_id;

-- name: lock_evaluation^
-- Lock an evaluation until commit, so that two runs never archive its questions at once.
-- params:  evaluation_id uuid
-- returns: id uuid or nothing
-- index:   evaluation_results_pkey
SELECT e.id FROM evaluation_results AS e WHERE e.id = :evaluation_id FOR UPDATE;

-- name: stream_questions
-- Every question of an evaluation, without the texts that quote its notes: the notes may be purged.
-- params:  evaluation_id uuid
-- returns: question jsonb
-- index:   evaluation_queries_pkey
SELECT to_jsonb(q) - '{answer, unsupported_claims}'::text[] AS question FROM evaluation_queries AS q
WHERE q.evaluation_id = :evaluation_id ORDER BY q.golden_id;

-- name: delete_questions!
-- params:  evaluation_id uuid
DELETE FROM evaluation_queries AS q WHERE q.evaluation_id = :evaluation_id;
