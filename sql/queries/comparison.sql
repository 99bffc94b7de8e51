-- name: find_evaluations
-- The evaluations that a name stands for: the newest of that configuration, or those whose id begins with it.
-- params:  name text, id_prefix text (of hex digits; empty: no id is meant)
-- returns: the columns of evaluation_results, at most 2
-- index:   evaluation_results_latest_idx
(
    SELECT e.* FROM evaluation_results AS e
    WHERE e.configuration = :name AND e.tenant_id = current_tenant() ORDER BY e.created_at DESC, e.id LIMIT 1
)
UNION ALL
(
    SELECT e.* FROM evaluation_results AS e
    WHERE
        e.tenant_id = current_tenant() AND :id_prefix <> '' AND starts_with(replace(e.id::text, '-', ''), :id_prefix)
        AND NOT EXISTS (SELECT FROM evaluation_results AS n WHERE n.configuration = :name AND n.tenant_id = e.tenant_id)
    ORDER BY e.id LIMIT 2
);

-- name: evaluated_questions
-- Every question of the given evaluations.
-- params:  evaluation_ids uuid[]
-- returns: evaluation_id uuid, golden_id uuid, query text, category text, relevant_note_ids uuid[],
--          retrieved_note_ids uuid[], first_relevant_rank int or null, metrics jsonb, error jsonb or null,
--          places jsonb, answer_metrics jsonb or null, difficulty int, latency_ms double precision
-- index:   evaluation_queries_pkey
SELECT
    q.evaluation_id, q.golden_id, q.query, q.category, q.relevant_note_ids, q.retrieved_note_ids, q.first_relevant_rank,
    q.metrics, q.error, q.places, q.answer_metrics, q.difficulty, q.latency_ms
FROM evaluation_queries AS q INNER JOIN evaluation_results AS e ON e.id = q.evaluation_id
WHERE q.evaluation_id = ANY(:evaluation_ids) AND e.tenant_id = current_tenant()
ORDER BY q.evaluation_id, q.golden_id;

-- name: name_notes
-- Names of the given notes; deleted ones are left out.
-- params:  note_ids uuid[]
-- returns: id uuid, name text (the external id, else the id)
-- index:   notes_pkey
SELECT n.id, coalesce(n.external_id, n.id::text) AS name
FROM notes AS n WHERE n.id = ANY(:note_ids) AND n.tenant_id = current_tenant();
