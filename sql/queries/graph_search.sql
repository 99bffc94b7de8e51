-- The lists of the causal graph: chunks linked to what a question has found. Each is run by `graph_list`.

-- name: graph_list
-- params:  {linked}: one of the lists below; those of {visible} and of the list
-- returns: list int, chunk_id uuid, note_id uuid, score float8, created_at timestamptz of the note, path uuid[]
WITH visible AS ({visible}),

searched_chunks AS (
    SELECT c.id, c.note_id, v.created_at
    FROM visible AS v INNER JOIN chunks AS c ON c.note_id = v.id
    WHERE (v.chunked_at IS NULL) = (c.id = c.note_id)
)

{linked};

-- name: corpus_statistics
-- The number of a tenant's documents and their average length, for BM25; before the first count, the length that the
-- stored weights assume.
-- params:  tenant text
SELECT
    greatest(max(i.chunk_count), 1)::double precision AS document_count,
    CASE
        WHEN max(i.average_lexeme_occurrences) > 0 THEN greatest(max(i.average_lexeme_occurrences), 1) ELSE 200
    END AS average_length
FROM corpus_statistics AS i WHERE i.tenant_id = :tenant;

-- name: question_lexemes
-- The lexemes of a question, in how many documents of `corpus` each is, and its weight.
-- params:  {query} text, tenant text
SELECT
    q.lexeme, coalesce(l.document_count, 0) AS document_count,
    ln(
        1 + (greatest(c.document_count - coalesce(l.document_count, 0), 0) + 0.5)
        / (coalesce(l.document_count, 0) + 0.5)
    ) AS idf
FROM unnest(spanish_tsvector({query})) AS q
CROSS JOIN corpus AS c
LEFT JOIN lexeme_statistics AS l ON l.tenant_id = :tenant AND l.lexeme = q.lexeme -- noqa: ST09
WHERE q.lexeme IS NOT NULL;

-- name: search_graph_causes
-- Chunks by the events of causal statements: breadth first from the events of the seeds that share enough of the
-- question's words, along causes and effects. An event is reached once, on a shortest path, so cycles end; of an event
-- with many links only the first are followed, and of a level with many events the first, by their ids. A chunk scores
-- the relevance of its nearest event, so no level is reached that could only add to enough chunks. Without seeds, the
-- chunks of what the question names take their place. Paths are made of the returned events only.
-- params:  {query} text, {seeds} uuid[], {names} text[], {depth} (>= 0), {max_depth} (>= 1), {least_share}, {hub_cap},
--          {level_cap}, {pool}: literals; {neighbours}: event_neighbours; {chunks}: event_chunks
-- returns: as every list, and path uuid[] (events, start to end)
-- index:   relationships_chunk_idx, relationships_source_idx, relationships_target_idx, entities_pkey
SELECT {list} AS list, s.chunk_id, s.note_id, s.score, s.created_at, s.path
FROM (
    WITH RECURSIVE corpus AS MATERIALIZED ({corpus}), -- noqa: ST03

    lexemes AS MATERIALIZED ({lexemes}),

    question AS MATERIALIZED (
        SELECT
            string_agg(quote_literal(l.lexeme), ' | ')::tsquery AS any_lexeme, array_agg(l.lexeme) AS all_lexemes,
            sum(l.idf) AS idf
        FROM lexemes AS l
    ),

    -- noqa: disable=AM09
    seeds AS MATERIALIZED (
        SELECT u.id FROM unnest({seeds}::uuid[]) AS u (id)
        UNION
        SELECT c.chunk_id AS id
        FROM entities AS e
        CROSS JOIN
            LATERAL (
                SELECT m.chunk_id FROM mentions AS m
                WHERE m.tenant_id = :tenant AND m.entity_id = e.id ORDER BY m.chunk_id LIMIT {hub_cap}
            ) AS c
        WHERE
            cardinality({seeds}::uuid[]) = 0
            AND e.tenant_id = :tenant AND e.key = ANY({names}::text[]) AND e.kind <> 'event'
    ),

    started AS MATERIALIZED (
        SELECT DISTINCT e.id
        FROM seeds AS s
        INNER JOIN relationships AS r ON r.chunk_id = s.id AND r.tenant_id = :tenant
        CROSS JOIN LATERAL (VALUES (r.source_id), (r.target_id)) AS x (id)
        INNER JOIN entities AS e ON e.tenant_id = :tenant AND e.id = x.id
        INNER JOIN question AS q ON e.tsv @@ q.any_lexeme
        WHERE (
            SELECT sum(l.idf) FROM unnest(e.tsv) AS w INNER JOIN lexemes AS l ON w.lexeme = l.lexeme -- noqa: ST09
        ) >= {least_share} * q.idf
    ),

    -- A row for each level: its events with what they were reached from, the chunks that they add, and what all levels
    -- have so far.
    levels AS (
        SELECT
            0 AS hops, f.ids, NULL::uuid[] AS parent_ids, f.ids AS seen_ids, c.chunk_ids, c.note_ids, c.times,
            c.entity_ids, coalesce(c.chunk_ids, '{{}}') AS held_ids
        FROM (SELECT array_agg(b.id ORDER BY b.id) AS ids, '{{}}'::uuid[] AS held_ids FROM started AS b) AS f
        CROSS JOIN LATERAL ({chunks}) AS c
        UNION ALL
        SELECT
            l.hops + 1 AS hops, f.ids, f.parent_ids, l.seen_ids || f.ids AS seen_ids, c.chunk_ids, c.note_ids, c.times,
            c.entity_ids, l.held_ids || c.chunk_ids AS held_ids
        FROM levels AS l
        CROSS JOIN
            LATERAL (
                SELECT array_agg(n.id) AS ids, array_agg(n.parent_id) AS parent_ids, l.held_ids
                FROM (
                    SELECT DISTINCT ON (w.id) w.id, r.id AS parent_id
                    FROM unnest(l.ids) AS r (id) CROSS JOIN LATERAL ({neighbours}) AS w
                    WHERE NOT EXISTS (SELECT FROM unnest(l.seen_ids) AS s (id) WHERE s.id = w.id)
                    ORDER BY w.id, r.id LIMIT {level_cap}
                ) AS n
            ) AS f
        CROSS JOIN LATERAL ({chunks}) AS c
        WHERE l.hops < {depth} AND cardinality(l.held_ids) < {pool} AND f.ids IS NOT NULL
    ),

    best AS MATERIALIZED (
        SELECT c.chunk_id, c.note_id, c.created_at, c.entity_id, l.hops
        FROM levels AS l
        CROSS JOIN
            LATERAL unnest(l.chunk_ids, l.note_ids, l.times, l.entity_ids)
                AS c (chunk_id, note_id, created_at, entity_id)
        ORDER BY l.hops, c.chunk_id LIMIT {pool}
    ),
    -- noqa: enable=AM09

    parents AS MATERIALIZED (
        SELECT e.id, e.parent_id FROM levels AS l CROSS JOIN LATERAL unnest(l.ids, l.parent_ids) AS e (id, parent_id)
    ),

    paths AS (
        SELECT b.entity_id, b.entity_id AS first_id, b.hops, ARRAY[b.entity_id] AS path FROM best AS b
        UNION
        SELECT p.entity_id, r.parent_id AS first_id, p.hops - 1 AS hops, r.parent_id || p.path AS path
        FROM paths AS p INNER JOIN parents AS r ON r.id = p.first_id -- noqa: ST09
        WHERE p.hops > 0
    )

    SELECT b.chunk_id, b.note_id, b.created_at, 1 - 0.5 * b.hops / {max_depth} AS score, p.path
    FROM best AS b INNER JOIN paths AS p ON p.entity_id = b.entity_id AND p.hops = 0
) AS s
ORDER BY s.score DESC, s.chunk_id;

