-- The answers of an evaluation, and what a judge made of them.

-- What is missing is null, never 0: nothing was judged, or it failed.
ALTER TABLE evaluation_results
ADD CONSTRAINT evaluation_results_faithfulness_check CHECK (faithfulness BETWEEN 0 AND 1),
ADD CONSTRAINT evaluation_results_answer_relevance_check CHECK (answer_relevance BETWEEN 0 AND 1),
ADD COLUMN judge_model text,
-- Of the judge's prompt or rules.
ADD COLUMN judge_version text,
-- What wrote the answers, with its version.
ADD COLUMN answerer text,
ADD COLUMN judged_queries integer,
-- Answers that could not be made or judged; they take no part in the means.
ADD COLUMN judge_failures integer;

ALTER TABLE evaluation_queries
ADD COLUMN answer text,
ADD COLUMN answer_note_ids uuid[],
ADD COLUMN faithfulness double precision CHECK (faithfulness BETWEEN 0 AND 1),
ADD COLUMN answer_relevance double precision CHECK (answer_relevance BETWEEN 0 AND 1),
ADD COLUMN unsupported_claims text[],
ADD COLUMN judge_error text;
