-- name: select_changed_notes
-- Which of some notes are new or stored otherwise. Contents are compared by their hashes: neither is sent, nor read.
-- params:  tenant text, source text, given jsonb: of each note [external id, title, SHA-256 of its content in
--          hexadecimal digits, [tags], {metadata}]
-- returns: external_id text
-- index:   notes_external_key
SELECT g.note ->> 0 AS external_id
FROM jsonb_array_elements(:given::jsonb) AS g (note)
WHERE NOT EXISTS (
    SELECT FROM notes AS n
    WHERE
        n.tenant_id = :tenant AND n.source = :source AND n.external_id = g.note ->> 0
        AND n.title = g.note ->> 1 AND encode(n.content_sha256, 'hex') = g.note ->> 2
        AND to_jsonb(n.tags) = g.note -> 3 AND n.metadata = g.note -> 4
);

-- name: upsert_notes
-- Insert notes or bring them up to date; a note never changes its creation time. Its expiry follows its source where
-- that says another one than before (expiresAt in its metadata), and is left alone otherwise.
-- params:  tenant text, source text, of each note: ids uuid[], external_ids text[] (no two the same), titles text[],
--          contents text[], tags jsonb[] (arrays of text), metadata jsonb[], created_at timestamptz[]
-- returns: external_id text, inserted bool (false: updated); no row for what is unchanged
-- index:   notes_external_key
INSERT INTO notes AS n (id, tenant_id, source, external_id, title, content, tags, metadata, created_at, expires_at)
SELECT
    u.id, :tenant, :source, u.external_id, u.title, u.content,
    (
        SELECT coalesce(array_agg(t.tag ORDER BY t.place), '{}')
        FROM jsonb_array_elements_text(u.tags) WITH ORDINALITY AS t (tag, place)
    ) AS tags,
    u.metadata, u.created_at, (u.metadata ->> 'expiresAt')::timestamptz AS expires_at
FROM
    unnest(
        :ids::uuid[], :external_ids::text[], :titles::text[], :contents::text[], :tags::jsonb[], :metadata::jsonb[],
        :created_at::timestamptz[]
    ) WITH ORDINALITY AS u (id, external_id, title, content, tags, metadata, created_at, place)
ORDER BY u.place
ON CONFLICT (tenant_id, source, external_id) DO UPDATE
    SET
        title = excluded.title, content = excluded.content, tags = excluded.tags, metadata = excluded.metadata,
        expires_at = CASE
            WHEN n.metadata ->> 'expiresAt' IS DISTINCT FROM excluded.metadata ->> 'expiresAt' THEN excluded.expires_at
            ELSE n.expires_at
        END,
        updated_at = now()
    WHERE (n.title, n.content, n.tags, n.metadata)
    IS DISTINCT FROM (excluded.title, excluded.content, excluded.tags, excluded.metadata)
RETURNING n.external_id, n.xmax = 0 AS inserted;

-- name: find_note$
-- The id of a note given by id or by external id; the oldest if several sources use that external id.
-- params:  tenant text, name text, id uuid or null
-- returns: uuid or nothing
-- index:   notes_pkey, notes_external_key
SELECT n.id FROM notes AS n
WHERE n.tenant_id = :tenant AND (n.id = :id OR n.external_id = :name)
ORDER BY n.id = :id DESC NULLS LAST, n.created_at, n.id LIMIT 1;

-- name: count_notes$
-- How many notes a month has that have not expired.
-- params:  month_start timestamptz, month_end timestamptz
-- returns: bigint
-- index:   notes_newest_idx
SELECT count(*) FROM notes AS n
WHERE
    n.created_at >= :month_start AND n.created_at < :month_end
    AND (n.expires_at IS NULL OR n.expires_at > now());

-- name: select_external_ids
-- What people call some notes; those that are gone are left out.
-- params:  note_ids uuid[]
-- returns: id uuid, external_id text
SELECT n.id, coalesce(n.external_id, n.id::text) AS external_id FROM notes AS n WHERE n.id = ANY(:note_ids);

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

-- name: count_notes_to_chunk$
-- How many notes of a month still need chunking, whoever has them in hand.
-- params:  month_start timestamptz, month_end timestamptz, chunking_hash text
-- returns: bigint
-- index:   notes_newest_idx
SELECT count(*) FROM notes AS n
WHERE
    n.created_at >= :month_start AND n.created_at < :month_end
    AND (n.chunked_at IS NULL OR n.chunking_hash IS DISTINCT FROM :chunking_hash)
    AND (n.expires_at IS NULL OR n.expires_at > now());

-- name: claim_notes_to_chunk
-- Those of some notes that still need chunking, locked until commit, without those that another run has or has done.
-- Their keys stay unlocked: rows that refer to a note (a failure, a vector) can be written meanwhile.
-- params:  note_ids uuid[], chunking_hash text
-- returns: id uuid, title text, content text, created_at timestamptz, rolled_back bool (of the migration)
SELECT
    n.id, n.title, n.content, n.created_at,
    coalesce((SELECT h.kind = 'rolled_back' FROM migration_holds AS h ORDER BY h.id DESC LIMIT 1), FALSE) AS rolled_back
FROM notes AS n
WHERE n.id = ANY(:note_ids) AND (n.chunked_at IS NULL OR n.chunking_hash IS DISTINCT FROM :chunking_hash)
FOR NO KEY UPDATE OF n SKIP LOCKED;