-- name: event_chunks
-- The chunks that state the events f.ids, without f.held_ids: the first searchable ones by id, each with the first of
-- its events.
-- noqa: disable=AM09, RF01, RF02
SELECT
    array_agg(v.chunk_id) AS chunk_ids, array_agg(v.note_id) AS note_ids, array_agg(v.created_at) AS times,
    array_agg(v.entity_id) AS entity_ids
FROM (
    SELECT d.chunk_id, x.note_id, x.created_at, d.entity_id
    FROM (
        SELECT DISTINCT ON (h.chunk_id) h.chunk_id, e.id AS entity_id
        FROM unnest(f.ids) AS e (id)
        CROSS JOIN
            LATERAL (
                (
                    SELECT r.chunk_id FROM relationships AS r
                    WHERE r.tenant_id = :tenant AND r.source_id = e.id ORDER BY r.target_id, r.id LIMIT {hub_cap}
                )
                UNION ALL
                (
                    SELECT r.chunk_id FROM relationships AS r
                    WHERE r.tenant_id = :tenant AND r.target_id = e.id ORDER BY r.source_id, r.id LIMIT {hub_cap}
                )
            ) AS h
        WHERE NOT EXISTS (SELECT FROM unnest(f.held_ids) AS k (id) WHERE k.id = h.chunk_id)
        ORDER BY h.chunk_id, e.id
    ) AS d INNER JOIN searched_chunks AS x ON x.id = d.chunk_id
    ORDER BY d.chunk_id LIMIT {pool}
) AS v;

-- name: event_neighbours
-- The causes and effects of the event r.id: the first of each kind.
-- noqa: disable=AM09, RF01, RF02
(
    SELECT e.target_id AS id FROM relationships AS e
    WHERE e.tenant_id = :tenant AND e.source_id = r.id AND e.type IN ('CAUSES', 'TRIGGERS', 'LEADS_TO')
    ORDER BY e.target_id LIMIT {hub_cap}
)
UNION ALL
(
    SELECT e.source_id AS id FROM relationships AS e
    WHERE e.tenant_id = :tenant AND e.target_id = r.id AND e.type IN ('CAUSES', 'TRIGGERS', 'LEADS_TO')
    ORDER BY e.source_id LIMIT {hub_cap}
);
-- noqa: enable=AM09, RF01, RF02
