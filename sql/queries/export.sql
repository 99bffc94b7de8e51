-- name: export_notes
-- The notes of a tenant that are no sections of documents.
-- params:  tenant text
-- returns: id uuid, source text, external_id text or null, title text, content text, tags text[], metadata jsonb,
--          created_at timestamptz, updated_at timestamptz, expires_at timestamptz or null, date_source text or null
SELECT
    n.id, n.source, n.external_id, n.title, n.content, n.tags, n.metadata, n.created_at, n.updated_at, n.expires_at,
    n.date_source
FROM notes AS n WHERE n.tenant_id = :tenant AND n.document_id IS NULL ORDER BY n.id;

-- name: insert_exported_notes!
-- Insert notes under their ids; a note that is stored already, or was deleted since, stays as it is.
-- params:  tenant text, given jsonb (rows of export_notes)
INSERT INTO notes (
    id, tenant_id, source, external_id, title, content, tags, metadata, created_at, updated_at, expires_at, date_source
)
SELECT
    g.id, :tenant, g.source, g.external_id, g.title, g.content, g.tags, g.metadata, g.created_at, g.updated_at,
    g.expires_at, g.date_source
FROM
    jsonb_to_recordset(:given::jsonb)
        AS g (
            id uuid, source text, external_id text, title text, content text, tags text[], metadata jsonb,
            created_at timestamptz, updated_at timestamptz, expires_at timestamptz, date_source text
        )
WHERE
    NOT EXISTS (
        SELECT FROM tombstones AS t WHERE t.note_id = g.id AND t.content_sha256 = text_sha256(g.content)
    )
ON CONFLICT DO NOTHING;

-- name: export_deletions
-- The deleted notes of a tenant. A section's text is not among them: restoring it needs its document.
-- params:  tenant text
-- returns: note_id uuid, source text, external_id text or null, content_sha256 text (hexadecimal), kind text,
--          reason text, deleted_at timestamptz, expires_at timestamptz or null, note jsonb or null
SELECT
    t.note_id, t.source, t.external_id, encode(t.content_sha256, 'hex') AS content_sha256, t.kind, t.reason,
    t.deleted_at, t.expires_at, CASE WHEN t.note ->> 'document_id' IS NULL THEN t.note END AS note
FROM tombstones AS t WHERE t.tenant_id = :tenant ORDER BY t.note_id, t.content_sha256;

-- name: insert_exported_deletions!
-- params:  tenant text, given jsonb (rows of export_deletions)
INSERT INTO tombstones (
    note_id, tenant_id, source, external_id, content_sha256, kind, reason, deleted_at, expires_at, note
)
SELECT
    g.note_id, :tenant, g.source, g.external_id, decode(g.content_sha256, 'hex') AS content_sha256, g.kind, g.reason,
    g.deleted_at, g.expires_at,
    CASE WHEN g.kind <> 'purged' THEN g.note || jsonb_build_object('tenant_id', :tenant::text) END AS note
FROM
    jsonb_to_recordset(:given::jsonb)
        AS g (
            note_id uuid,
            source text,
            external_id text,
            content_sha256 text,
            kind text,
            reason text,
            deleted_at timestamptz,
            expires_at timestamptz, note jsonb
        )
ON CONFLICT DO NOTHING;

-- name: export_document_deletions
-- params:  tenant text
-- returns: file_sha256 text (hexadecimal), text_sha256 text or null, source text, address text, reason text,
--          deleted_at timestamptz
SELECT
    encode(x.file_sha256, 'hex') AS file_sha256, encode(x.text_sha256, 'hex') AS text_sha256, x.source, x.address,
    x.reason, x.deleted_at
FROM deleted_documents AS x WHERE x.tenant_id = :tenant ORDER BY x.file_sha256;

-- name: insert_exported_document_deletions!
-- params:  tenant text, given jsonb (rows of export_document_deletions)
INSERT INTO deleted_documents (tenant_id, file_sha256, text_sha256, source, address, reason, deleted_at)
SELECT
    :tenant, decode(g.file_sha256, 'hex') AS file_sha256, decode(g.text_sha256, 'hex') AS text_sha256, g.source,
    g.address, g.reason, g.deleted_at
FROM
    jsonb_to_recordset(:given::jsonb)
        AS g (
            file_sha256 text, text_sha256 text, source text, address text, reason text, deleted_at timestamptz
        )
ON CONFLICT DO NOTHING;
