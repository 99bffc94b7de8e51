-- Links between events of different notes: pairs that a language model is asked about, what it proposes, and what
-- people decide.

-- name: list_link_candidates
-- Pairs of events of different notes that may be cause and effect: they share rare words, or the passages that state
-- them share rare names, tags or dates. Those that share most come first, by the sum of the rarities. Of each event
-- only its best pairs count, so that the list ends. Left out are pairs that were judged in this version, pairs that a
-- person has decided, equal events, and expired notes. An alias counts as the name that it stands for.
-- params:  tenant text, version text, most_events int (what more events share is not rare), most_pairs int (of an
--          event), row_limit int
-- returns: one_id uuid, one_name text, one_chunk_id uuid, one_content text, one_written_at timestamptz, and the same of
--          other_
WITH stated AS MATERIALIZED (
    SELECT DISTINCT ON (x.id) x.id, x.note_id, x.chunk_id, n.created_at
    FROM (
        SELECT r.source_id AS id, r.id AS statement_id, r.note_id, r.chunk_id FROM relationships AS r
        WHERE r.tenant_id = :tenant
        UNION ALL
        SELECT r.target_id AS id, r.id AS statement_id, r.note_id, r.chunk_id FROM relationships AS r
        WHERE r.tenant_id = :tenant
    ) AS x
    INNER JOIN notes AS n ON n.id = x.note_id
    WHERE n.expires_at IS NULL OR n.expires_at > now()
    ORDER BY x.id, x.statement_id
),

terms AS MATERIALIZED (
    SELECT s.id, s.note_id, w.lexeme AS term
    FROM stated AS s
    INNER JOIN entities AS e ON e.tenant_id = :tenant AND e.id = s.id -- noqa: ST09
    CROSS JOIN LATERAL unnest(e.tsv) AS w
    UNION
    SELECT s.id, s.note_id, coalesce(a.entity_id, m.entity_id)::text AS term
    FROM stated AS s
    INNER JOIN mentions AS m ON m.chunk_id = s.chunk_id AND m.tenant_id = :tenant
    LEFT JOIN entity_aliases AS a
        ON a.tenant_id = :tenant AND m.entity_id = a.alias_id AND a.state = 'confirmed' -- noqa: ST09
),

-- Arrays and not a join of the terms with themselves, of whose size the planner has no idea.
rare AS MATERIALIZED (
    SELECT
        t.term, ln((SELECT count(*) FROM stated)::double precision / count(*)) AS rarity,
        array_agg(t.id) AS ids, array_agg(t.note_id) AS note_ids
    FROM terms AS t
    GROUP BY t.term
    HAVING count(*) BETWEEN 2 AND :most_events
),

pairs AS MATERIALIZED (
    SELECT a.id, b.id AS other_id, sum(r.rarity ORDER BY r.term) AS shared
    FROM rare AS r
    CROSS JOIN LATERAL unnest(r.ids, r.note_ids) AS a (id, note_id)
    CROSS JOIN LATERAL unnest(r.ids, r.note_ids) AS b (id, note_id)
    WHERE a.note_id <> b.note_id
    GROUP BY a.id, b.id
),

best AS MATERIALIZED (
    SELECT least(p.id, p.other_id) AS one_id, greatest(p.id, p.other_id) AS other_id, max(p.shared) AS shared
    FROM (
        SELECT q.*, row_number() OVER (PARTITION BY q.id ORDER BY q.shared DESC, q.other_id) AS place FROM pairs AS q
    ) AS p
    WHERE p.place <= :most_pairs
    GROUP BY least(p.id, p.other_id), greatest(p.id, p.other_id)
),

chosen AS MATERIALIZED (
    SELECT b.one_id, e.name AS one_name, b.other_id, f.name AS other_name, b.shared
    FROM (SELECT w.* FROM best AS w ORDER BY w.shared DESC, w.one_id, w.other_id) AS b
    INNER JOIN entities AS e ON e.tenant_id = :tenant AND e.id = b.one_id -- noqa: ST09
    INNER JOIN entities AS f ON f.tenant_id = :tenant AND f.id = b.other_id -- noqa: ST09
    WHERE
        e.key <> f.key
        AND NOT EXISTS (
            SELECT FROM link_proposals AS p
            WHERE
                p.tenant_id = :tenant AND p.one_id = b.one_id AND p.other_id = b.other_id
                AND p.version = :version
        )
        AND NOT EXISTS (
            SELECT FROM event_links AS l
            WHERE l.tenant_id = :tenant AND l.source_id = b.one_id AND l.target_id = b.other_id
        )
        AND NOT EXISTS (
            SELECT FROM event_links AS l
            WHERE l.tenant_id = :tenant AND l.source_id = b.other_id AND l.target_id = b.one_id
        )
    ORDER BY b.shared DESC, b.one_id, b.other_id LIMIT :row_limit
)

SELECT
    h.one_id, h.one_name, s.chunk_id AS one_chunk_id, c.content AS one_content, s.created_at AS one_written_at,
    h.other_id, h.other_name, o.chunk_id AS other_chunk_id, d.content AS other_content, o.created_at AS other_written_at
