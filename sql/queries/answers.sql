-- name: insert_answer*!
-- params:  the columns of answers but tenant_id
INSERT INTO answers (
    id, asked_at, question, searched, sentences, filters, language, intent, configuration, config_hash, embedding_model,
    answerer, language_model, prompt_tokens, completion_tokens, outcome, confidence, silence, stages, degraded,
    citations, passages, note_ids
) VALUES (
    :answer_id, :asked_at, :question, :searched, :sentences, :filters, :language, :intent, :configuration, :config_hash,
    :embedding_model, :answerer, :language_model, :prompt_tokens, :completion_tokens, :outcome, :confidence, :silence,
    :stages, :degraded, :citations, :passages, :note_ids
) ON CONFLICT (tenant_id, id) DO NOTHING;

-- name: delete_old_answers!
-- params:  days int
-- index:   answers_asked_idx
DELETE FROM answers AS a
WHERE a.tenant_id = current_tenant() AND a.asked_at < now() - make_interval(days => :days);

-- name: find_answers
-- The answers whose id has a prefix, at most two: enough to know that it is ambiguous.
-- params:  first uuid, last uuid (the ids between which those that begin so lie)
-- returns: the columns of answers
-- index:   answers_pkey
SELECT
    a.id AS answer_id, a.asked_at, a.question, a.searched, a.sentences, a.filters, a.language, a.intent,
    a.configuration, a.config_hash, a.embedding_model, a.answerer, a.language_model, a.prompt_tokens,
    a.completion_tokens, a.outcome, a.confidence, a.silence, a.stages, a.degraded, a.citations, a.passages
FROM answers AS a
WHERE a.tenant_id = current_tenant() AND a.id BETWEEN :first AND :last
ORDER BY a.id LIMIT 2;

-- name: list_answers
-- The latest answers, latest first.
-- params:  row_limit int
-- returns: answer_id uuid, asked_at timestamptz, question text or null, outcome text, citations int, up bigint,
--          down bigint
-- index:   answers_asked_idx
SELECT
    a.id AS answer_id, a.asked_at, a.question, a.outcome, jsonb_array_length(a.citations) AS citations,
    count(f.verdict) FILTER (WHERE f.verdict = 'up') AS up,
    count(f.verdict) FILTER (WHERE f.verdict = 'down') AS down
FROM answers AS a
LEFT JOIN feedback AS f ON f.tenant_id = a.tenant_id AND f.answer_id = a.id
WHERE a.tenant_id = current_tenant()
GROUP BY a.tenant_id, a.id
ORDER BY a.asked_at DESC, a.id LIMIT :row_limit;

-- name: write_feedback!
-- Write a verdict, or replace an earlier one.
-- params:  answer_id uuid, citation int, verdict text, comment text or null
INSERT INTO feedback (answer_id, citation, verdict, comment) VALUES (:answer_id, :citation, :verdict, :comment)
ON CONFLICT (tenant_id, answer_id, citation) DO UPDATE SET
    verdict = excluded.verdict, comment = excluded.comment, given_at = now();

-- name: fetch_feedback
-- params:  answer_id uuid
-- returns: answer_id uuid, citation int or null for the whole, verdict text, comment text or null,
--          given_at timestamptz; by citation
-- index:   feedback_pkey
SELECT f.answer_id, nullif(f.citation, 0) AS citation, f.verdict, f.comment, f.given_at FROM feedback AS f
WHERE f.tenant_id = current_tenant() AND f.answer_id = :answer_id ORDER BY f.citation;

-- name: outcomes_between
-- The outcomes of the questions of a period, from which the log's figures are computed.
-- params:  first timestamptz, after_last timestamptz
-- returns: outcome text, false_answers float8 or null, latency_ms float8, is_up bool, is_down bool (the verdict on
--          the whole), citations_up bigint, citations_down bigint
-- index:   answers_asked_idx
SELECT
    a.outcome, (a.silence ->> 'falseAnswers')::float8 AS false_answers,
    coalesce((a.stages ->> 'whole')::float8, 0) AS latency_ms,
    coalesce(bool_or(f.verdict = 'up') FILTER (WHERE f.citation = 0), FALSE) AS is_up,
    coalesce(bool_or(f.verdict = 'down') FILTER (WHERE f.citation = 0), FALSE) AS is_down,
    count(*) FILTER (WHERE f.citation > 0 AND f.verdict = 'up') AS citations_up,
    count(*) FILTER (WHERE f.citation > 0 AND f.verdict = 'down') AS citations_down
FROM answers AS a
LEFT JOIN feedback AS f ON f.tenant_id = a.tenant_id AND f.answer_id = a.id
WHERE a.tenant_id = current_tenant() AND a.asked_at >= :first AND a.asked_at < :after_last
GROUP BY a.tenant_id, a.id
ORDER BY a.asked_at, a.id;
