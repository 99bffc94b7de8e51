-- The notes that wait for vectors of a model.

-- name: claim_queued_notes
-- The newest queued notes of a month, locked until commit so that two runs never share one.
-- params:  model text, kind text, month_start timestamptz, month_end timestamptz, skipped uuid[], batch_size int
-- returns: note_id uuid, created_at timestamptz, newest first
SELECT p.note_id, n.created_at FROM pending_vectors AS p
INNER JOIN notes AS n ON n.id = p.note_id
WHERE
    p.model = :model AND p.kind = :kind AND n.created_at >= :month_start AND n.created_at < :month_end
    AND p.note_id <> ALL(:skipped)
    AND (n.chunked_at IS NOT NULL OR n.expires_at IS NULL OR n.expires_at > now())
ORDER BY n.created_at DESC, n.id LIMIT :batch_size
FOR UPDATE OF p SKIP LOCKED;

-- name: count_queued_notes$
-- How many notes of a month claim_queued_notes would find, locked or not.
-- params:  model text, kind text, month_start timestamptz, month_end timestamptz, skipped uuid[]
-- returns: bigint
SELECT count(*) AS notes FROM pending_vectors AS p
INNER JOIN notes AS n ON n.id = p.note_id
WHERE
    p.model = :model AND p.kind = :kind AND n.created_at >= :month_start AND n.created_at < :month_end
    AND p.note_id <> ALL(:skipped)
    AND (n.chunked_at IS NOT NULL OR n.expires_at IS NULL OR n.expires_at > now());

-- name: queue_is_empty$
-- Whether no note of a range of months is queued.
-- params:  model text, kind text, month_start timestamptz, month_end timestamptz
-- returns: bool
SELECT
    NOT EXISTS (
        SELECT FROM pending_vectors AS p INNER JOIN notes AS n ON n.id = p.note_id
        WHERE p.model = :model AND p.kind = :kind AND n.created_at >= :month_start AND n.created_at < :month_end
    ) AS is_empty;

-- name: count_pending_notes
-- How many chunked notes wait for vectors of their chunks, by model.
-- returns: model text, notes bigint
-- index:   pending_vectors_pkey
SELECT p.model, count(*) AS notes FROM pending_vectors AS p
INNER JOIN notes AS n ON n.id = p.note_id AND n.chunked_at IS NOT NULL
WHERE p.kind = 'chunk' GROUP BY p.model ORDER BY p.model;
