-- Small windows of chunks and their vectors.

-- name: select_chunks_to_cut
-- The chunks of some notes that are searched, with the windows that they have now.
-- params:  model text, note_ids uuid[]
-- returns: id uuid, note_id uuid, title text, tags text[], content text, and by window, null if there is none:
--          starts int[], ends int[], digests bytea[]
-- index:   chunks_position_key, chunk_windows_pkey
SELECT
    c.id, c.note_id, n.title, n.tags, c.content,
    array_agg(w.start_char ORDER BY w.window_index) FILTER (WHERE w.chunk_id IS NOT NULL) AS starts,
    array_agg(w.end_char ORDER BY w.window_index) FILTER (WHERE w.chunk_id IS NOT NULL) AS ends,
    array_agg(w.text_sha256 ORDER BY w.window_index) FILTER (WHERE w.chunk_id IS NOT NULL) AS digests
FROM chunks AS c
INNER JOIN notes AS n ON n.id = c.note_id
LEFT JOIN chunk_windows AS w ON w.model = :model AND w.chunk_id = c.id
WHERE c.note_id = ANY(:note_ids) AND (n.chunked_at IS NULL) = (c.id = c.note_id)
GROUP BY c.id, n.id
ORDER BY c.note_id, c.chunk_index;

-- name: find_reusable_windows
-- Vectors that a model already has for the texts of some windows, from any chunk.
-- params:  model text, hashes bytea[]
-- returns: sha256 bytea, embedding halfvec
-- index:   chunk_windows_text_idx
SELECT DISTINCT ON (w.text_sha256) w.text_sha256 AS sha256, w.embedding FROM chunk_windows AS w
WHERE w.model = :model AND w.text_sha256 = ANY(:hashes)
ORDER BY w.text_sha256, w.embedding;

-- name: keep_chunks
-- The given chunks that still exist; the lock keeps them until commit. Chunks that are locked already are skipped:
-- their note is being deleted, and that deletion waits for this run to release the queue, so waiting for it would
-- deadlock.
-- params:  ids uuid[]
-- returns: id uuid, tenant_id text
SELECT c.id, c.tenant_id FROM chunks AS c WHERE c.id = ANY(:ids) ORDER BY c.id FOR KEY SHARE OF c SKIP LOCKED;

-- name: delete_windows!
-- params:  model text, chunk_ids uuid[]
-- index:   chunk_windows_pkey
DELETE FROM chunk_windows WHERE model = :model AND chunk_id = ANY(:chunk_ids);

-- name: copy_windows!
COPY chunk_windows (chunk_id, model, window_index, start_char, end_char, embedding, text_sha256, tenant_id)
FROM STDIN (FORMAT "binary");

-- name: complete_pending_windows
-- Remove notes from a model's queue.
-- params:  model text, note_ids uuid[]
-- returns: note_id uuid
DELETE FROM pending_vectors AS p
WHERE p.model = :model AND p.kind = 'window' AND p.note_id = ANY(:note_ids) RETURNING p.note_id;

-- name: set_windows!
-- Store how the chunks of a model are cut into windows, and queue every chunked note for them.
-- params:  model text, windows_hash text
WITH model AS (
    UPDATE embedding_models SET windows_hash = :windows_hash WHERE name = :model
)

INSERT INTO pending_vectors (model, kind, note_id, tenant_id)
SELECT DISTINCT :model, 'window' AS kind, c.note_id, c.tenant_id FROM chunks AS c
ON CONFLICT (model, kind, note_id) DO NOTHING;

-- name: count_window_gaps^
-- How many chunks of a range of months lack current windows of a model, and how many windows are wrong.
-- params:  model text, dimension int, month_start timestamptz, month_end timestamptz
-- returns: chunks bigint, windows bigint, missing bigint (chunks), pending bigint (chunks with old ones),
--          out_of_bounds bigint (windows), wrong_dimension bigint (windows)
SELECT
    count(DISTINCT c.id) AS chunks,
    count(w.chunk_id) AS windows,
    count(*) FILTER (WHERE w.chunk_id IS NULL) AS missing,
    count(DISTINCT c.id) FILTER (WHERE w.chunk_id IS NOT NULL AND p.note_id IS NOT NULL) AS pending,
    count(*) FILTER (WHERE w.end_char > char_length(c.content)) AS out_of_bounds,
    count(*) FILTER (WHERE vector_dims(w.embedding) <> :dimension) AS wrong_dimension
FROM chunks AS c
INNER JOIN notes AS n ON n.id = c.note_id
LEFT JOIN pending_vectors AS p ON p.model = :model AND p.kind = 'window' AND p.note_id = c.note_id
LEFT JOIN chunk_windows AS w ON w.model = :model AND w.chunk_id = c.id
WHERE n.created_at >= :month_start AND n.created_at < :month_end AND n.chunked_at IS NOT NULL;
