-- name: lock_tombstones!
-- Wait for the deletions under way, and keep others from starting until commit. Otherwise a note that is deleted after
-- the look-up of its tombstone and before the write would come back.
LOCK TABLE tombstones IN SHARE MODE;

-- name: find_tombstones
-- The tombstones of the given records of a source, by content.
-- params:  tenant text, source text, external_ids text[], hashes bytea[] (SHA-256 of the content, one per id)
-- returns: note_id uuid, source text, external_id text, content_sha256 bytea, kind text, reason text,
--          deleted_at timestamptz, note (always null: it is not read)
-- index:   tombstones_record_idx
SELECT
    t.note_id, t.source, t.external_id, t.content_sha256, t.kind, t.reason, t.deleted_at, NULL::jsonb AS note
FROM unnest(:external_ids::text[], :hashes::bytea[]) AS g (external_id, content_sha256)
INNER JOIN tombstones AS t
    ON
        t.tenant_id = :tenant AND t.source = :source
        AND t.external_id = g.external_id AND t.content_sha256 = g.content_sha256;

-- name: lock_deletions!
-- Wait for the ingestions that have looked up tombstones. Call it before rows of notes are locked: otherwise an
-- ingestion could wait for such a row while the deletion waits for the ingestion, which would be a deadlock.
LOCK TABLE tombstones IN ROW EXCLUSIVE MODE;

-- name: bury_notes
-- Delete notes with everything that depends on them; each leaves a tombstone. Answers that quote the notes are deleted
-- too; the scores of those answers are kept.
-- params:  note_ids uuid[], kind text, reason text, keep bool (whether the tombstone keeps the note)
-- returns: id uuid
-- index:   notes_pkey
WITH going AS MATERIALIZED (
    SELECT
        n.id, n.tenant_id, n.source, n.external_id, n.content_sha256, n.expires_at,
        CASE
            WHEN :keep THEN to_jsonb(n) - '{content_sha256, chunked_at, chunking_hash, missing_since}'::text[]
        END AS note
    FROM notes AS n
    WHERE n.id = ANY(:note_ids)
    ORDER BY n.id
    FOR UPDATE
),

forgotten AS (
    UPDATE evaluation_queries AS q SET answer = NULL, unsupported_claims = NULL
    WHERE q.answer IS NOT NULL AND q.answer_note_ids && (SELECT array_agg(g.id) FROM going AS g)
),

buried AS (
    INSERT INTO tombstones (
        note_id, tenant_id, source, external_id, content_sha256, kind, reason, expires_at, note
    )
    SELECT
        g.id, g.tenant_id, g.source, g.external_id, g.content_sha256, :kind AS why, :reason AS words, g.expires_at,
        g.note
    FROM going AS g
    ON CONFLICT (note_id, content_sha256) DO UPDATE
        SET
            tenant_id = excluded.tenant_id, source = excluded.source, external_id = excluded.external_id,
            kind = excluded.kind, reason = excluded.reason, deleted_at = now(), expires_at = excluded.expires_at,
            note = excluded.note
)

DELETE FROM notes AS n USING going AS g WHERE n.id = g.id RETURNING n.id;

-- name: forget_deleted_tombstones!
-- Drop the kept rows of notes that a person deleted so long ago that they can no longer be restored; who deleted them,
-- when and why stays.
-- params:  days int
-- index:   tombstones_kept_idx
UPDATE tombstones AS t SET note = NULL
WHERE t.note IS NOT NULL AND t.deleted_at <= now() - make_interval(days => :days);

-- name: forget_expired_tombstones!
-- Drop the kept rows of deleted notes whose grace period after expiry is over.
-- params:  grace_hours int (>= 0)
-- index:   tombstones_expiry_idx
UPDATE tombstones AS t SET kind = 'purged', reason = '', note = NULL
WHERE t.note IS NOT NULL AND t.expires_at <= now() - make_interval(hours => :grace_hours);

-- name: list_tombstones
-- Deleted notes, latest deletion first.
-- params:  tenant text, name text or null (only those with this id or external id), id uuid or null (that name as an
--          id), row_limit int or null
-- returns: note_id uuid, source text, external_id text (else the id), content_sha256 bytea, kind text, reason text,
--          deleted_at timestamptz, note jsonb or null, total bigint (without the limit)
SELECT
    t.note_id, t.source, coalesce(t.external_id, t.note_id::text) AS external_id, t.content_sha256, t.kind, t.reason,
    t.deleted_at, t.note, count(*) OVER () AS total
FROM tombstones AS t
WHERE t.tenant_id = :tenant AND (:name::text IS NULL OR t.note_id = :id OR t.external_id = :name)
ORDER BY t.deleted_at DESC, t.note_id, t.content_sha256 LIMIT :row_limit;

-- name: restore_note!
-- Put a deleted note back into notes; it needs chunking. If another section of its document has its number by now, it
-- becomes the last one.
-- params:  note_id uuid, content_sha256 bytea
-- index:   tombstones_pkey
SELECT
    restore_note(
        t.note || coalesce(
            (
                SELECT jsonb_build_object('section_index', max(n.section_index) + 1) FROM notes AS n
                WHERE n.document_id = (t.note ->> 'document_id')::uuid
                HAVING bool_or(n.section_index = (t.note ->> 'section_index')::integer)
            ), '{}'
        )
    ) AS restored
FROM tombstones AS t
WHERE t.note_id = :note_id AND t.content_sha256 = :content_sha256 AND t.note IS NOT NULL;

-- name: delete_tombstone!
-- params:  note_id uuid, content_sha256 bytea
-- index:   tombstones_pkey
DELETE FROM tombstones AS t WHERE t.note_id = :note_id AND t.content_sha256 = :content_sha256;

-- name: deleted_note_names
-- Ids and external ids of deleted notes that no stored note has.
-- params:  tenant text
-- returns: note_id text, external_id text or null
-- index:   notes_pkey, notes_external_key
SELECT t.note_id::text, t.external_id FROM tombstones AS t
WHERE
    t.tenant_id = :tenant AND NOT EXISTS (SELECT FROM notes AS n WHERE n.id = t.note_id)
    AND NOT EXISTS (SELECT FROM notes AS n WHERE n.tenant_id = :tenant AND n.external_id = t.external_id);
