-- name: indexing_progress^
-- How far the index is: what a progress bar shows.
-- params:  note_model text
-- returns: notes bigint, note_vectors bigint, chunked bigint, chunks bigint
SELECT
    (SELECT count(*) FROM notes) AS notes,
    (SELECT count(*) FROM note_embeddings AS e WHERE e.model = :note_model) AS note_vectors,
    (SELECT count(*) FROM notes AS n WHERE n.chunked_at IS NOT NULL) AS chunked,
    (SELECT count(*) FROM chunks) AS chunks;

-- name: embedding_progress
-- Chunk vectors there are, by model.
-- returns: model text, vectors bigint
SELECT e.model, count(*) AS vectors FROM chunk_embeddings AS e GROUP BY e.model;

-- name: index_is_current$
-- Whether every note is chunked as configured and every chunk has the vectors of every model asked for.
-- params:  chunking_hash text, models text[]
-- returns: bool
SELECT
    NOT EXISTS (
        SELECT FROM notes AS n
        WHERE
            (n.chunked_at IS NULL OR n.chunking_hash IS DISTINCT FROM :chunking_hash)
            AND (n.expires_at IS NULL OR n.expires_at > now())
    )
    AND NOT EXISTS (SELECT FROM pending_embeddings AS p WHERE p.model = ANY(:models))
    AND NOT EXISTS (
        SELECT FROM unnest(:models::text[]) AS w (name)
        WHERE NOT EXISTS (SELECT FROM embedding_models AS m WHERE m.name = w.name AND m.embeds_chunks)
    );
