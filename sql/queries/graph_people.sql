-- The causal graph for people: what they look at, and what they decide.

-- name: find_entities
-- The entities with one of these keys, or this id: by the first key, names before events.
-- params:  tenant text, keys text[], id uuid or null
-- returns: id uuid, kind text, name text
-- index:   entities_key_idx, entities_pkey
SELECT e.id, e.kind, e.name FROM entities AS e
WHERE e.tenant_id = :tenant AND (e.key = ANY(:keys) OR e.id = :id::uuid)
ORDER BY array_position(:keys::text[], e.key), array_position(ARRAY['name', 'tag', 'date', 'event'], e.kind), e.id;

-- name: entity_notes
-- The notes that name an entity or one of its aliases, newest first.
-- params:  tenant text, id uuid, row_limit int
-- returns: note text, title text, created_at timestamptz, mentions bigint
SELECT coalesce(n.external_id, n.id::text) AS note, n.title, n.created_at, count(*) AS mentions
FROM mentions AS m INNER JOIN notes AS n ON n.id = m.note_id
WHERE
    m.tenant_id = :tenant AND (n.expires_at IS NULL OR n.expires_at > now())
    AND (
        m.entity_id = :id
        OR m.entity_id IN (
            SELECT a.alias_id FROM entity_aliases AS a
            WHERE a.tenant_id = :tenant AND a.entity_id = :id AND a.state = 'confirmed'
        )
    )
GROUP BY n.id
ORDER BY n.created_at DESC, n.id LIMIT :row_limit;

-- name: entity_company
-- The names and tags that share most chunks with an entity, without expired notes.
-- params:  tenant text, id uuid, row_limit int
-- returns: id uuid, name text, chunks bigint
SELECT e.id, e.name, count(DISTINCT m.chunk_id) AS chunks
FROM mentions AS o
INNER JOIN mentions AS m ON m.chunk_id = o.chunk_id AND m.tenant_id = o.tenant_id AND m.entity_id <> o.entity_id
INNER JOIN entities AS e ON e.tenant_id = m.tenant_id AND e.id = m.entity_id
INNER JOIN notes AS n ON n.id = m.note_id
WHERE
    o.tenant_id = :tenant AND o.entity_id = :id AND e.kind IN ('name', 'tag')
    AND (n.expires_at IS NULL OR n.expires_at > now())
GROUP BY e.id, e.name
ORDER BY chunks DESC, e.name, e.id LIMIT :row_limit;

-- name: entity_statements
-- The causal statements of which an entity is the cause or effect, or whose words name it; and the confirmed links of
-- an event. Without expired notes.
-- params:  tenant text, id uuid, row_limit int
-- returns: cause_id uuid, cause text, type text, effect_id uuid, effect text, marker text (empty for a link)
-- index:   relationships_source_idx, relationships_target_idx, relationships_chunk_idx, mentions_pkey
SELECT DISTINCT s.id AS cause_id, s.name AS cause, x.type, t.id AS effect_id, t.name AS effect, x.marker
FROM (
    SELECT r.source_id, r.target_id, r.type, r.marker
    FROM (
        SELECT o.id FROM relationships AS o WHERE o.tenant_id = :tenant AND o.source_id = :id
        UNION
        SELECT i.id FROM relationships AS i WHERE i.tenant_id = :tenant AND i.target_id = :id
        UNION
        SELECT w.id
        FROM mentions AS m
        INNER JOIN relationships AS w ON w.chunk_id = m.chunk_id AND w.tenant_id = m.tenant_id
        WHERE
            m.tenant_id = :tenant AND m.entity_id = :id AND m.end_char > 0
            AND (
                (m.start_char >= w.cause_start AND m.end_char <= w.cause_end)
                OR (m.start_char >= w.effect_start AND m.end_char <= w.effect_end)
            )
    ) AS f
    INNER JOIN relationships AS r ON r.tenant_id = :tenant AND r.id = f.id -- noqa: ST09
    INNER JOIN notes AS n ON n.id = r.note_id
    WHERE n.expires_at IS NULL OR n.expires_at > now()
    UNION ALL
    SELECT l.source_id, l.target_id, l.type, '' AS marker FROM event_links AS l
    WHERE
        l.tenant_id = :tenant AND l.state = 'confirmed' AND (l.source_id = :id OR l.target_id = :id)
        AND NOT EXISTS (
            SELECT FROM relationships AS v INNER JOIN notes AS w ON w.id = v.note_id
            WHERE
                v.tenant_id = :tenant AND w.expires_at <= now()
                AND (v.source_id IN (l.source_id, l.target_id) OR v.target_id IN (l.source_id, l.target_id))
        )
) AS x
INNER JOIN entities AS s ON s.tenant_id = :tenant AND s.id = x.source_id
INNER JOIN entities AS t ON t.tenant_id = :tenant AND t.id = x.target_id
ORDER BY s.name, t.name, s.id, t.id, x.type, x.marker LIMIT :row_limit;

