-- The metrics per page of a document, over the questions whose places lie in one; null if there is none.
ALTER TABLE evaluation_results
ADD COLUMN page_queries integer NOT NULL DEFAULT 0,
ADD COLUMN page_metrics jsonb;

ALTER TABLE evaluation_queries
ADD COLUMN page_metrics jsonb;
