-- name: upsert_note
-- Insert a note or bring it up to date; an unchanged note is not touched, a note never changes its creation time.
-- params:  note_id uuid, tenant text, source text, external_id text, title text, content text, tags text[],
--          metadata jsonb, created_at timestamptz
-- returns: inserted bool (false: updated); no row if unchanged
-- index:   notes_external_key
INSERT INTO notes AS n (id, tenant_id, source, external_id, title, content, tags, metadata, created_at)
VALUES (:note_id, :tenant, :source, :external_id, :title, :content, :tags, :metadata, :created_at)
ON CONFLICT (tenant_id, source, external_id) DO UPDATE
    SET
        title = excluded.title, content = excluded.content, tags = excluded.tags, metadata = excluded.metadata,
        updated_at = now()
    WHERE (n.title, n.content, n.tags, n.metadata)
    IS DISTINCT FROM (excluded.title, excluded.content, excluded.tags, excluded.metadata)
RETURNING n.xmax = 0 AS inserted;

-- name: find_note$
-- The id of a note given by id or by external id; the oldest if several sources use that external id.
-- params:  tenant text, name text
-- returns: uuid or nothing
SELECT n.id FROM notes AS n
WHERE n.tenant_id = :tenant AND (n.id::text = lower(:name) OR n.external_id = :name)
ORDER BY n.id::text = lower(:name) DESC, n.created_at, n.id LIMIT 1;

-- name: fetch_notes
-- Contents of some notes.
-- params:  note_ids uuid[]
-- returns: id uuid, title text, content text, created_at timestamptz
SELECT n.id, n.title, n.content, n.created_at FROM notes AS n WHERE n.id = ANY(:note_ids);

-- name: select_notes_to_chunk
-- Ids of the newest notes of a month that need chunking; chunking them claims them one by one.
-- params:  month_start timestamptz, month_end timestamptz, chunking_hash text, skipped uuid[], batch_size int
-- returns: id uuid, newest first
-- index:   notes_unchunked_idx, notes_newest_idx
SELECT n.id FROM notes AS n
WHERE
    n.created_at >= :month_start AND n.created_at < :month_end
    AND (n.chunked_at IS NULL OR n.chunking_hash IS DISTINCT FROM :chunking_hash)
    AND (n.expires_at IS NULL OR n.expires_at > now())
    AND n.id <> ALL(:skipped)
ORDER BY n.created_at DESC, n.id LIMIT :batch_size;

-- name: claim_note_to_chunk^
-- One note that still needs chunking, locked until commit; nothing if another run has it or has done it.
-- Its key stays unlocked: rows that refer to the note (a failure, a vector) can be written meanwhile.
-- params:  note_id uuid, chunking_hash text
-- returns: id uuid, title text, content text, created_at timestamptz
SELECT n.id, n.title, n.content, n.created_at FROM notes AS n
WHERE n.id = :note_id AND (n.chunked_at IS NULL OR n.chunking_hash IS DISTINCT FROM :chunking_hash)
FOR NO KEY UPDATE SKIP LOCKED;

-- name: mark_chunked!
-- The note's chunks are all there.
-- params:  note_id uuid, chunking_hash text
UPDATE notes SET chunked_at = now(), chunking_hash = :chunking_hash WHERE id = :note_id;

-- name: claim_notes_to_embed
-- Notes of a month without a current whole-note vector; blank ones, as Python sees blanks, have none. Claimed until
-- commit so that two runs never share one, by a lock of our own: one on the row would keep the note from being edited
-- and chunked as long as the model takes. OFFSET 0, and no ORDER BY after the lock, keep it from being taken on more
-- notes than are returned.
-- params:  model text, month_start timestamptz, month_end timestamptz, skipped uuid[], batch_size int
-- returns: id uuid, newest first; perhaps done by another run just before: see select_note_texts
-- noqa: disable=AM09
SELECT c.id FROM (
    SELECT n.id FROM notes AS n
    LEFT JOIN note_embeddings AS e ON e.model = :model AND e.note_id = n.id
    WHERE
        n.created_at >= :month_start AND n.created_at < :month_end
        AND e.content_sha256 IS DISTINCT FROM n.content_sha256
        AND (n.expires_at IS NULL OR n.expires_at > now())
        AND n.id <> ALL(:skipped) AND n.content ~ '[^\s\x1c-\x1f]'
    ORDER BY n.created_at DESC, n.id OFFSET 0
) AS c
WHERE pg_try_advisory_xact_lock(hashtextextended(:model || ' ' || c.id::text, 0))
LIMIT :batch_size;
-- noqa: enable=AM09

-- name: count_notes_to_embed$
-- How many of those there are, claimed or not.
-- params:  model text, month_start timestamptz, month_end timestamptz, skipped uuid[]
-- returns: bigint
SELECT count(*) FROM notes AS n
LEFT JOIN note_embeddings AS e ON e.model = :model AND e.note_id = n.id
WHERE
    n.created_at >= :month_start AND n.created_at < :month_end
    AND e.content_sha256 IS DISTINCT FROM n.content_sha256
    AND (n.expires_at IS NULL OR n.expires_at > now())
    AND n.id <> ALL(:skipped) AND n.content ~ '[^\s\x1c-\x1f]';

-- name: select_note_texts
-- Claimed notes that still lack a current whole-note vector: whoever had them before is done by now.
-- params:  model text, note_ids uuid[]
-- returns: id uuid, content text, content_sha256 bytea, newest first
SELECT n.id, n.content, n.content_sha256 FROM notes AS n
LEFT JOIN note_embeddings AS e ON e.model = :model AND e.note_id = n.id
WHERE n.id = ANY(:note_ids) AND e.content_sha256 IS DISTINCT FROM n.content_sha256
ORDER BY n.created_at DESC, n.id;

-- name: count_notes_by_month
-- How many notes each month has, and how many of them are chunked.
-- returns: month timestamptz (start, UTC), notes bigint, chunked bigint
SELECT
    date_trunc('month', n.created_at, 'UTC') AS month, count(*) AS notes,
    count(*) FILTER (WHERE n.chunked_at IS NOT NULL) AS chunked
FROM notes AS n GROUP BY month ORDER BY month;

-- name: select_notes_outside
-- Notes dated outside all partitions: searchable, but in no month's run.
-- params:  first timestamptz, after_last timestamptz, row_limit int
-- returns: external_id text, total bigint, earliest timestamptz, latest timestamptz: the last three of all of them
SELECT
    coalesce(n.external_id, n.id::text) AS external_id,
    count(*) OVER () AS total, min(n.created_at) OVER () AS earliest, max(n.created_at) OVER () AS latest
FROM notes AS n
WHERE n.created_at < :first OR n.created_at >= :after_last
ORDER BY n.created_at, n.id LIMIT :row_limit;
