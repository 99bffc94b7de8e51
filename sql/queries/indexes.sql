-- name: find_index^
-- params:  index_name text
-- returns: valid bool; no row if there is none
SELECT i.indisvalid AS valid FROM pg_index AS i
INNER JOIN pg_class AS c ON c.oid = i.indexrelid
WHERE c.relname = :index_name AND c.relnamespace = current_schema()::regnamespace;

-- name: fetch_backfill^
-- How far a model is: all notes, those without current chunks or vectors of it, and whether it serves.
-- params:  model text
-- returns: notes bigint, waiting bigint, serves bool
-- index:   notes_unchunked_idx, pending_embeddings_pkey
SELECT
    (SELECT count(*) FROM notes) AS notes,
    (SELECT count(*) FROM notes AS n WHERE n.chunked_at IS NULL AND (n.expires_at IS NULL OR n.expires_at > now()))
    + (SELECT count(*) FROM pending_embeddings AS p WHERE p.model = m.name) AS waiting,
    m.state = 'serving' AS serves
FROM embedding_models AS m WHERE m.name = :model;

-- name: build_vector_index!
-- HNSW on halfvec, beside readers and writers; m and ef_construction are pgvector's defaults.
CREATE INDEX CONCURRENTLY IF NOT EXISTS {index} ON {table}
USING hnsw (({column}::halfvec({dimension})) halfvec_cosine_ops);

-- name: drop_index!
DROP INDEX CONCURRENTLY IF EXISTS {index};

-- name: analyze_table!
ANALYZE {table};

-- name: claim_indexes$
-- Until the session ends or releases them: a build in steps is no single transaction.
-- params:  table text
-- returns: bool (false: another session has them)
SELECT pg_try_advisory_lock(hashtextextended('indexes of ' || :table, 0));

-- name: release_indexes$
-- params:  table text
-- returns: bool
SELECT pg_advisory_unlock(hashtextextended('indexes of ' || :table, 0));
