-- Records of a source that could not be read, as its last reading found them: so that they can be shown after the run.
CREATE TABLE rejected_records (
    tenant_id text NOT NULL DEFAULT current_tenant(),
    source text NOT NULL,
    -- The folder or file that was read.
    root text NOT NULL,
    -- Its order in the reading.
    position integer NOT NULL CHECK (position >= 0),
    -- File, or file and line.
    location text NOT NULL,
    -- The code of the message and its values.
    reason jsonb NOT NULL,
    rejected_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, source, root, position)
);

-- Prevents a scan of all tombstones for the few whose note is still kept.
CREATE INDEX tombstones_kept_idx ON tombstones (deleted_at) WHERE note IS NOT NULL;
