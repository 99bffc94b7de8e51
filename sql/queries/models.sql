-- name: register_model!
-- Register a model, update the properties that may change, or bring a retired one back.
-- params:  name text, dimension int, provider text, digest text, similarity_threshold float8, cosine_low float8,
--          cosine_high float8, embeds_chunks bool
INSERT INTO embedding_models AS m (
    name, dimension, provider, digest, similarity_threshold, cosine_low, cosine_high, embeds_chunks
)
VALUES (
    :name, :dimension, :provider, :digest, :similarity_threshold, :cosine_low, :cosine_high, :embeds_chunks
)
ON CONFLICT (name) DO UPDATE
    SET
        dimension = excluded.dimension, provider = excluded.provider, digest = excluded.digest,
        similarity_threshold = excluded.similarity_threshold, cosine_low = excluded.cosine_low,
        cosine_high = excluded.cosine_high,
        embeds_chunks = m.embeds_chunks OR excluded.embeds_chunks,
        created_at = CASE WHEN m.retired_at IS NULL THEN m.created_at ELSE now() END, retired_at = NULL;

-- name: fetch_model^
-- params:  name text
-- returns: name text, dimension int, provider text, digest text, similarity_threshold float8, cosine_low float8,
--          cosine_high float8, embeds_chunks bool, windows_hash text (null: no windows), retired bool
SELECT
    m.name, m.dimension, m.provider, m.digest, m.similarity_threshold, m.cosine_low, m.cosine_high, m.embeds_chunks,
    m.windows_hash, m.retired_at IS NOT NULL AS retired
FROM embedding_models AS m WHERE m.name = :name;

-- name: sample_texts
-- The beginnings of some notes, spread evenly and always the same ones.
-- params:  most int, chars int
-- returns: content text
SELECT left(n.content, :chars) AS content FROM notes AS n
WHERE length(n.content) >= 100
ORDER BY md5(n.id::text) LIMIT :most;

-- name: list_models
-- Every model ever registered.
-- returns: name text
SELECT m.name FROM embedding_models AS m ORDER BY m.name;

-- name: create_partitions!
-- params:  name text, dimension int
CALL create_model_partitions(:name, :dimension);

-- name: lock_for_partitions!
-- Take, together and first, the locks that the foreign keys of a new partition need anyway. Until commit no note can be
-- chunked: request_missing_embeddings queues the notes chunked before, and notes chunked later see the new model (see
-- announce_chunking). Otherwise a note chunked in between would never be queued for it.
LOCK TABLE notes, chunks, embedding_models IN SHARE ROW EXCLUSIVE MODE;

-- name: request_missing_embeddings!
-- Queue every chunked note that lacks a vector of a model; run once, when the model starts to embed chunks.
-- params:  model text
INSERT INTO pending_vectors (model, kind, note_id, tenant_id)
SELECT DISTINCT :model, 'chunk' AS kind, c.note_id, c.tenant_id FROM chunks AS c
LEFT JOIN chunk_embeddings AS e ON e.model = :model AND e.chunk_id = c.id
WHERE e.contextual_sha256 IS DISTINCT FROM c.contextual_sha256
ON CONFLICT (model, kind, note_id) DO NOTHING;

-- name: keep_model!
-- Keep the model from being retired until commit.
-- params:  name text
SELECT pg_advisory_xact_lock_shared(hashtextextended('model ' || :name, 0));

-- name: claim_model$
-- Claim a model: until commit nobody else can make its vectors (keep_model) or index them (claim_indexes).
-- params:  name text
-- returns: bool (false: somebody is doing so already)
SELECT
    pg_try_advisory_xact_lock(hashtextextended('model ' || :name, 0))
    AND pg_try_advisory_xact_lock(hashtextextended('indexes of chunk_embeddings_' || :name, 0))
    AND pg_try_advisory_xact_lock(hashtextextended('indexes of chunk_windows_' || :name, 0));

-- name: model_contents
-- What is stored for each model, or for one.
-- params:  name text or null
-- returns: name text, state text, chunk_vectors bigint (chunks), note_vectors bigint, pending bigint (notes),
--          windows bigint, windowed_chunks bigint, pending_windows bigint (notes), failures bigint,
--          size bigint (bytes of vectors and indexes)
SELECT
    m.name, m.state,
    (SELECT count(*) FROM chunk_embeddings AS e WHERE e.model = m.name) AS chunk_vectors,
    (SELECT count(*) FROM note_embeddings AS e WHERE e.model = m.name) AS note_vectors,
    (
        SELECT count(*) FROM pending_vectors AS p INNER JOIN notes AS n ON n.id = p.note_id
        WHERE p.model = m.name AND p.kind = 'chunk' AND n.chunked_at IS NOT NULL
    ) AS pending,
    w.windows, w.windowed_chunks,
    (
        SELECT count(*) FROM pending_vectors AS p INNER JOIN notes AS n ON n.id = p.note_id
        WHERE p.model = m.name AND p.kind = 'window' AND n.chunked_at IS NOT NULL
    ) AS pending_windows,
    (SELECT count(*) FROM indexing_failures AS f WHERE f.model = m.name) AS failures,
    coalesce(pg_total_relation_size(to_regclass('chunk_embeddings_' || m.name)), 0)
    + coalesce(pg_total_relation_size(to_regclass('chunk_windows_' || m.name)), 0)
    + coalesce(pg_total_relation_size(to_regclass('note_embeddings_' || m.name)), 0) AS size
FROM embedding_models AS m
CROSS JOIN
    LATERAL (
        SELECT count(*) AS windows, count(*) FILTER (WHERE c.window_index = 0) AS windowed_chunks
        FROM chunk_windows AS c WHERE c.model = m.name
    ) AS w
WHERE :name::text IS NULL OR m.name = :name
ORDER BY m.name;

-- name: lock_chunking!
-- Keep notes from being chunked until commit, so that none is queued for a model that is about to be retired.
LOCK TABLE chunks IN SHARE ROW EXCLUSIVE MODE;

-- name: mark_retired!
-- Retire a model, and forget what waits for it and what failed.
-- params:  name text
WITH queue AS (
    DELETE FROM pending_vectors WHERE model = :name
),

failures AS (
    DELETE FROM indexing_failures WHERE model = :name
)

UPDATE embedding_models SET retired_at = now(), embeds_chunks = FALSE, windows_hash = NULL WHERE name = :name;

-- name: drop_partitions!
-- params:  name text
CALL drop_model_partitions(:name);
