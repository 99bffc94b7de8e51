-- The quality after every batch of a migration, and whether the next one may start. A migration is of a model and a way
-- of chunking: another way of either starts with an open gate, and with the baseline of its own time.
CREATE TABLE migration_batches (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    model text NOT NULL,
    chunking_hash text NOT NULL,
    run_id text NOT NULL,
    -- As YYYY-MM; none when quality was only measured again.
    months text[] NOT NULL,
    finished_at timestamptz NOT NULL,
    config_hash text NOT NULL,
    golden_hash text NOT NULL,
    total_queries integer NOT NULL,
    hit_rate_at_10 double precision NOT NULL,
    mrr double precision NOT NULL,
    latency_p95_ms double precision NOT NULL,
    -- The golden questions with and without a relevant note among the first ten.
    found uuid[] NOT NULL,
    missed uuid[] NOT NULL,
    baseline_id uuid REFERENCES evaluation_results (id) ON DELETE SET NULL,
    -- Of the questions in common; null if there are none.
    baseline_hit_rate_at_10 double precision,
    p_value double precision,
    -- What this look spent of the level of all looks.
    level double precision NOT NULL CHECK (level >= 0),
    gate text NOT NULL CHECK (gate IN ('open', 'closed')),
    reason text NOT NULL,
    -- Somebody let the next batch start although this one closed the gate.
    override_reason text,
    overridden_at timestamptz,
    override_run_id text,
    -- Prevents two looks of one run: a repeated check replaces its row.
    UNIQUE (model, run_id)
);
CREATE INDEX migration_batches_latest_idx ON migration_batches (model, chunking_hash, finished_at DESC, id DESC);
