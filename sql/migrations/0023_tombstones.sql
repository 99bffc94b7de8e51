-- Deleted notes: a source that still has one with the same content does not bring it back.
CREATE TABLE tombstones (
    note_id uuid NOT NULL,
    tenant_id text NOT NULL,
    source text NOT NULL,
    -- Null for a note that came from no source; nothing brings it back.
    external_id text,
    content_sha256 bytea NOT NULL,
    -- purged: it expired; deleted: a person deleted it.
    kind text NOT NULL CHECK (kind IN ('purged', 'deleted')),
    -- The person's reason; may be empty.
    reason text NOT NULL DEFAULT '',
    deleted_at timestamptz NOT NULL DEFAULT now(),
    -- Of the note; a deleted note expires too.
    expires_at timestamptz,
    -- The row of notes, for restoring it. Null for a purged note: of that nothing is kept.
    note jsonb,
    PRIMARY KEY (note_id, content_sha256),
    CONSTRAINT tombstones_note_check CHECK (kind = 'deleted' OR note IS NULL)
);
-- Prevents a scan of all tombstones for those of the records of a source.
CREATE INDEX tombstones_record_idx ON tombstones (tenant_id, source, external_id, content_sha256);
-- Prevents a scan of all tombstones for the few whose note expires.
CREATE INDEX tombstones_expiry_idx ON tombstones (expires_at) WHERE note IS NOT NULL AND expires_at IS NOT NULL;

-- Puts a kept row back into notes; keys that are no column, and columns that the table has got since, do not matter.
CREATE FUNCTION restore_note(kept jsonb) RETURNS void LANGUAGE plpgsql AS $restore_note$
DECLARE
    columns text := (
        SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) FROM pg_attribute AS a
        WHERE
            a.attrelid = 'notes'::regclass AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
            AND kept ? a.attname
    );
BEGIN
    EXECUTE format('INSERT INTO notes (%1$s) SELECT %1$s FROM jsonb_populate_record(NULL::notes, $1)', columns)
    USING kept;
END
$restore_note$;
