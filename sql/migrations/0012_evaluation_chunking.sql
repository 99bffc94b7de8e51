-- How the notes were chunked that an evaluation searched: one way, but for what was under way.
ALTER TABLE evaluation_results ADD COLUMN chunking_hashes text[] NOT NULL DEFAULT '{}';
