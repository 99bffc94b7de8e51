-- name: index_is_current$
-- Whether every note of a range of months is chunked as configured and has all vectors of the given models.
-- params:  month_start timestamptz, month_end timestamptz, chunking_hash text, models text[], wanted jsonb (of each
--          model {name, kinds, windows_hash or null})
-- returns: bool
SELECT
    NOT EXISTS (
        SELECT FROM notes AS n
        WHERE
            n.created_at >= :month_start AND n.created_at < :month_end
            AND (n.chunked_at IS NULL OR n.chunking_hash IS DISTINCT FROM :chunking_hash)
            AND (n.expires_at IS NULL OR n.expires_at > now())
    )
    AND NOT EXISTS (SELECT FROM pending_vectors AS p WHERE p.model = ANY(:models))
    AND NOT EXISTS (
        SELECT FROM jsonb_to_recordset(:wanted) AS w (name text, kinds text[], windows_hash text)
        WHERE
            NOT EXISTS (
                SELECT FROM embedding_models AS m
                WHERE
                    m.name = w.name AND m.kinds @> w.kinds
                    AND (w.windows_hash IS NULL OR m.windows_hash = w.windows_hash)
            )
    );

-- name: list_waiting_months
-- The months with notes that wait to be chunked, or for vectors of a model, beside notes of the month that
-- do not, oldest first: a month that was never made waits for its backfill. Notes of the last half minute, which
-- somebody may be indexing, and notes that failed do not count.
-- params:  models text[]
-- returns: month timestamptz (start, UTC), steps text[] (what they wait for), notes bigint, written_at timestamptz (the
--          latest of them)
-- index:   notes_unchunked_idx, pending_vectors_pkey, notes_newest_idx
WITH waiting AS (
    SELECT 'chunk' AS step, '' AS model, n.id FROM notes AS n WHERE n.chunked_at IS NULL
    UNION ALL
    SELECT 'embed_chunk' AS step, p.model, p.note_id FROM pending_vectors AS p WHERE p.model = ANY(:models)
),

failed AS (
    SELECT DISTINCT f.note_id, f.stage, coalesce(f.model, '') AS model FROM indexing_failures AS f
),

due AS (
    SELECT
        w.step, w.model, date_trunc('month', n.created_at, 'UTC') AS month, n.updated_at,
        n.updated_at < now() - interval '30 seconds' AND (n.expires_at IS NULL OR n.expires_at > now())
        AND f.note_id IS NULL AS is_due
    FROM waiting AS w
    INNER JOIN notes AS n ON n.id = w.id
    LEFT JOIN failed AS f ON f.note_id = w.id AND f.stage = w.step AND f.model = w.model
),

months AS (
    SELECT
        d.step, d.month, count(*) AS all_notes, count(*) FILTER (WHERE d.is_due) AS notes,
        max(d.updated_at) FILTER (WHERE d.is_due) AS written_at
    FROM due AS d GROUP BY d.step, d.model, d.month
)

SELECT
    m.month, array_agg(DISTINCT m.step ORDER BY m.step) AS steps, sum(m.notes)::bigint AS notes,
    max(m.written_at) AS written_at
FROM months AS m
CROSS JOIN
    LATERAL (
        SELECT count(*) AS chunked FROM notes AS n
        WHERE n.chunked_at IS NOT NULL AND n.created_at >= m.month AND n.created_at < m.month + interval '1 month'
    ) AS c
WHERE m.notes > 0 AND c.chunked > CASE m.step WHEN 'chunk' THEN 0 ELSE m.all_notes END
GROUP BY m.month ORDER BY m.month;
