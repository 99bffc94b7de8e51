-- name: select_chunks_to_embed
-- Chunks of the given notes whose vectors are missing or were made from another text; of an edited note only the
-- provisional one, for the others will be replaced.
-- params:  model text, note_ids uuid[]
-- returns: id uuid, note_id uuid, content text (rendered), context text, content_sha256 bytea, contextual_sha256 bytea
SELECT
    c.id, c.note_id, coalesce(c.rendered, c.content) AS content, c.context, c.content_sha256, c.contextual_sha256
FROM chunks AS c
INNER JOIN notes AS n ON n.id = c.note_id
LEFT JOIN chunk_embeddings AS e ON e.model = :model AND e.chunk_id = c.id
WHERE
    c.note_id = ANY(:note_ids) AND (n.chunked_at IS NULL) = (c.id = c.note_id)
    AND (
        e.content_sha256 IS DISTINCT FROM c.content_sha256
        OR e.contextual_sha256 IS DISTINCT FROM c.contextual_sha256
    )
ORDER BY c.note_id, c.chunk_index;

-- name: find_reusable_vectors
-- Vectors that a model already has for the given texts: from any chunk, of either kind, and from the given notes as a
-- whole, since the only chunk of a short note has the note's text.
-- params:  model text, hashes bytea[], note_ids uuid[]
-- returns: sha256 bytea, embedding halfvec
-- index:   chunk_embeddings_content_idx, chunk_embeddings_contextual_idx, note_embeddings_pkey
SELECT DISTINCT ON (v.sha256) v.sha256, v.embedding FROM (
    SELECT e.content_sha256 AS sha256, e.embedding FROM chunk_embeddings AS e
    WHERE e.model = :model AND e.content_sha256 = ANY(:hashes)
    UNION ALL
    SELECT e.contextual_sha256, e.contextual_embedding FROM chunk_embeddings AS e
    WHERE e.model = :model AND e.contextual_sha256 = ANY(:hashes) AND e.contextual_embedding IS NOT NULL
    UNION ALL
    SELECT e.content_sha256, e.embedding FROM note_embeddings AS e
    WHERE e.model = :model AND e.note_id = ANY(:note_ids) AND e.content_sha256 = ANY(:hashes)
) AS v ORDER BY v.sha256, v.embedding;

-- name: create_incoming_chunk_embeddings!
-- The temporary table that COPY fills with a batch, before one statement merges it.
CREATE TEMPORARY TABLE IF NOT EXISTS incoming_chunk_embeddings (
    chunk_id uuid, model text, embedding halfvec, contextual_embedding halfvec, content_sha256 bytea,
    contextual_sha256 bytea
) ON COMMIT DROP;

-- name: merge_incoming_chunk_embeddings!
-- Store the vectors of chunks that still exist; the lock keeps the chunks until commit. Chunks that are locked already
-- are skipped: their note is being deleted, and that deletion waits for this embedding run to release the queue, so
-- waiting for it would deadlock.
INSERT INTO chunk_embeddings (
    chunk_id, model, embedding, contextual_embedding, content_sha256, contextual_sha256, tenant_id
)
SELECT
    i.chunk_id, i.model, i.embedding, i.contextual_embedding, i.content_sha256, i.contextual_sha256,
    c.tenant_id
FROM incoming_chunk_embeddings AS i INNER JOIN chunks AS c ON c.id = i.chunk_id
ORDER BY i.chunk_id
FOR KEY SHARE OF c SKIP LOCKED
ON CONFLICT (model, chunk_id) DO UPDATE
    SET
        embedding = excluded.embedding, contextual_embedding = excluded.contextual_embedding,
        content_sha256 = excluded.content_sha256, contextual_sha256 = excluded.contextual_sha256;

-- name: complete_pending_notes
-- Remove notes from a model's queue if all their chunks that are searched have current vectors, and store when the
-- transaction began and ended.
-- params:  model text, note_ids uuid[]
-- returns: note_id uuid
WITH done AS (
    DELETE FROM pending_vectors AS p
    WHERE
        p.model = :model AND p.kind = 'chunk' AND p.note_id = ANY(:note_ids)
        AND NOT EXISTS (
            SELECT FROM chunks AS c
            INNER JOIN notes AS n ON n.id = c.note_id
            LEFT JOIN chunk_embeddings AS e ON e.model = :model AND e.chunk_id = c.id
            WHERE c.note_id = p.note_id AND (n.chunked_at IS NULL) = (c.id = c.note_id) AND (
                e.content_sha256 IS DISTINCT FROM c.content_sha256
                OR e.contextual_sha256 IS DISTINCT FROM c.contextual_sha256
            )
        )
    RETURNING p.note_id
),

work AS (
    INSERT INTO embedding_work (model, notes, chunks, started_at, finished_at)
    SELECT
        :model, count(DISTINCT d.note_id) AS notes, count(c.id) AS chunks, now() AS started_at,
        clock_timestamp() AS finished_at
    FROM done AS d LEFT JOIN chunks AS c ON c.note_id = d.note_id
    HAVING count(*) > 0
)

SELECT d.note_id FROM done AS d;

-- name: create_incoming_note_embeddings!
CREATE TEMPORARY TABLE IF NOT EXISTS incoming_note_embeddings (
    note_id uuid, model text, embedding halfvec, content_sha256 bytea
) ON COMMIT DROP;

-- name: merge_incoming_note_embeddings
-- Store the whole-note vectors of notes that still exist. Notes being deleted are skipped, not waited for: a deletion
-- of several notes may hold one and wait for another that this run holds, which would deadlock.
-- returns: note_id uuid
INSERT INTO note_embeddings (note_id, model, embedding, content_sha256, tenant_id)
SELECT i.note_id, i.model, i.embedding, i.content_sha256, n.tenant_id
FROM incoming_note_embeddings AS i INNER JOIN notes AS n ON n.id = i.note_id
ORDER BY i.note_id
FOR KEY SHARE OF n SKIP LOCKED
ON CONFLICT (model, note_id) DO UPDATE
    SET embedding = excluded.embedding, content_sha256 = excluded.content_sha256
RETURNING note_embeddings.note_id;

-- name: count_embedding_gaps^
-- How many chunks of a range of months lack a current vector of a model, by kind of gap.
-- params:  model text, dimension int, month_start timestamptz, month_end timestamptz
-- returns: chunks bigint, missing bigint, stale bigint, wrong_dimension bigint
SELECT
    count(*) AS chunks,
    count(*) FILTER (WHERE e.chunk_id IS NULL OR e.contextual_embedding IS NULL) AS missing,
    count(*) FILTER (WHERE e.content_sha256 <> c.content_sha256 OR e.contextual_sha256 <> c.contextual_sha256) AS stale,
    count(*) FILTER (
        WHERE vector_dims(e.embedding) <> :dimension OR vector_dims(e.contextual_embedding) <> :dimension
    ) AS wrong_dimension
FROM chunks AS c
INNER JOIN notes AS n ON n.id = c.note_id
LEFT JOIN chunk_embeddings AS e ON e.model = :model AND e.chunk_id = c.id
WHERE n.created_at >= :month_start AND n.created_at < :month_end AND n.chunked_at IS NOT NULL;

-- name: copy_incoming_chunk_embeddings!
COPY incoming_chunk_embeddings FROM STDIN (FORMAT "binary");

-- name: copy_incoming_note_embeddings!
COPY incoming_note_embeddings FROM STDIN (FORMAT "binary");
