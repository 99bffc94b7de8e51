-- name: find_index^
-- params:  index_name text
-- returns: valid bool; no row if there is none
SELECT i.indisvalid AS valid FROM pg_index AS i
INNER JOIN pg_class AS c ON c.oid = i.indexrelid
WHERE c.relname = :index_name AND c.relnamespace = current_schema()::regnamespace;

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
