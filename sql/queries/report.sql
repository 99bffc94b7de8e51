-- name: evaluation_details
-- The figures of the given evaluations that gates do not need.
-- params:  evaluation_ids uuid[]
-- returns: id uuid, stage_latencies jsonb, breakdown jsonb; faithfulness double precision,
--          answer_relevance double precision, judge text, judge_model text, judge_version text, answerer text,
--          judged_queries int, judge_failures int, null if nothing was judged
-- index:   evaluation_results_pkey
SELECT
    e.id, e.stage_latencies, e.breakdown, e.faithfulness, e.answer_relevance, e.judge, e.judge_model,
    e.judge_version, e.answerer, e.judged_queries, e.judge_failures
FROM evaluation_results AS e WHERE e.id = ANY(:evaluation_ids) AND e.tenant_id = current_tenant();

-- name: history_of_configurations
-- The newest row_limit evaluations of the given configurations, oldest first.
-- params:  configurations text[], row_limit int
-- returns: the columns of evaluation_results
-- index:   evaluation_results_latest_idx
SELECT h.* FROM (
    SELECT e.* FROM evaluation_results AS e
    WHERE e.configuration = ANY(:configurations) AND e.tenant_id = current_tenant()
    ORDER BY e.created_at DESC, e.id LIMIT :row_limit
) AS h ORDER BY h.created_at, h.id;

-- name: note_openings
-- Names, titles and openings of the given notes; those deleted or expired are left out.
-- params:  note_ids uuid[], max_chars int (>= 1)
-- returns: id uuid, name text (the external id, else the id), title text, opening text
-- index:   notes_pkey
SELECT n.id, coalesce(n.external_id, n.id::text) AS name, n.title, left(n.content, :max_chars) AS opening
FROM notes AS n
WHERE n.id = ANY(:note_ids) AND n.tenant_id = current_tenant() AND (n.expires_at IS NULL OR n.expires_at > now());
