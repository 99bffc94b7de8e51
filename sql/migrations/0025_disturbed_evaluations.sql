-- An evaluation in which a question could not be asked in full, twice, is disturbed: no gate uses it. The degraded
-- questions of evaluations from before lost a stage to the deadline, and say the same of them.
ALTER TABLE evaluation_results
DROP CONSTRAINT evaluation_results_gate_check,
ADD CONSTRAINT evaluation_results_gate_check CHECK (gate IN ('pass', 'inconclusive', 'fail', 'disturbed')),
-- The questions asked once more under the deadline of users, whose latencies are those above; null in evaluations from
-- before.
ADD COLUMN latency_queries integer,
-- Those of them that were not answered in full.
ADD COLUMN late_queries integer;

ALTER TABLE migration_batches
-- If there are any, the quality after the batch is unknown.
ADD COLUMN degraded_queries integer NOT NULL DEFAULT 0;
