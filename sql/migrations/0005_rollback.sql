-- Going back: whether a migration may go on, and why something serves that nothing but a person's word promoted.

-- Whether the migration may go on, and why not: the newest row says. Only added to.
CREATE TABLE migration_holds (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- stopped: what is migrated stays; rolled_back: the chunks are dropped; resumed: neither holds any more.
    kind text NOT NULL CHECK (kind IN ('stopped', 'rolled_back', 'resumed')),
    reason text NOT NULL,
    run_id text,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- What a rollback returns to need not have been evaluated. Its reason: null for what passed its gate. A row with a
-- reason withdraws the one before it.
ALTER TABLE promotions
ALTER COLUMN evaluation_id DROP NOT NULL,
ADD COLUMN reason text;
