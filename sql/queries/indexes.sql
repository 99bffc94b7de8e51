-- name: find_index^
-- params:  index_name text
-- returns: valid bool; no row if there is none
SELECT i.indisvalid AS valid FROM pg_index AS i
INNER JOIN pg_class AS c ON c.oid = i.indexrelid
WHERE c.relname = :index_name AND c.relnamespace = current_schema()::regnamespace;

-- name: fetch_backfill^
-- The progress of a model: all notes, those that lack current chunks or vectors, and whether it serves.
-- params:  model text
-- returns: notes bigint, waiting bigint, serves bool
-- index:   notes_unchunked_idx, pending_vectors_pkey
SELECT
    (SELECT count(*) FROM notes) AS notes,
    (SELECT count(*) FROM notes AS n WHERE n.chunked_at IS NULL AND (n.expires_at IS NULL OR n.expires_at > now()))
    + (
        SELECT count(*) FROM pending_vectors AS p INNER JOIN notes AS n ON n.id = p.note_id
        WHERE p.model = m.name AND n.chunked_at IS NOT NULL
    ) AS waiting,
    m.state = 'serving' AS serves
FROM embedding_models AS m WHERE m.name = :model;

-- name: build_vector_index!
-- Build an HNSW index on halfvec without blocking readers or writers; m and ef_construction are pgvector's defaults.
CREATE INDEX CONCURRENTLY IF NOT EXISTS {index} ON {table}
USING hnsw ((embedding::halfvec({dimension})) halfvec_cosine_ops);

-- name: build_own_index!
-- The same over the vectors of one tenant.
CREATE INDEX CONCURRENTLY IF NOT EXISTS {index} ON {table}
USING hnsw ((embedding::halfvec({dimension})) halfvec_cosine_ops) WHERE tenant_id = {tenant};

-- name: fit_build_memory^
-- Set the build memory for one index to what its rows need, up to the server's limit: a parallel build takes all that
-- is set. For each row, pgvector 0.8 with m = 16 keeps the halfvec and 720 bytes (measured). A tenth is added because
-- the number of layers is random. The setting lasts until the session ends or resets it.
-- params:  row_count bigint, dimension int
-- returns: needed_kb bigint, allowed_kb bigint
WITH memory AS (
    SELECT
        greatest(16384, (:row_count::bigint * (2 * :dimension + 720) * 1.1 / 1024)::bigint) AS needed_kb,
        s.reset_val::bigint AS allowed_kb
    FROM pg_settings AS s WHERE s.name = 'maintenance_work_mem'
)

SELECT
    m.needed_kb,
    m.allowed_kb
FROM memory AS m,
    LATERAL set_config('maintenance_work_mem', least(m.needed_kb, m.allowed_kb)::text, FALSE);

-- name: reset_build_memory!
RESET maintenance_work_mem;

-- name: drop_index!
DROP INDEX CONCURRENTLY IF EXISTS {index};

-- name: is_analyzed$
-- Whether the planner's estimate of a table's size is close to the given row count.
-- params:  table_name text, row_count bigint
-- returns: bool
SELECT c.reltuples BETWEEN 0.9 * :row_count AND 1.1 * :row_count FROM pg_class AS c
WHERE c.relname = :table_name AND c.relnamespace = current_schema()::regnamespace;

-- name: count_vectors
-- returns: vectors bigint
SELECT count(*) AS vectors FROM {table};

-- name: analyze_table!
ANALYZE {table};

-- name: claim_indexes$
-- Claim a model's indexes until the session ends or releases them, since a build takes several transactions.
-- params:  model text
-- returns: bool (false: another session has them)
SELECT pg_try_advisory_lock(hashtextextended('indexes of ' || :model, 0));

-- name: release_indexes$
-- params:  model text
-- returns: bool
SELECT pg_advisory_unlock(hashtextextended('indexes of ' || :model, 0));
