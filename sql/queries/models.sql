-- name: register_model!
-- Register a model, update the properties that may change, or bring a retired one back.
-- params:  name text, dimension int, provider text, digest text, similarity_threshold float8, cosine_low float8,
--          cosine_high float8, kinds text[], windows_hash text or null (the same)
INSERT INTO embedding_models AS m (
    name, dimension, provider, digest, similarity_threshold, cosine_low, cosine_high, kinds, windows_hash
)
VALUES (
    :name, :dimension, :provider, :digest, :similarity_threshold, :cosine_low, :cosine_high, :kinds, :windows_hash
)
ON CONFLICT (name) DO UPDATE
    SET
        dimension = excluded.dimension, provider = excluded.provider, digest = excluded.digest,
        similarity_threshold = excluded.similarity_threshold, cosine_low = excluded.cosine_low,
        cosine_high = excluded.cosine_high,
        kinds = excluded.kinds,
        windows_hash = coalesce(excluded.windows_hash, m.windows_hash),
        created_at = CASE WHEN m.retired_at IS NULL THEN m.created_at ELSE now() END, retired_at = NULL;

-- name: fetch_model^
-- params:  name text
-- returns: name text, dimension int, provider text, digest text, similarity_threshold float8, cosine_low float8,
--          cosine_high float8, kinds text[], windows_hash text (null: no windows), retired bool
SELECT
    m.name, m.dimension, m.provider, m.digest, m.similarity_threshold, m.cosine_low, m.cosine_high, m.kinds,
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
-- chunked: request_missing_vectors queues the notes chunked before, and notes chunked later see the new model (see
-- announce_chunking). Otherwise a note chunked in between would never be queued for it.
LOCK TABLE notes, chunks, embedding_models IN SHARE ROW EXCLUSIVE MODE;

-- name: request_missing_vectors!
-- Queue every note that has chunks for a model; run when it starts to make another kind of vectors of them. Notes that
-- have all of them leave the queue as soon as they are looked at.
-- params:  model text
INSERT INTO pending_vectors (model, note_id, tenant_id)
SELECT DISTINCT :model, c.note_id, c.tenant_id FROM chunks AS c
ON CONFLICT (model, note_id) DO NOTHING;

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
    AND pg_try_advisory_xact_lock(hashtextextended('indexes of ' || :name, 0));

-- name: model_contents
-- What is stored for each model, or for one.
-- params:  name text or null
-- returns: name text, state text, vectors jsonb (how many of each kind), pending bigint (chunked notes),
--          failures bigint, size bigint (bytes of vectors and indexes)
SELECT
    m.name, m.state,
    (
        SELECT coalesce(jsonb_object_agg(k.kind, k.vectors), '{}')
        FROM (SELECT v.kind, count(*) AS vectors FROM vectors AS v WHERE v.model = m.name GROUP BY v.kind) AS k
    ) AS vectors,
    (
        SELECT count(*) FROM pending_vectors AS p INNER JOIN notes AS n ON n.id = p.note_id
        WHERE p.model = m.name AND n.chunked_at IS NOT NULL
    ) AS pending,
    (SELECT count(*) FROM indexing_failures AS f WHERE f.model = m.name) AS failures,
    (
        SELECT coalesce(sum(pg_total_relation_size(t.relid)), 0)::bigint
        FROM pg_partition_tree(to_regclass('vectors_' || m.name)) AS t
    ) AS size
FROM embedding_models AS m
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

UPDATE embedding_models SET retired_at = now(), kinds = '{}', windows_hash = NULL WHERE name = :name;

-- name: drop_partitions!
-- params:  name text
CALL drop_model_partitions(:name);
