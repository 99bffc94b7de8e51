-- name: has_schema$
-- Whether the migrations were applied at all.
-- returns: bool
SELECT to_regclass('index_state') IS NOT NULL AND to_regclass('promotions') IS NOT NULL;

-- name: count_contents^
-- How much there is of everything.
-- returns: notes bigint, chunked bigint, chunks bigint, golden bigint, failures bigint, index_version bigint
SELECT
    (SELECT count(*) FROM notes) AS notes,
    (SELECT count(*) FROM notes AS n WHERE n.chunked_at IS NOT NULL) AS chunked,
    (SELECT count(*) FROM chunks) AS chunks,
    (SELECT count(*) FROM golden_dataset) AS golden,
    (SELECT count(*) FROM indexing_failures) AS failures,
    (SELECT v.last_value FROM index_version AS v) AS index_version;

-- name: count_vectors_by_model
-- How far each known model has come.
-- returns: name text, state text, chunk_vectors bigint, note_vectors bigint, pending bigint (notes)
SELECT
    m.name, m.state,
    (SELECT count(*) FROM chunk_embeddings AS e WHERE e.model = m.name) AS chunk_vectors,
    (SELECT count(*) FROM note_embeddings AS e WHERE e.model = m.name) AS note_vectors,
    (SELECT count(*) FROM pending_embeddings AS p WHERE p.model = m.name) AS pending
FROM embedding_models AS m ORDER BY m.name;

-- name: list_chunk_models
-- The models that are to have vectors of every chunk.
-- returns: name text
SELECT m.name FROM embedding_models AS m WHERE m.embeds_chunks AND m.state <> 'retired' ORDER BY m.name;

-- name: count_pending_by_month
-- Notes of each month in the queue of each model.
-- returns: month timestamptz (start, UTC), model text, pending bigint
SELECT date_trunc('month', n.created_at, 'UTC') AS month, p.model, count(*) AS pending
FROM pending_embeddings AS p INNER JOIN notes AS n ON n.id = p.note_id
GROUP BY month, p.model ORDER BY month, p.model;

-- name: count_failures_by_month
-- Texts of each month that could not be chunked or embedded.
-- returns: month timestamptz (start, UTC), failures bigint
SELECT date_trunc('month', n.created_at, 'UTC') AS month, count(*) AS failures
FROM indexing_failures AS f INNER JOIN notes AS n ON n.id = f.note_id
GROUP BY month ORDER BY month;
