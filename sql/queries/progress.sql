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
