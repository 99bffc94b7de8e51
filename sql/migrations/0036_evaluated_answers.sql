-- What an evaluation says of the answers: citations against golden places, silence, confidence.
ALTER TABLE evaluation_results ADD COLUMN answers jsonb;
-- The ranges of notes that each sentence cites, without their text; null in evaluations from before.
ALTER TABLE evaluation_queries ADD COLUMN citations jsonb, ADD COLUMN answer_metrics jsonb;
