-- The settings that the content of this database was made with. A run with other settings says so and asks first: a
-- variable that is not set, or misspelt, must not mix one collection of notes with another.
CREATE TABLE content_settings (
    -- Empty for a setting of all tenants.
    tenant_id text NOT NULL,
    -- The environment variable.
    name text NOT NULL,
    -- null: a person accepted that nothing is compared with it.
    value jsonb NOT NULL,
    accepted_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, name)
);

-- The file that an import took a question from, with its folder; empty for what a person entered. An import deletes
-- only what came from the same file.
ALTER TABLE golden_history
ADD COLUMN source text NOT NULL DEFAULT coalesce(current_setting('rag.golden_source', TRUE), '');
