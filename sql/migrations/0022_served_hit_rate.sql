-- What users get is measured beside the ranking, and how far p95 may be noise. Null in evaluations from before.
ALTER TABLE evaluation_results
-- The share of questions with a relevant note among the results that a user gets.
ADD COLUMN served_hit_rate double precision CHECK (served_hit_rate BETWEEN 0 AND 1),
-- The 95 % interval of latency_p95_ms.
ADD COLUMN latency_p95_low_ms double precision,
ADD COLUMN latency_p95_high_ms double precision;
