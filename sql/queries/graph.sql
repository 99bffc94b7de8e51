-- The parts of the graph, their queue, and the rows extracted from notes.

-- name: fetch_graph_version$
-- The version of a part of the graph; null if it was never made.
-- params:  part text
-- returns: text
SELECT g.version FROM graph_parts AS g WHERE g.part = :part;

-- name: lock_for_graph!
-- Wait for the transactions that change chunks, so that every chunked note is either queued by them or by
-- request_whole_graph.
LOCK TABLE chunks IN SHARE MODE;

-- name: set_graph_version!
-- params:  part text, version text
INSERT INTO graph_parts (part, version) VALUES (:part, :version)
ON CONFLICT (part) DO UPDATE SET version = excluded.version;

-- name: request_whole_graph!
-- Queue every chunked note for a part.
-- params:  part text
INSERT INTO pending_graph (tenant_id, note_id, part)
SELECT n.tenant_id, n.id, :part FROM notes AS n
WHERE n.chunked_at IS NOT NULL
ORDER BY n.id
ON CONFLICT (note_id, part, tenant_id) DO UPDATE SET requested_at = now();

-- name: request_graph!
-- Queue notes for every registered part. Run it before changing their chunks, as request_embeddings.
-- params:  note_ids uuid[]
INSERT INTO pending_graph (tenant_id, note_id, part)
SELECT n.tenant_id, n.id, g.part FROM graph_parts AS g CROSS JOIN notes AS n
WHERE n.id = ANY(:note_ids) ORDER BY n.id, g.part
ON CONFLICT (note_id, part, tenant_id) DO UPDATE SET requested_at = now();

-- name: claim_graph_notes
-- The newest queued notes of a month, locked until commit so that two runs never share one.
-- params:  part text, month_start timestamptz, month_end timestamptz, skipped uuid[], batch_size int
-- returns: note_id uuid, created_at timestamptz, newest first
SELECT p.note_id, n.created_at FROM pending_graph AS p
INNER JOIN notes AS n ON n.id = p.note_id
WHERE
    p.part = :part AND n.created_at >= :month_start AND n.created_at < :month_end
    AND n.chunked_at IS NOT NULL AND p.note_id <> ALL(:skipped)
ORDER BY n.created_at DESC, n.id LIMIT :batch_size
FOR UPDATE OF p SKIP LOCKED;

-- name: count_graph_notes$
-- How many notes of a month claim_graph_notes would find, locked or not.
-- params:  part text, month_start timestamptz, month_end timestamptz, skipped uuid[]
-- returns: bigint
SELECT count(*) FROM pending_graph AS p
INNER JOIN notes AS n ON n.id = p.note_id
WHERE
    p.part = :part AND n.created_at >= :month_start AND n.created_at < :month_end
    AND n.chunked_at IS NOT NULL AND p.note_id <> ALL(:skipped);

-- name: select_notes_to_read
-- The chunks of some notes, in order.
-- params:  note_ids uuid[]
-- returns: note_id uuid, tenant_id text, title text, tags text[], chunk_ids uuid[], contents text[]
-- index:   chunks_position_key
SELECT
    n.id AS note_id, n.tenant_id, n.title, n.tags,
    array_agg(c.id ORDER BY c.chunk_index) AS chunk_ids, array_agg(c.content ORDER BY c.chunk_index) AS contents
FROM notes AS n INNER JOIN chunks AS c ON c.note_id = n.id
WHERE n.id = ANY(:note_ids)
GROUP BY n.id
ORDER BY n.id;

-- name: add_entities!
-- Insert entities; existing ones stay as they are.
-- params:  a row for each: tenants text[], ids uuid[], kinds text[], keys text[], names text[]
INSERT INTO entities (tenant_id, id, kind, key, name)
SELECT u.* FROM unnest(:tenants::text[], :ids::uuid[], :kinds::text[], :keys::text[], :names::text[]) AS u
ON CONFLICT (tenant_id, id) DO NOTHING;

-- name: keep_entities
-- Lock entities against deletion until commit; one that is gone already is missing from the result.
-- params:  a row for each: tenants text[], ids uuid[]
-- returns: id uuid
SELECT e.id FROM entities AS e
INNER JOIN unnest(:tenants::text[], :ids::uuid[]) AS u (tenant_id, id) ON u.tenant_id = e.tenant_id AND u.id = e.id
ORDER BY e.tenant_id, e.id
FOR KEY SHARE OF e;

-- name: delete_other_mentions!
-- Delete the mentions of chunks that are not among the given ones.
-- params:  chunk_ids uuid[], and a row for each mention: entities uuid[], chunks uuid[], starts int[], ends int[]
-- index:   mentions_chunk_idx
DELETE FROM mentions AS m
WHERE
    m.chunk_id = ANY(:chunk_ids)
    AND NOT EXISTS (
        SELECT
        FROM
            unnest(:entities::uuid[], :chunks::uuid[], :starts::integer[], :ends::integer[])
                AS g (entity_id, chunk_id, start_char, end_char)
        WHERE (g.entity_id, g.chunk_id, g.start_char, g.end_char) = (m.entity_id, m.chunk_id, m.start_char, m.end_char)
    );

-- name: add_mentions!
-- params:  extractor text, version text, and a row for each mention: tenants text[], entities uuid[], chunks uuid[],
--          notes uuid[], starts int[], ends int[]
INSERT INTO mentions AS m (tenant_id, entity_id, chunk_id, note_id, start_char, end_char, extractor, version)
SELECT g.*, :extractor, :version
FROM
    unnest(
        :tenants::text[], :entities::uuid[], :chunks::uuid[], :notes::uuid[], :starts::integer[], :ends::integer[]
    ) AS g