-- name: mark_chunked!
-- The chunks of these notes are all there.
-- params:  note_ids uuid[], chunking_hash text
UPDATE notes SET chunked_at = now(), chunking_hash = :chunking_hash WHERE id = ANY(:note_ids);

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
-- returns: id uuid, created_at timestamptz, content text, content_sha256 bytea, newest first
SELECT n.id, n.created_at, n.content, n.content_sha256 FROM notes AS n
LEFT JOIN note_embeddings AS e ON e.model = :model AND e.note_id = n.id
WHERE n.id = ANY(:note_ids) AND e.content_sha256 IS DISTINCT FROM n.content_sha256
ORDER BY n.created_at DESC, n.id;

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

-- name: purge_expired_notes
-- Delete notes that expired some time ago, with everything that hangs on them; those that expired first come first.
-- One that is in another run's hands, or whose expiry is just being moved, is left for another time. Answers that quote
-- them go, too; what was judged of those stays.
-- params:  grace_hours int (>= 0), batch_size int (>= 1)
-- returns: id uuid
-- index:   notes_expiry_idx
WITH expired AS MATERIALIZED (
    SELECT n.id FROM notes AS n
    WHERE n.expires_at <= now() - make_interval(hours => :grace_hours)
    ORDER BY n.expires_at, n.id LIMIT :batch_size
    FOR UPDATE SKIP LOCKED
),

forgotten AS (
    UPDATE evaluation_queries AS q SET answer = NULL, unsupported_claims = NULL
    WHERE q.answer IS NOT NULL AND q.answer_note_ids && (SELECT array_agg(e.id) FROM expired AS e)
)

DELETE FROM notes AS n USING expired AS e WHERE n.id = e.id RETURNING n.id;

-- name: count_expired_notes$
-- How many of those there are, in other hands or not.
-- params:  grace_hours int (>= 0)
-- returns: bigint
SELECT count(*) FROM notes AS n WHERE n.expires_at <= now() - make_interval(hours => :grace_hours);

-- name: has_legacy_vectors$
-- Whether the table notes came with vectors of the application that wrote it before us.
-- returns: bool
SELECT count(*) > 0 AS found FROM pg_attribute AS a
WHERE a.attrelid = 'notes'::regclass AND a.attname = 'embedding' AND NOT a.attisdropped;

-- name: sample_legacy_vectors
-- Some short notes of a month with a legacy vector that is still to be adopted.
-- params:  model text, dimension int, month_start timestamptz, month_end timestamptz, max_chars int, row_limit int
-- returns: content text, embedding halfvec
SELECT n.content, l2_normalize(n.embedding::vector)::halfvec AS embedding
FROM notes AS n
WHERE
    n.created_at >= :month_start AND n.created_at < :month_end
    AND vector_dims(n.embedding) = :dimension AND vector_norm(n.embedding::vector) > 0
    AND n.content ~ '[^\s\x1c-\x1f]' AND char_length(n.content) <= :max_chars
    AND NOT EXISTS (SELECT FROM note_embeddings AS e WHERE e.model = :model AND e.note_id = n.id)
ORDER BY n.id LIMIT :row_limit;

-- name: adopt_legacy_vectors
-- Take over the vectors that the application before us made of whole notes, normalised. Of an edited note only if the
-- vector was made anew, too. Notes that are being deleted are left out, as in merge_incoming_note_embeddings.
-- params:  model text, dimension int, month_start timestamptz, month_end timestamptz, batch_size int
-- returns: note_id uuid
-- index:   notes_newest_idx
INSERT INTO note_embeddings (note_id, model, embedding, content_sha256)
SELECT n.id, :model, l2_normalize(n.embedding::vector)::halfvec AS embedding, n.content_sha256
FROM notes AS n
LEFT JOIN note_embeddings AS e ON e.model = :model AND e.note_id = n.id
WHERE
    n.created_at >= :month_start AND n.created_at < :month_end
    AND vector_dims(n.embedding) = :dimension AND vector_norm(n.embedding::vector) > 0
    AND (
        e.note_id IS NULL
        OR (
            e.content_sha256 <> n.content_sha256
            AND e.embedding <> l2_normalize(n.embedding::vector)::halfvec
        )
    )
    AND (n.expires_at IS NULL OR n.expires_at > now()) AND n.content ~ '[^\s\x1c-\x1f]'
ORDER BY n.id LIMIT :batch_size
FOR KEY SHARE OF n SKIP LOCKED
ON CONFLICT (model, note_id) DO UPDATE
    SET embedding = excluded.embedding, content_sha256 = excluded.content_sha256
RETURNING note_embeddings.note_id;

-- name: select_unusable_vectors
-- Notes of a month whose legacy vector cannot be one of a model: of another dimension, or zero.
-- params:  dimension int, month_start timestamptz, month_end timestamptz
-- returns: id uuid, dimension int
SELECT n.id, vector_dims(n.embedding) AS dimension FROM notes AS n
WHERE
    n.created_at >= :month_start AND n.created_at < :month_end
    AND (vector_dims(n.embedding) <> :dimension OR vector_norm(n.embedding::vector) = 0)
ORDER BY n.created_at DESC, n.id;