-- name: sample_statements
-- Statements that nobody has judged yet, in a random but stable order: by the hash of their id. Without expired notes.
-- params:  tenant text, row_limit int
-- returns: id uuid, note_id uuid, note text, cause text, type text, marker text, effect text, content text
SELECT
    r.id, r.note_id, coalesce(n.external_id, n.id::text) AS note, s.name AS cause, r.type, r.marker,
    t.name AS effect, c.content
FROM relationships AS r
INNER JOIN notes AS n ON n.id = r.note_id
INNER JOIN chunks AS c ON c.id = r.chunk_id
INNER JOIN entities AS s ON s.tenant_id = r.tenant_id AND s.id = r.source_id
INNER JOIN entities AS t ON t.tenant_id = r.tenant_id AND t.id = r.target_id
WHERE
    r.tenant_id = :tenant AND (n.expires_at IS NULL OR n.expires_at > now())
    AND NOT EXISTS (SELECT FROM graph_reviews AS v WHERE v.tenant_id = r.tenant_id AND v.statement_id = r.id)
ORDER BY sha256(uuid_send(r.id)), r.id LIMIT :row_limit;

-- name: record_graph_review!
-- params:  tenant text, statement_id uuid, note_id uuid, is_right bool
INSERT INTO graph_reviews (tenant_id, statement_id, note_id, is_right)
VALUES (:tenant, :statement_id, :note_id, :is_right)
ON CONFLICT (tenant_id, statement_id) DO UPDATE SET is_right = excluded.is_right, reviewed_at = now();

-- name: count_graph_reviews^
-- The judgements of statements that still exist unchanged.
-- params:  tenant text
-- returns: judged bigint, good bigint
SELECT count(*) AS judged, count(*) FILTER (WHERE v.is_right) AS good
FROM graph_reviews AS v INNER JOIN relationships AS r ON r.tenant_id = v.tenant_id AND r.id = v.statement_id
WHERE v.tenant_id = :tenant;

-- name: graph_shape^
-- Names and mentions without expired notes.
-- params:  tenant text, hub_cap int
-- returns: names bigint, lonely bigint (names of one note), hubs bigint (named in more chunks than are followed),
--          widest_name text or null, widest bigint (its notes), mentions bigint, events bigint, statements bigint,
--          links bigint, aliases bigint, proposals bigint (links of a language model that nobody has decided)
WITH named AS MATERIALIZED (
    SELECT e.name, count(DISTINCT m.note_id) AS notes, count(DISTINCT m.chunk_id) AS chunks, count(*) AS mentions
    FROM entities AS e
    INNER JOIN mentions AS m ON m.tenant_id = e.tenant_id AND m.entity_id = e.id
    INNER JOIN notes AS n ON n.id = m.note_id
    WHERE e.tenant_id = :tenant AND (n.expires_at IS NULL OR n.expires_at > now())
    GROUP BY e.id, e.name
)

SELECT
    (SELECT count(*) FROM named) AS names,
    (SELECT count(*) FROM named AS n WHERE n.notes = 1) AS lonely,
    (SELECT count(*) FROM named AS n WHERE n.chunks > :hub_cap) AS hubs,
    (SELECT n.name FROM named AS n ORDER BY n.notes DESC, n.name LIMIT 1) AS widest_name,
    (SELECT coalesce(max(n.notes), 0) FROM named AS n) AS widest,
    (SELECT coalesce(sum(n.mentions), 0)::bigint FROM named AS n) AS mentions,
    (SELECT count(*) FROM entities AS e WHERE e.tenant_id = :tenant AND e.kind = 'event') AS events,
    (SELECT count(*) FROM relationships AS r WHERE r.tenant_id = :tenant) AS statements,
    (SELECT count(*) FROM event_links AS l WHERE l.tenant_id = :tenant AND l.state = 'confirmed') AS links,
    (SELECT count(*) FROM entity_aliases AS a WHERE a.tenant_id = :tenant AND a.state = 'confirmed') AS aliases,
    (
        SELECT count(*) FROM link_proposals AS p
        WHERE
            p.tenant_id = :tenant AND p.cause_id IS NOT NULL
            AND NOT EXISTS (
                SELECT FROM event_links AS l
                WHERE
                    l.tenant_id = p.tenant_id
                    AND (l.source_id, l.target_id) IN ((p.one_id, p.other_id), (p.other_id, p.one_id))
            )
            AND NOT EXISTS (
                SELECT FROM chunks AS c INNER JOIN notes AS n ON n.id = c.note_id
                WHERE c.id IN (p.one_chunk_id, p.other_chunk_id) AND n.expires_at <= now()
            )
    ) AS proposals;