ON CONFLICT (tenant_id, entity_id, chunk_id, start_char) DO UPDATE
    SET extractor = excluded.extractor, version = excluded.version
    WHERE (m.extractor, m.version) IS DISTINCT FROM (excluded.extractor, excluded.version);

-- name: delete_other_relationships!
-- Delete the statements of chunks whose ids are not listed.
-- params:  chunk_ids uuid[], ids uuid[]
-- index:   relationships_chunk_idx
DELETE FROM relationships AS r WHERE r.chunk_id = ANY(:chunk_ids) AND r.id <> ALL(:ids);

-- name: add_relationships!
-- params:  extractor text, version text, and a row for each statement: tenants text[], ids uuid[], sources uuid[],
--          targets uuid[], types text[], confidences float8[], chunks uuid[], notes uuid[], markers text[],
--          marker_starts int[], marker_ends int[], cause_starts int[], cause_ends int[], effect_starts int[],
--          effect_ends int[]
INSERT INTO relationships AS r (
    tenant_id, id, source_id, target_id, type, confidence, chunk_id, note_id, marker, marker_start, marker_end,
    cause_start, cause_end, effect_start, effect_end, extractor, version
)
SELECT g.*, :extractor, :version
FROM
    unnest(
        :tenants::text[], :ids::uuid[], :sources::uuid[], :targets::uuid[], :types::text[], :confidences::float8[],
        :chunks::uuid[], :notes::uuid[], :markers::text[], :marker_starts::integer[], :marker_ends::integer[],
        :cause_starts::integer[], :cause_ends::integer[], :effect_starts::integer[], :effect_ends::integer[]
    ) AS g
ON CONFLICT (tenant_id, id) DO UPDATE
    SET confidence = excluded.confidence, extractor = excluded.extractor, version = excluded.version
    WHERE (r.confidence, r.extractor, r.version)
    IS DISTINCT FROM (excluded.confidence, excluded.extractor, excluded.version);

-- name: complete_pending_graph
-- Remove notes from the queue of a part.
-- params:  part text, note_ids uuid[]
-- returns: note_id uuid
DELETE FROM pending_graph AS p WHERE p.part = :part AND p.note_id = ANY(:note_ids) RETURNING p.note_id;

-- name: forget_orphans!
-- Delete the entities that nothing names any more, unless notes still wait to be read: they may name them again.
WITH orphans AS MATERIALIZED (
    SELECT e.tenant_id, e.id FROM entities AS e
    WHERE
        NOT EXISTS (
            SELECT FROM pending_graph AS p WHERE p.tenant_id = e.tenant_id
        )
        AND NOT EXISTS (SELECT FROM notes AS w WHERE w.tenant_id = e.tenant_id AND w.chunked_at IS NULL)
        AND NOT EXISTS (SELECT FROM mentions AS m WHERE m.tenant_id = e.tenant_id AND m.entity_id = e.id)
        AND NOT EXISTS (SELECT FROM relationships AS r WHERE r.tenant_id = e.tenant_id AND r.source_id = e.id)
        AND NOT EXISTS (SELECT FROM relationships AS r WHERE r.tenant_id = e.tenant_id AND r.target_id = e.id)
    ORDER BY e.tenant_id, e.id
    FOR UPDATE OF e SKIP LOCKED
)

DELETE FROM entities AS e USING orphans AS o WHERE e.tenant_id = o.tenant_id AND e.id = o.id;

-- name: graph_is_current$
-- Whether parts have the given versions, and no chunked note of a range of months waits for them.
-- params:  parts text[], versions text[] (one for each), month_start timestamptz, month_end timestamptz
-- returns: bool
SELECT
    NOT EXISTS (
        SELECT FROM unnest(:parts::text[], :versions::text[]) AS w (part, version)
        WHERE NOT EXISTS (SELECT FROM graph_parts AS g WHERE g.part = w.part AND g.version = w.version)
    )
    AND NOT EXISTS (
        SELECT FROM pending_graph AS p INNER JOIN notes AS n ON n.id = p.note_id
        WHERE
            p.part = ANY(:parts) AND n.created_at >= :month_start AND n.created_at < :month_end
            AND n.chunked_at IS NOT NULL
    );

-- name: count_graph_gaps^
-- How many chunked notes of a range of months a part has not read, and how many of its rows are wrong.
-- params:  part text, month_start timestamptz, month_end timestamptz
-- returns: notes bigint, waiting bigint, found bigint (mentions or statements), out_of_bounds bigint
SELECT
    (
        SELECT count(*) FROM notes AS a
        WHERE a.created_at >= :month_start AND a.created_at < :month_end AND a.chunked_at IS NOT NULL
    ) AS notes,
    (
        SELECT count(*) FROM pending_graph AS p INNER JOIN notes AS w ON w.id = p.note_id
        WHERE
            p.part = :part AND w.created_at >= :month_start AND w.created_at < :month_end
            AND w.chunked_at IS NOT NULL
    ) AS waiting,
    count(x.last_char) AS found,
    count(*) FILTER (WHERE x.last_char > char_length(c.content)) AS out_of_bounds
FROM notes AS n
INNER JOIN chunks AS c ON c.note_id = n.id
LEFT JOIN
    LATERAL (
        SELECT m.end_char AS last_char FROM mentions AS m WHERE :part = 'mentions' AND m.chunk_id = c.id
        UNION ALL
        SELECT greatest(r.cause_end, r.effect_end, r.marker_end) AS last_char FROM relationships AS r
        WHERE :part = 'causal_statements' AND r.chunk_id = c.id
    ) AS x
    ON TRUE
WHERE n.created_at >= :month_start AND n.created_at < :month_end AND n.chunked_at IS NOT NULL;
