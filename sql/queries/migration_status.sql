-- name: migration_by_month
-- The migration's progress, by month, without expired notes.
-- params:  chunking_hash text
-- returns: month timestamptz (start, UTC), notes, chunked, migrated, failed bigint
SELECT
    date_trunc('month', n.created_at, 'UTC') AS month,
    count(*) AS notes,
    count(n.chunked_at) AS chunked,
    count(n.chunked_at) FILTER (WHERE n.chunking_hash = :chunking_hash) AS migrated,
    count(*) FILTER (
        WHERE EXISTS (SELECT FROM indexing_failures AS f WHERE f.note_id = n.id AND f.stage <> 'embed_note')
    ) AS failed
FROM notes AS n WHERE n.expires_at IS NULL OR n.expires_at > now()
GROUP BY month ORDER BY month;

-- name: list_chunk_models
-- The models that make vectors of every chunk.
-- returns: name text, state text
SELECT m.name, m.state FROM embedding_models AS m
WHERE m.kinds && '{chunk,contextual,window}' AND m.state <> 'retired' ORDER BY m.name;

-- name: queues_by_month
-- Queued notes and their chunks, by month and model. A note leaves the queue when all its chunks have current vectors,
-- so the vectors themselves need not be read.
-- returns: month timestamptz (start, UTC), model text, notes bigint, chunks bigint
WITH lengths AS (
    SELECT c.note_id, count(*) AS chunks FROM chunks AS c GROUP BY c.note_id
)

SELECT
    date_trunc('month', n.created_at, 'UTC') AS month, p.model, count(*) AS notes,
    coalesce(sum(l.chunks), 0)::bigint AS chunks
FROM pending_vectors AS p
INNER JOIN notes AS n ON n.id = p.note_id AND n.chunked_at IS NOT NULL
LEFT JOIN lengths AS l ON l.note_id = p.note_id
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
SELECT w.model, w.vectors, w.started_at, w.finished_at
FROM unnest(:models::text[]) AS m (name)
INNER JOIN LATERAL ( -- noqa: ST05
    SELECT l.* FROM embedding_work AS l WHERE l.model = m.name ORDER BY l.id DESC LIMIT :row_limit
) AS w ON TRUE
ORDER BY w.model, w.id;

-- name: migration_activity^
-- The time, the number of chunks that are not provisional, and whether a run is working on the embedding queue: only
-- such a run locks its rows or adds to it.
-- returns: read_at timestamptz, chunks bigint, is_working bool
SELECT
    now() AS read_at,
    (SELECT count(*) FROM chunks AS c WHERE c.id <> c.note_id) AS chunks,
    (
        SELECT count(*) > 0 FROM pg_locks AS l
        INNER JOIN pg_database AS d ON d.oid = l.database AND d.datname = current_database()
        WHERE
            l.locktype = 'relation' AND l.relation = 'pending_vectors'::regclass
            AND l.mode IN ('RowShareLock', 'RowExclusiveLock') AND l.pid <> pg_backend_pid()
    ) AS is_working;
