-- name: insert_evaluation!
-- params:  the columns of evaluation_results
INSERT INTO evaluation_results (
    id, configuration, config, config_hash, golden_hash, model, model_digest, index_version,
    chunking_hashes, run_id, total_queries,
    failed_queries, degraded_queries, hit_rate_at_1, hit_rate_at_3, hit_rate_at_5, hit_rate_at_10,
    hit_rate_at_10_low, hit_rate_at_10_high, mrr, precision_at_10, recall_at_10, ndcg_at_10,
    latency_p50_ms, latency_p95_ms, latency_p99_ms, stage_latencies, breakdown, gate,
    faithfulness, answer_relevance, judge, judge_model, judge_version, answerer, judged_queries, judge_failures,
    passage_queries, passage_hit_rate_at_1, passage_hit_rate_at_3, passage_hit_rate_at_5, passage_hit_rate_at_10,
    passage_mrr, passage_precision_at_10, passage_recall_at_10, passage_ndcg_at_10,
    served_hit_rate, latency_p95_low_ms, latency_p95_high_ms, latency_queries, late_queries,
    contents, measured_at, page_queries, page_metrics, answers
)
VALUES (
    :id, :configuration, :config, :config_hash, :golden_hash, :model, :model_digest, :index_version,
    :chunking_hashes, :run_id,
    :total_queries, :failed_queries, :degraded_queries, :hit_rate_at_1, :hit_rate_at_3, :hit_rate_at_5,
    :hit_rate_at_10, :hit_rate_at_10_low, :hit_rate_at_10_high, :mrr, :precision_at_10, :recall_at_10, :ndcg_at_10,
    :latency_p50_ms, :latency_p95_ms, :latency_p99_ms, :stage_latencies, :breakdown, :gate,
    :faithfulness, :answer_relevance, :judge, :judge_model, :judge_version, :answerer, :judged_queries, :judge_failures,
    :passage_queries, :passage_hit_rate_at_1, :passage_hit_rate_at_3, :passage_hit_rate_at_5, :passage_hit_rate_at_10,
    :passage_mrr, :passage_precision_at_10, :passage_recall_at_10, :passage_ndcg_at_10,
    :served_hit_rate, :latency_p95_low_ms, :latency_p95_high_ms, :latency_queries, :late_queries,
    :contents, :measured_at, :page_queries, :page_metrics, :answers
);

-- name: insert_evaluation_query*!
-- params:  the columns of evaluation_queries
INSERT INTO evaluation_queries (
    evaluation_id, golden_id, query, category, difficulty, relevant_note_ids, retrieved_note_ids,
    first_relevant_rank, metrics, latency_ms, stage_latencies, degraded, error,
    answer, answer_note_ids, faithfulness, answer_relevance, unsupported_claims, judge_error,
    places, first_relevant_passage_rank, passage_metrics, page_metrics, citations, answer_metrics
)
VALUES (
    :evaluation_id, :golden_id, :query, :category, :difficulty, :relevant_note_ids, :retrieved_note_ids,
    :first_relevant_rank, :metrics, :latency_ms, :stage_latencies, :degraded, :error,
    :answer, :answer_note_ids, :faithfulness, :answer_relevance, :unsupported_claims, :judge_error,
    :places, :first_relevant_passage_rank, :passage_metrics, :page_metrics, :citations, :answer_metrics
);

-- name: latest_evaluation^
-- The newest evaluation of a configuration.
-- params:  configuration text
-- returns: the columns of evaluation_results
-- index:   evaluation_results_latest_idx
SELECT e.* FROM evaluation_results AS e
WHERE e.configuration = :configuration AND e.tenant_id = current_tenant() ORDER BY e.created_at DESC, e.id LIMIT 1;

-- name: fetch_evaluation^
-- params:  evaluation_id uuid
-- returns: the columns of evaluation_results
SELECT e.* FROM evaluation_results AS e WHERE e.id = :evaluation_id AND e.tenant_id = current_tenant();

-- name: list_evaluations
-- The newest evaluations, of one configuration hash or of all, ties by id.
-- params:  config_hash text or null, row_limit int
-- returns: the columns of evaluation_results
SELECT e.* FROM evaluation_results AS e
WHERE e.tenant_id = current_tenant() AND (:config_hash::text IS NULL OR e.config_hash = :config_hash)
ORDER BY e.created_at DESC, e.id LIMIT :row_limit;

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
