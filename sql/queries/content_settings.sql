-- name: lock_content_settings!
-- Allow one writer at a time, because whether there is anything to write depends on what is stored.
LOCK TABLE content_settings IN SHARE ROW EXCLUSIVE MODE;

-- name: list_content_settings
-- The settings that produced the content of this database.
-- returns: tenant_id text (empty: of all tenants), name text, value jsonb
SELECT s.tenant_id, s.name, s.value FROM content_settings AS s ORDER BY s.tenant_id, s.name;

-- name: write_content_settings*!
-- params:  tenant text (empty: of all tenants), name text, value jsonb
INSERT INTO content_settings (tenant_id, name, value) VALUES (:tenant, :name, :value)
ON CONFLICT (tenant_id, name) DO UPDATE SET value = excluded.value, accepted_at = now();

-- name: held_sources^
-- The kinds of content in the database, over all tenants unless stated otherwise.
-- params:  tenant text, sample text (name of the sample's source), unnamed text (default name of a source)
-- returns: sample bool (the tenant has notes of the sample), unnamed bool (and of a source with the default name),
--          others bool (there are notes that are not the sample's; those of documents may be beside it), golden bool
--          (the tenant has golden questions)
-- index:   notes_external_key
SELECT
    h.sample,
    exists(SELECT FROM notes AS n WHERE n.tenant_id = :tenant AND n.source = :unnamed) AS unnamed,
    exists(
        SELECT FROM notes AS n WHERE n.source <> :sample AND (n.document_id IS NULL OR NOT h.sample)
    ) AS others,
    exists(SELECT FROM golden_dataset AS g WHERE g.tenant_id = :tenant) AS golden
FROM (SELECT exists(SELECT FROM notes AS n WHERE n.tenant_id = :tenant AND n.source = :sample) AS sample) AS h;

-- name: list_sources
-- The sources of the stored notes.
-- returns: source text, notes bigint, most notes first
SELECT n.source, count(*) AS notes FROM notes AS n GROUP BY n.source ORDER BY notes DESC, n.source;

-- name: move_notes!
-- Move notes from one source to another, if their content has the given hash and the other source lacks them.
-- params:  tenant text, old_source text, new_source text, external_ids text[], hashes bytea[] (SHA-256, one per id)
-- index:   notes_external_key
UPDATE notes AS n SET source = :new_source
FROM unnest(:external_ids::text[], :hashes::bytea[]) AS g (external_id, content_sha256)
WHERE
    n.tenant_id = :tenant AND n.source = :old_source
    AND n.external_id = g.external_id AND n.content_sha256 = g.content_sha256
    AND NOT EXISTS (
        SELECT FROM notes AS o
        WHERE o.tenant_id = :tenant AND o.source = :new_source AND o.external_id = n.external_id
    );
