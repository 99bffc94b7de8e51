-- name: indexing_progress^
-- The progress of indexing, for a progress bar.
-- params:  note_model text
-- returns: notes bigint, note_vectors bigint, chunked bigint, chunks bigint
SELECT
    (SELECT count(*) FROM notes) AS notes,
    (SELECT count(*) FROM note_embeddings AS e WHERE e.model = :note_model) AS note_vectors,
    (SELECT count(*) FROM notes AS n WHERE n.chunked_at IS NOT NULL) AS chunked,
    (SELECT count(*) FROM chunks) AS chunks;

-- name: embedding_progress
-- Stored chunk vectors, by model.
-- returns: model text, vectors bigint
SELECT e.model, count(*) AS vectors FROM chunk_embeddings AS e GROUP BY e.model;

-- name: windows_progress
-- Existing chunks that have windows, by model.
-- returns: model text, chunks bigint
SELECT w.model, count(*) AS chunks FROM chunk_windows AS w WHERE w.window_index = 0 GROUP BY w.model;

-- name: index_is_current$
-- Whether every note of a range of months is chunked as configured and has all vectors and windows of the given models.
-- params:  month_start timestamptz, month_end timestamptz, chunking_hash text, models text[], window_models text[],
--          windows_hash text
-- returns: bool
SELECT
    NOT EXISTS (
        SELECT FROM notes AS n
        WHERE
            n.created_at >= :month_start AND n.created_at < :month_end
            AND (n.chunked_at IS NULL OR n.chunking_hash IS DISTINCT FROM :chunking_hash)
            AND (n.expires_at IS NULL OR n.expires_at > now())
    )
    AND NOT EXISTS (SELECT FROM pending_embeddings AS p WHERE p.model = ANY(:models))
    AND NOT EXISTS (
        SELECT FROM unnest(:models::text[]) AS w (name)
        WHERE NOT EXISTS (SELECT FROM embedding_models AS m WHERE m.name = w.name AND m.embeds_chunks)
    )
    AND NOT EXISTS (SELECT FROM pending_windows AS p WHERE p.model = ANY(:window_models))
    AND NOT EXISTS (
        SELECT FROM unnest(:window_models::text[]) AS w (name)
        WHERE
            NOT EXISTS (
                SELECT FROM embedding_models AS m WHERE m.name = w.name AND m.windows_hash = :windows_hash
            )
    );

-- name: list_waiting_months
-- The months with notes that wait to be chunked beside notes that are chunked, oldest first. Notes of the last half
-- minute, which somebody may be indexing, and notes that cannot be chunked do not count.
-- returns: month timestamptz (start, UTC), notes bigint, written_at timestamptz (the latest of them)
-- index:   notes_unchunked_idx
SELECT w.month, count(*) AS notes, max(w.updated_at) AS written_at
FROM (
    SELECT date_trunc('month', n.created_at, 'UTC') AS month, n.updated_at FROM notes AS n
    WHERE
        n.chunked_at IS NULL AND n.updated_at < now() - interval '30 seconds'
        AND (n.expires_at IS NULL OR n.expires_at > now())
        AND NOT EXISTS (SELECT FROM indexing_failures AS f WHERE f.note_id = n.id AND f.stage = 'chunk')
) AS w
WHERE
    EXISTS (
        SELECT FROM notes AS o
        WHERE o.chunked_at IS NOT NULL AND o.created_at >= w.month AND o.created_at < w.month + interval '1 month'
    )
GROUP BY w.month ORDER BY w.month;
