-- name: migration_by_month
-- The migration's progress, by month. Expired notes count only as expired and in their errors.
-- params:  chunking_hash text
-- returns: month timestamptz (start, UTC), notes, chunked, migrated, sound, failed, refused, expired, failures bigint
WITH failing AS (
    SELECT
        f.note_id, count(*) AS failures,
        bool_or(f.stage = 'chunk') AS is_refused, bool_or(f.stage <> 'embed_note') AS is_failed
    FROM indexing_failures AS f GROUP BY f.note_id
)

SELECT
    date_trunc('month', s.created_at, 'UTC') AS month,
    count(*) FILTER (WHERE s.lives) AS notes,
    count(*) FILTER (WHERE s.lives AND s.is_chunked) AS chunked,
    count(*) FILTER (WHERE s.lives AND s.is_migrated) AS migrated,
    count(*) FILTER (WHERE s.lives AND s.is_migrated AND NOT s.is_failed) AS sound,
    count(*) FILTER (WHERE s.lives AND s.is_failed) AS failed,
    count(*) FILTER (WHERE s.lives AND s.is_refused AND NOT s.is_migrated) AS refused,
    count(*) FILTER (WHERE NOT s.lives) AS expired,
    coalesce(sum(s.failures), 0)::bigint AS failures
FROM (
    SELECT
        n.created_at, f.failures,
        n.expires_at IS NULL OR n.expires_at > now() AS lives,
        n.chunked_at IS NOT NULL AS is_chunked,
        coalesce(n.chunked_at IS NOT NULL AND n.chunking_hash = :chunking_hash, FALSE) AS is_migrated,
        coalesce(f.is_refused, FALSE) AS is_refused,
        coalesce(f.is_failed, FALSE) AS is_failed
    FROM notes AS n LEFT JOIN failing AS f ON f.note_id = n.id
) AS s GROUP BY month ORDER BY month;

-- name: list_chunk_models
-- The models that embed every chunk.
-- returns: name text, state text
SELECT m.name, m.state FROM embedding_models AS m WHERE m.embeds_chunks AND m.state <> 'retired' ORDER BY m.name;

-- name: queues_by_month
-- Queued notes and their chunks, by month and model. A note leaves the queue when all its chunks have current vectors,
-- so the vectors themselves need not be read.
-- returns: month timestamptz (start, UTC), model text, notes bigint, chunks bigint, sound_chunks bigint: those of the
--          notes without an error
WITH lengths AS (
    SELECT c.note_id, count(*) AS chunks FROM chunks AS c GROUP BY c.note_id
),

failing AS (
    SELECT DISTINCT f.model, f.note_id FROM indexing_failures AS f WHERE f.stage = 'embed_chunk'
)

SELECT
    date_trunc('month', n.created_at, 'UTC') AS month, p.model, count(*) AS notes,
    coalesce(sum(l.chunks), 0)::bigint AS chunks,
    coalesce(sum(l.chunks) FILTER (WHERE f.note_id IS NULL), 0)::bigint AS sound_chunks
FROM pending_vectors AS p
INNER JOIN notes AS n ON n.id = p.note_id AND n.chunked_at IS NOT NULL
LEFT JOIN lengths AS l ON l.note_id = p.note_id
LEFT JOIN failing AS f ON f.model = p.model AND f.note_id = p.note_id
WHERE p.kind = 'chunk'
GROUP BY month, p.model ORDER BY month, p.model;

-- name: errors_by_kind
-- How many texts could not be indexed, by stage and model, with the latest of each as examples.
-- params:  examples int (>= 1)
-- returns: stage text, model text or null, total bigint, note_id uuid, external_id text, error jsonb
SELECT e.stage, e.model, e.total, e.note_id, coalesce(n.external_id, n.id::text) AS external_id, e.error
FROM (
    SELECT
        f.stage, f.model, f.note_id, f.error, count(*) OVER (PARTITION BY f.stage, f.model) AS total,
        row_number() OVER (PARTITION BY f.stage, f.model ORDER BY f.occurred_at DESC, f.id) AS recency
    FROM indexing_failures AS f
) AS e INNER JOIN notes AS n ON n.id = e.note_id
WHERE e.recency <= :examples ORDER BY e.stage, e.model, e.recency;

-- name: latest_embedding_work
-- The latest embedding transactions of the given models, with the number of vectors and the times of each.
-- params:  models text[], row_limit int (of each model)
-- returns: model text, vectors bigint, started_at timestamptz, finished_at timestamptz
-- index:   embedding_work_latest_idx
SELECT w.model, 2 * w.chunks AS vectors, w.started_at, w.finished_at
FROM unnest(:models::text[]) AS m (name)
INNER JOIN LATERAL ( -- noqa: ST05
    SELECT l.* FROM embedding_work AS l WHERE l.model = m.name ORDER BY l.id DESC LIMIT :row_limit
) AS w ON TRUE
ORDER BY w.model, w.id;

-- name: latest_chunking_work
-- The latest chunking transactions: when each began and how many notes it chunked.
-- params:  row_limit int
-- returns: started_at timestamptz, notes bigint, latest first
SELECT n.chunked_at AS started_at, count(*) AS notes FROM notes AS n
WHERE n.chunked_at IS NOT NULL
GROUP BY n.chunked_at ORDER BY n.chunked_at DESC LIMIT :row_limit;

-- name: migration_activity^
-- The time, the number of chunks, and whether a run is working on the embedding queue: only such a run locks its rows
-- or adds to it.
-- returns: read_at timestamptz, chunks bigint, is_working bool
SELECT
    now() AS read_at,
    (SELECT count(*) FROM chunks) AS chunks,
    (
        SELECT count(*) > 0 FROM pg_locks AS l
        INNER JOIN pg_database AS d ON d.oid = l.database AND d.datname = current_database()
        WHERE
            l.locktype = 'relation' AND l.relation = 'pending_vectors'::regclass
            AND l.mode IN ('RowShareLock', 'RowExclusiveLock') AND l.pid <> pg_backend_pid()
    ) AS is_working;
