-- What questions cost and how they went, without their text.
CREATE TABLE retrieval_log (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id text NOT NULL,
    answered_at timestamptz NOT NULL,
    -- The process that answered: its caches and connections are counted since it started.
    process uuid NOT NULL,
    config_hash text NOT NULL,
    strategy text NOT NULL,
    model text NOT NULL,
    latency_ms double precision NOT NULL,
    stage_latencies jsonb NOT NULL,
    results integer NOT NULL,
    degraded text[] NOT NULL,
    failed boolean NOT NULL,
    cached boolean NOT NULL,
    -- {name: [hits, misses]}
    caches jsonb NOT NULL,
    -- {size, in_use, waiting, requests, wait_ms_avg, connections_lost}
    pool jsonb NOT NULL
);
-- Prevents a scan of all rows for the latest ones, and for those too old to keep.
CREATE INDEX retrieval_log_answered_idx ON retrieval_log (answered_at);