FROM chosen AS h
INNER JOIN stated AS s ON s.id = h.one_id
INNER JOIN stated AS o ON o.id = h.other_id
INNER JOIN chunks AS c ON c.id = s.chunk_id
INNER JOIN chunks AS d ON d.id = o.chunk_id
ORDER BY h.shared DESC, h.one_id, h.other_id;

-- name: record_link_proposal!
-- Store what a model said of a pair, unless an event or a passage of it is gone; a later judgement replaces it.
-- params:  tenant text, one_id uuid, other_id uuid, one_chunk_id uuid, other_chunk_id uuid, cause_id uuid or null,
--          type text or null, confidence float8, reason text, model text, version text
INSERT INTO link_proposals (
    tenant_id, one_id, other_id, one_chunk_id, other_chunk_id, cause_id, type, confidence, reason, model, version
)
SELECT
    e.tenant_id, e.id AS one_id, f.id AS other_id, c.id AS one_chunk_id, d.id AS other_chunk_id, :cause_id::uuid,
    :type::text, :confidence::double precision, :reason::text, :model::text, :version::text
FROM entities AS e
INNER JOIN entities AS f ON f.tenant_id = e.tenant_id AND f.id = :other_id
INNER JOIN chunks AS c ON c.tenant_id = e.tenant_id AND c.id = :one_chunk_id
INNER JOIN chunks AS d ON d.tenant_id = e.tenant_id AND d.id = :other_chunk_id
WHERE e.tenant_id = :tenant AND e.id = :one_id
FOR KEY SHARE
ON CONFLICT (tenant_id, one_id, other_id) DO UPDATE SET
    one_chunk_id = excluded.one_chunk_id, other_chunk_id = excluded.other_chunk_id, cause_id = excluded.cause_id,
    type = excluded.type, confidence = excluded.confidence, reason = excluded.reason, model = excluded.model,
    version = excluded.version, judged_at = now();

-- name: list_link_proposals
-- The links that a model proposes and nobody has decided, the surest first; without expired notes.
-- params:  tenant text, row_limit int
-- returns: cause_id uuid, cause text, cause_note text, cause_chunk_id uuid, cause_content text, effect_id uuid, effect
--          text, effect_note text, effect_chunk_id uuid, effect_content text, type text, confidence float8,
--          reason text, model text, version text, judged_at timestamptz
SELECT
    p.cause_id, s.name AS cause, coalesce(m.external_id, m.id::text) AS cause_note, c.id AS cause_chunk_id,
    c.content AS cause_content, t.id AS effect_id, t.name AS effect, coalesce(n.external_id, n.id::text) AS effect_note,
    d.id AS effect_chunk_id, d.content AS effect_content, p.type, p.confidence, p.reason, p.model, p.version,
    p.judged_at
FROM (
    SELECT
        q.*,
        CASE q.cause_id WHEN q.one_id THEN q.other_id ELSE q.one_id END AS effect_id,
        CASE q.cause_id WHEN q.one_id THEN q.one_chunk_id ELSE q.other_chunk_id END AS cause_chunk_id,
        CASE q.cause_id WHEN q.one_id THEN q.other_chunk_id ELSE q.one_chunk_id END AS effect_chunk_id
    FROM link_proposals AS q WHERE q.tenant_id = :tenant AND q.cause_id IS NOT NULL
) AS p
INNER JOIN entities AS s ON s.tenant_id = p.tenant_id AND s.id = p.cause_id
INNER JOIN entities AS t ON t.tenant_id = p.tenant_id AND t.id = p.effect_id
INNER JOIN chunks AS c ON c.id = p.cause_chunk_id
INNER JOIN chunks AS d ON d.id = p.effect_chunk_id
INNER JOIN notes AS m ON m.id = c.note_id
INNER JOIN notes AS n ON n.id = d.note_id
WHERE
    (m.expires_at IS NULL OR m.expires_at > now()) AND (n.expires_at IS NULL OR n.expires_at > now())
    AND NOT EXISTS (
        SELECT FROM event_links AS l
        WHERE
            l.tenant_id = p.tenant_id
            AND (l.source_id, l.target_id) IN ((p.one_id, p.other_id), (p.other_id, p.one_id))
    )
ORDER BY p.confidence DESC, p.one_id, p.other_id LIMIT :row_limit;

-- name: decide_link!
-- params:  tenant text, source_id uuid, target_id uuid, type text, state text
INSERT INTO event_links (tenant_id, source_id, target_id, type, state, decided_by)
VALUES (:tenant, :source_id, :target_id, :type, :state, 'person')
ON CONFLICT (tenant_id, source_id, target_id) DO UPDATE
    SET type = excluded.type, state = excluded.state, decided_by = excluded.decided_by, decided_at = now();

-- name: withdraw_link<!
-- params:  tenant text, source_id uuid, target_id uuid
-- returns: source_id uuid, or nothing
DELETE FROM event_links AS l
WHERE l.tenant_id = :tenant AND l.source_id = :source_id AND l.target_id = :target_id
RETURNING l.source_id;
