-- name: register_model!
-- Make a model known, or bring what may change about it up to date.
-- params:  name text, dimension int, provider text, digest text, similarity_threshold float8, embeds_chunks bool
INSERT INTO embedding_models AS m (name, dimension, provider, digest, similarity_threshold, embeds_chunks)
VALUES (:name, :dimension, :provider, :digest, :similarity_threshold, :embeds_chunks)
ON CONFLICT (name) DO UPDATE
    SET
        similarity_threshold = excluded.similarity_threshold,
        embeds_chunks = m.embeds_chunks OR excluded.embeds_chunks
    WHERE (m.similarity_threshold, m.embeds_chunks)
    IS DISTINCT FROM (excluded.similarity_threshold, m.embeds_chunks OR excluded.embeds_chunks);

-- name: fetch_model^
-- params:  name text
-- returns: name text, dimension int, provider text, digest text, similarity_threshold float8, embeds_chunks bool
SELECT m.name, m.dimension, m.provider, m.digest, m.similarity_threshold, m.embeds_chunks
FROM embedding_models AS m WHERE m.name = :name;

-- name: create_partitions!
-- params:  name text, dimension int
CALL create_model_partitions(:name, :dimension);

-- name: lock_chunking!
-- Until commit no note is chunked: those chunked before are seen by request_missing_embeddings, those after know the
-- new model. Or a note chunked meanwhile would never be queued for it.
LOCK TABLE chunks IN SHARE ROW EXCLUSIVE MODE;

-- name: request_missing_embeddings!
-- Queue every chunked note that lacks a vector of a model: once, when the model starts to embed chunks.
-- params:  model text
INSERT INTO pending_embeddings (model, note_id)
SELECT DISTINCT :model, c.note_id FROM chunks AS c
LEFT JOIN chunk_embeddings AS e ON e.model = :model AND e.chunk_id = c.id
WHERE e.contextual_sha256 IS DISTINCT FROM c.contextual_sha256
ON CONFLICT (model, note_id) DO NOTHING;
