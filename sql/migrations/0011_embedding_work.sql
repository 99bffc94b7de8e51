-- How fast vectors are made, for the time a migration still takes: nothing else says when one was.
CREATE TABLE embedding_work (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    model text NOT NULL,
    notes integer NOT NULL,
    -- Of those notes; two vectors each.
    chunks integer NOT NULL,
    -- Of the transaction that took the notes off the queue.
    started_at timestamptz NOT NULL,
    finished_at timestamptz NOT NULL
);
-- Prevents a scan of all the work ever done for the latest of a model.
CREATE INDEX embedding_work_latest_idx ON embedding_work (model, id DESC);