-- name: graph_growth
-- How many mentions and statements a chunked note of each month has, oldest month first.
-- params:  tenant text
-- returns: month date, notes bigint, mentions bigint, statements bigint
WITH named AS (
    SELECT m.note_id, count(*) AS found FROM mentions AS m WHERE m.tenant_id = :tenant GROUP BY m.note_id
),

stated AS (
    SELECT r.note_id, count(*) AS found FROM relationships AS r WHERE r.tenant_id = :tenant GROUP BY r.note_id
)

SELECT
    month_of(n.created_at) AS month, count(*) AS notes, coalesce(sum(m.found), 0)::bigint AS mentions,
    coalesce(sum(r.found), 0)::bigint AS statements
FROM notes AS n
LEFT JOIN named AS m ON m.note_id = n.id
LEFT JOIN stated AS r ON r.note_id = n.id
WHERE n.tenant_id = :tenant AND n.chunked_at IS NOT NULL
GROUP BY month_of(n.created_at)
ORDER BY month;

-- name: list_names
-- All names and tags that a note mentions which has not expired.
-- params:  tenant text
-- returns: id uuid, key text, name text
-- index:   mentions_pkey, notes_expiry_idx
SELECT e.id, e.key, e.name FROM entities AS e
WHERE
    e.tenant_id = :tenant AND e.kind IN ('name', 'tag')
    AND EXISTS (
        SELECT FROM mentions AS m
        WHERE
            m.tenant_id = e.tenant_id AND m.entity_id = e.id
            AND NOT EXISTS (SELECT FROM notes AS n WHERE n.id = m.note_id AND n.expires_at <= now())
    )
ORDER BY e.key, e.id;

-- name: count_notes_of
-- How many notes mention each of some entities, without expired ones.
-- params:  tenant text, ids uuid[]
-- returns: id uuid, notes bigint
-- index:   mentions_pkey, notes_expiry_idx
SELECT m.entity_id AS id, count(DISTINCT m.note_id) AS notes
FROM mentions AS m
WHERE
    m.tenant_id = :tenant AND m.entity_id = ANY(:ids)
    AND NOT EXISTS (SELECT FROM notes AS n WHERE n.id = m.note_id AND n.expires_at <= now())
GROUP BY m.entity_id;

-- name: list_aliases
-- params:  tenant text
-- returns: alias_id uuid, alias text, entity_id uuid, entity text, state text
SELECT a.alias_id, x.name AS alias, a.entity_id, e.name AS entity, a.state
FROM entity_aliases AS a
INNER JOIN entities AS x ON x.tenant_id = a.tenant_id AND x.id = a.alias_id
INNER JOIN entities AS e ON e.tenant_id = a.tenant_id AND e.id = a.entity_id
WHERE a.tenant_id = :tenant
ORDER BY x.name, e.name, a.alias_id, a.entity_id;

-- name: decide_alias!
-- params:  tenant text, alias_id uuid, entity_id uuid, state text
INSERT INTO entity_aliases (tenant_id, alias_id, entity_id, state) VALUES (:tenant, :alias_id, :entity_id, :state)
ON CONFLICT (tenant_id, alias_id, entity_id) DO UPDATE SET state = excluded.state, decided_at = now();

-- name: withdraw_alias<!
-- params:  tenant text, alias_id uuid, entity_id uuid
-- returns: alias_id uuid, or nothing
DELETE FROM entity_aliases AS a
WHERE a.tenant_id = :tenant AND a.alias_id = :alias_id AND a.entity_id = :entity_id
RETURNING a.alias_id;
