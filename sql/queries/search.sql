-- Ranked lists of one question and of its sub-questions. Every list returns (list int, chunk_id uuid, note_id uuid,
-- score float8), score in [0, 1]; store.search combines those that a strategy needs with UNION ALL, so that they take
-- one round trip.
-- psycopg.sql fills in the placeholders in braces: identifiers, the dimension of a model, the number of a list, the
-- names of a list's own parameters. Limits are literals too. PostgreSQL reuses a plan only if it costs no more than one
-- made for the actual values, and it assumes that a limit given as a parameter returns a tenth of all rows.
-- {materialized} decides how notes are found. With NOT MATERIALIZED the lists' own indexes find candidates, and the
-- conditions filter them. With MATERIALIZED the notes that meet the conditions are looked up first, and exactly those
-- are searched, without an approximate index. {alone} is TRUE if there is one tenant: its id would select nothing then,
-- and is left out of the statement, so that one plan serves every question.

-- name: visible_notes
-- The notes that a question may find: those of its tenant that have not expired and meet its filters.
-- An {any_…} is TRUE for a filter that is not given and FALSE for one that is; the planner removes either constant.
-- params:  tenant text, source text, tags text[], note_ids uuid[], excluded_note_ids uuid[], created_from timestamptz,
--          created_until timestamptz, metadata jsonb
-- index:   notes_external_key, notes_tags_idx, notes_metadata_idx, notes_newest_idx, notes_pkey
SELECT n.id, n.id AS note_id, n.chunked_at
FROM notes AS n
WHERE
    n.tenant_id = :tenant AND (n.expires_at IS NULL OR n.expires_at > now())
    AND ({any_source} OR n.source = :source)
    AND ({any_tags} OR n.tags @> :tags)
    AND ({any_note} OR n.id = ANY(:note_ids))
    AND ({none_excluded} OR n.id <> ALL(:excluded_note_ids))
    AND ({any_start} OR n.created_at >= :created_from)
    AND ({any_end} OR n.created_at < :created_until)
    AND ({any_metadata} OR n.metadata @> :metadata);

-- name: search_lists
-- The lists of a question, and what they search: all visible notes, the notes not yet searchable by chunk, or chunks.
-- {any_unchunked} is FALSE if plan_search says so; then no chunk has to be excluded.
-- params:  model text (empty: none), window_model text (empty: none), those of visible_notes and of the lists
-- index:   notes_unchunked_idx, pending_vectors_pkey, chunks_position_key
WITH visible_notes AS {materialized} ({visible_notes}),

unchunked_notes AS {materialized} (
    SELECT n.id, n.note_id FROM visible_notes AS n WHERE n.chunked_at IS NULL
    UNION ALL
    SELECT n.id, n.note_id
    FROM (
        SELECT e.note_id FROM pending_vectors AS e WHERE e.model = :model AND e.kind = 'chunk'
        UNION
        SELECT w.note_id FROM pending_vectors AS w WHERE w.model = :window_model AND w.kind = 'window'
    ) AS p INNER JOIN visible_notes AS n ON n.id = p.note_id
    WHERE n.chunked_at IS NOT NULL
),

searched_chunks AS {materialized} ({searched_chunks})

{lists};

-- name: visible_chunks
-- The chunks of visible notes that are searchable by chunk; part of search_lists.
SELECT c.id, c.note_id, c.tsv, c.weights, c.lexeme_occurrences
FROM visible_notes AS n INNER JOIN chunks AS c ON c.note_id = n.id
WHERE
    {any_unchunked} IS FALSE
    OR (
        n.chunked_at IS NOT NULL
        AND NOT EXISTS (
            SELECT FROM pending_vectors AS p WHERE p.model = :model AND p.kind = 'chunk' AND p.note_id = n.id
        )
        AND NOT EXISTS (
            SELECT FROM pending_vectors AS p
            WHERE p.model = :window_model AND p.kind = 'window' AND p.note_id = n.id
        )
    );

-- name: every_chunk
-- The same if all notes are visible and searchable by chunk.
SELECT c.id, c.note_id, c.tsv, c.weights, c.lexeme_occurrences FROM chunks AS c;

-- name: search_at_once
-- A whole search in one statement: the plan, the candidates of all lists with their scores, and the texts of the
-- probable results. The caller fuses the scores; {score_parts} only decides whose texts are returned.
-- params:  {searches} and {plan}: the statements search_lists and plan_search, with their parameters; {known}: relation
--          (list int, id uuid, score float8), what counts of the candidates; {score_parts}: one of those below;
--          {looked_up} (TRUE if there is more in {known} than in {searches}); {shown} and {kept} (literals, >= 1; null:
--          all); {windows}: match_windows or no_windows; {version}: the statement read_index_version, with its
--          parameter, or no_index_version
-- returns: a row for each candidate kept, or a single one: facts json (the rows of plan_search) and version json (both
--          only in the first row), id uuid or null, note_id uuid, lists int[], scores float8[], known_lists int[],
--          known_scores float8[], is_shown bool, and where it is true the columns of fetch_passages, and those of
--          match_windows
WITH found AS MATERIALIZED ({searches}),

candidates AS MATERIALIZED (
    SELECT f.chunk_id, f.note_id, array_agg(f.list) AS lists, array_agg(f.score) AS scores
    FROM found AS f GROUP BY f.chunk_id, f.note_id
),

known AS MATERIALIZED ({known}),

fused AS (
    SELECT p.id, sum(p.part) AS score, array_agg(p.list) AS known_lists, array_agg(p.score) AS known_scores
    FROM ({score_parts}) AS p GROUP BY p.id
),

ranked AS MATERIALIZED (
    SELECT
        c.chunk_id, c.note_id, c.lists, c.scores, f.known_lists, f.known_scores,
        row_number() OVER best_first AS place,
        row_number() OVER (PARTITION BY c.note_id ORDER BY f.score DESC NULLS LAST, c.chunk_id) AS place_in_note
    FROM candidates AS c LEFT JOIN fused AS f ON f.id = c.chunk_id
    WINDOW best_first AS (ORDER BY f.score DESC NULLS LAST, c.chunk_id)
),

best AS MATERIALIZED (SELECT r.chunk_id, r.note_id, r.place_in_note FROM ranked AS r WHERE r.place <= {shown}),

texts AS (
    SELECT
        b.chunk_id, n.title, coalesce(n.external_id, n.id::text) AS external_id, n.created_at,
        CASE WHEN b.place_in_note = 1 THEN n.content END AS note_content,
        c.chunk_index, c.start_char, c.end_char, c.content, n.document_id, n.heading_path
    FROM best AS b
    INNER JOIN notes AS n ON n.id = b.note_id
    LEFT JOIN chunks AS c ON c.id = b.chunk_id AND c.note_id = b.note_id
    WHERE (n.expires_at IS NULL OR n.expires_at > now()) AND (c.id IS NOT NULL OR b.chunk_id = b.note_id)
)

SELECT
    CASE WHEN r.place IS NULL OR r.place = 1 THEN p.facts END AS facts,
    CASE WHEN r.place IS NULL OR r.place = 1 THEN p.version END AS version,
    r.chunk_id AS id, r.note_id, r.lists, r.scores,
    CASE WHEN {looked_up} THEN r.known_lists END AS known_lists,
    CASE WHEN {looked_up} THEN r.known_scores END AS known_scores,
    t.chunk_id IS NOT NULL AS is_shown, t.title, t.external_id, t.note_content, t.created_at, t.chunk_index,
    t.start_char, t.end_char, t.content, t.document_id, t.heading_path, w.starts, w.ends, w.cosines
FROM
    (
        SELECT
            (SELECT json_agg(f) FROM ({plan}) AS f) AS facts,
            (SELECT row_to_json(v) FROM ({version}) AS v) AS version
    ) AS p
LEFT JOIN ranked AS r ON {kept}::integer IS NULL OR r.place <= {kept}
LEFT JOIN texts AS t ON t.chunk_id = r.chunk_id
LEFT JOIN ({windows}) AS w ON w.chunk_id = r.chunk_id -- noqa: ST05
ORDER BY r.place;

-- name: no_index_version
-- The version in search_at_once if the answer is not cached.
SELECT NULL AS number WHERE FALSE;

-- name: found_scores
-- The scores of the candidates in search_at_once from the lists that found them.
-- params:  {numbers} int[]
SELECT f.list, f.chunk_id AS id, f.score FROM found AS f WHERE f.list = ANY({numbers});

-- name: parts_of_lists
-- The contribution of each score, min-max normalised inside its list: the lowest counts 0, the highest its weight.
-- params:  {weights} float8[] (one for each list)
SELECT
    k.list, k.id, k.score,
    ({weights}::float8[])[k.list + 1]
    * coalesce((k.score - min(k.score) OVER own) / nullif(max(k.score) OVER own - min(k.score) OVER own, 0), 1) AS part
FROM known AS k
WINDOW own AS (PARTITION BY k.list);

-- name: parts_of_ranks
-- The contribution of each rank in a list by reciprocal rank fusion.
-- params:  {weights} float8[] (one for each list), {rank_constant} int
SELECT
    k.list, k.id, k.score,
    ({weights}::float8[])[k.list + 1]
    / ({rank_constant} + row_number() OVER (PARTITION BY k.list ORDER BY k.score DESC, k.id)) AS part
FROM known AS k;

-- name: parts_on_scales
-- The contribution of each score on the fixed scale of its list.
-- params:  {weights} float8[], {lows} float8[], {highs} float8[] (one for each list)
SELECT
    k.list, k.id, k.score,
    ({weights}::float8[])[k.list + 1] * greatest(
        0,
        least(
            1,
            (k.score - ({lows}::float8[])[k.list + 1])
            / (({highs}::float8[])[k.list + 1] - ({lows}::float8[])[k.list + 1])
        )
    ) AS part
FROM known AS k;

-- name: candidate_chunks
-- The chunks that no list in {numbers} has scored.
-- params:  {numbers} int[]
-- returns: uuid[]
SELECT array_agg(c.chunk_id) FROM candidates AS c WHERE c.chunk_id <> c.note_id AND NOT c.lists && {numbers};

-- name: candidate_notes
-- The same for whole notes.
-- params:  {numbers} int[]
-- returns: uuid[]
SELECT array_agg(c.chunk_id) FROM candidates AS c WHERE c.chunk_id = c.note_id AND NOT c.lists && {numbers};

-- name: candidates_of_list
-- The candidates that a list in {numbers} has found.
-- params:  {numbers} int[]
-- returns: uuid[]
SELECT array_agg(c.chunk_id) FROM candidates AS c WHERE c.lists && {numbers};

-- name: no_windows
-- The columns of windows in search_at_once when none are searched.
SELECT
    NULL::uuid AS chunk_id, NULL::integer[] AS starts, NULL::integer[] AS ends, NULL::float8[] AS cosines
WHERE FALSE;

-- name: best_candidates
-- The candidates whose windows search_at_once returns.
-- returns: uuid[]
SELECT array_agg(b.chunk_id) FROM best AS b;

-- name: search_vectors
-- The nearest chunks, by cosine of their standard or contextual vectors, or the nearest whole notes.
-- params:  {vector} halfvec, {threshold} float8, {pool} (a literal, >= 1)
-- index:   HNSW of the model's partition (exact search while there is none); its primary key, which begins with the
--          model
SELECT
    {list} AS list, s.id AS chunk_id, s.note_id, greatest(0, least(1, 1 - s.distance)) AS score
FROM (
    WITH distances AS {materialized} (
        SELECT
            x.id, x.note_id,
            e.{column}::halfvec({dimension}) <=> {vector}::halfvec({dimension}) AS distance
        FROM {embeddings} AS e INNER JOIN {searched} AS x ON x.id = e.{key}
        WHERE e.model = {model} AND e.{column} IS NOT NULL AND ({alone} OR e.tenant_id = :tenant)
    )

    SELECT d.id, d.note_id, d.distance FROM distances AS d ORDER BY d.distance, d.id LIMIT {pool}
) AS s
WHERE 1 - s.distance >= {threshold}
ORDER BY s.distance, s.id;

-- name: search_vectors_exactly
-- The same over all vectors of a tenant that has few: nearest first, until enough visible ones are found.
-- params:  {vector} halfvec, {threshold} float8, {pool} (a literal, >= 1)
-- index:   chunk_embeddings_tenant_idx
SELECT
    {list} AS list, s.id AS chunk_id, s.note_id, greatest(0, least(1, 1 - s.distance)) AS score
FROM (
    WITH distances AS MATERIALIZED (
        SELECT e.{key} AS id, e.{column}::halfvec({dimension}) <=> {vector}::halfvec({dimension}) AS distance
        FROM {embeddings} AS e
        WHERE e.model = {model} AND e.{column} IS NOT NULL AND e.tenant_id = :tenant
    )

    SELECT d.id, v.note_id, d.distance
    FROM (SELECT n.id, n.distance FROM distances AS n ORDER BY n.distance, n.id) AS d
    -- noqa: disable=AM09
    CROSS JOIN LATERAL (SELECT x.note_id FROM {searched} AS x WHERE x.id = d.id LIMIT 1) AS v
    -- noqa: enable=AM09
    ORDER BY d.distance, d.id LIMIT {pool}
) AS s
WHERE 1 - s.distance >= {threshold}
ORDER BY s.distance, s.id;

-- name: search_windows
-- Chunks by the nearest of their windows: the nearest windows, folded into chunks. Otherwise as search_vectors.
-- params:  {vector} halfvec, {threshold} float8, {windows} (>= folded), {folded} (>= 1): both literals
-- index:   HNSW of the model's partition, exact while it has none; its primary key, which begins with the model
SELECT
    {list} AS list, s.id AS chunk_id, s.note_id, greatest(0, least(1, 1 - s.distance)) AS score
FROM (
    WITH distances AS {materialized} (
        SELECT
            x.id, x.note_id, w.window_index,
            w.embedding::halfvec({dimension}) <=> {vector}::halfvec({dimension}) AS distance
        FROM {embeddings} AS w INNER JOIN {searched} AS x ON x.id = w.chunk_id
        WHERE w.model = {model} AND ({alone} OR w.tenant_id = :tenant)
    ),

    nearest AS (
        SELECT d.id, d.note_id, d.distance FROM distances AS d
        ORDER BY d.distance, d.id, d.window_index LIMIT {windows}
    )

    SELECT n.id, n.note_id, min(n.distance) AS distance FROM nearest AS n
    GROUP BY n.id, n.note_id ORDER BY distance, n.id LIMIT {folded}
) AS s
WHERE 1 - s.distance >= {threshold}
ORDER BY s.distance, s.id;

-- name: search_windows_of_all
-- The same if every chunk is visible: the windows are folded before their chunks and notes are read.
-- params:  {vector} halfvec, {threshold} float8, {windows} (>= folded), {folded} (>= 1): both literals
-- index:   HNSW of the model's partition, exact while it has none; its primary key, which begins with the model
SELECT
    {list} AS list, x.id AS chunk_id, x.note_id, greatest(0, least(1, 1 - s.distance)) AS score
FROM (
    WITH distances AS NOT MATERIALIZED (
        SELECT
            w.chunk_id AS id, w.window_index,
            w.embedding::halfvec({dimension}) <=> {vector}::halfvec({dimension}) AS distance
        FROM {embeddings} AS w
        WHERE w.model = {model}
    ),

    nearest AS (
        SELECT d.id, d.distance FROM distances AS d
        ORDER BY d.distance, d.id, d.window_index LIMIT {windows}
    )

    SELECT n.id, min(n.distance) AS distance FROM nearest AS n
    GROUP BY n.id ORDER BY distance, n.id LIMIT {folded}
) AS s INNER JOIN {searched} AS x ON x.id = s.id
WHERE 1 - s.distance >= {threshold}
ORDER BY s.distance, s.id;

-- name: search_windows_exactly
-- The same over all windows of a tenant that has few.
-- params:  {vector} halfvec, {threshold} float8, {windows} (>= folded), {folded} (>= 1): both literals
-- index:   chunk_windows_tenant_idx
SELECT
    {list} AS list, s.id AS chunk_id, s.note_id, greatest(0, least(1, 1 - s.distance)) AS score
FROM (
    WITH distances AS MATERIALIZED (
        SELECT
            w.chunk_id AS id, w.window_index,
            w.embedding::halfvec({dimension}) <=> {vector}::halfvec({dimension}) AS distance
        FROM {embeddings} AS w
        WHERE w.model = {model} AND w.tenant_id = :tenant
    ),

    nearest AS (
        SELECT d.id, v.note_id, d.distance
        FROM (SELECT n.* FROM distances AS n ORDER BY n.distance, n.id, n.window_index) AS d
        -- noqa: disable=AM09
        CROSS JOIN LATERAL (SELECT x.note_id FROM {searched} AS x WHERE x.id = d.id LIMIT 1) AS v
        -- noqa: enable=AM09
        ORDER BY d.distance, d.id, d.window_index LIMIT {windows}
    )

    SELECT n.id, n.note_id, min(n.distance) AS distance FROM nearest AS n
    GROUP BY n.id, n.note_id ORDER BY distance, n.id LIMIT {folded}
) AS s
WHERE 1 - s.distance >= {threshold}
ORDER BY s.distance, s.id;

-- name: score_vectors
-- Cosines of some chunks, or of some whole notes, for each list and the vector that it compares.
-- params:  {vector} halfvec, {ids} uuid[], {compared}: (number of a list, column of e), …
-- index:   the primary key of the model's partition
SELECT
    v.list, e.{key} AS id,
    1 - (v.embedding::halfvec({dimension}) <=> {vector}::halfvec({dimension})) AS score
FROM {embeddings} AS e CROSS JOIN LATERAL (VALUES {compared}) AS v (list, embedding)
WHERE e.model = {model} AND e.{key} = ANY({ids}) AND v.embedding IS NOT NULL;

-- name: score_windows
-- Cosines of the nearest windows of some chunks.
-- params:  {vector} halfvec, {ids} uuid[]
-- index:   the primary key of the model's partition
SELECT
    {list} AS list, w.chunk_id AS id,
    1 - min(w.embedding::halfvec({dimension}) <=> {vector}::halfvec({dimension})) AS score
FROM {embeddings} AS w
WHERE w.model = {model} AND w.chunk_id = ANY({ids})
GROUP BY w.chunk_id;

-- name: match_windows
-- The windows of some chunks with their cosines to a question, the nearest first; equally near ones in order.
-- params:  {vector} halfvec, {ids} uuid[]
-- returns: chunk_id uuid, starts int[] and ends int[] in the content of the chunk, cosines float8[]
-- index:   the primary key of the model's partition
SELECT
    m.chunk_id,
    array_agg(m.start_char ORDER BY m.distance, m.window_index) AS starts,
    array_agg(m.end_char ORDER BY m.distance, m.window_index) AS ends,
    array_agg(1 - m.distance ORDER BY m.distance, m.window_index) AS cosines
FROM (
    SELECT
        w.chunk_id, w.window_index, w.start_char, w.end_char,
        w.embedding::halfvec({dimension}) <=> {vector}::halfvec({dimension}) AS distance
    FROM {embeddings} AS w
    WHERE w.model = {model} AND w.chunk_id = ANY({ids})
) AS m
GROUP BY m.chunk_id;

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

-- name: score_words
-- BM25 of some documents, as search_chunk_words scores its candidates; none for a document without any of the words.
-- params:  {query} text
SELECT {list} AS list, s.id, s.score FROM (
    WITH corpus AS MATERIALIZED ({corpus}),

    lexemes AS MATERIALIZED ({lexemes}),

    documents AS MATERIALIZED ({documents}),

    question AS MATERIALIZED (
        SELECT array_agg(a.lexeme) AS all_lexemes, sum(a.idf ORDER BY a.lexeme) * 2.2 AS bound FROM lexemes AS a
    )

    SELECT
        d.id,
        least(1, sum(
            x.idf * cardinality(t.positions) * 2.2
            / (cardinality(t.positions) + 1.2 * (0.25 + 0.75 * d.lexeme_occurrences / k.average_length))
            ORDER BY x.lexeme
        ) / q.bound) AS score
    FROM documents AS d
    CROSS JOIN corpus AS k
    CROSS JOIN question AS q
    CROSS JOIN LATERAL unnest(ts_filter(setweight(d.tsv, 'A', q.all_lexemes), '{{a}}')) AS t
    INNER JOIN lexemes AS x ON x.lexeme = t.lexeme
    GROUP BY d.id, q.bound
) AS s;

-- name: chunk_documents
-- params:  {ids} uuid[]
-- index:   chunks_pkey
SELECT c.id, c.tsv, c.lexeme_occurrences FROM chunks AS c WHERE c.id = ANY({ids});

-- name: note_documents
-- A note as one document: BM25 weights the words of a long note less, as those of a long chunk.
-- params:  {ids} uuid[]
-- index:   note_words_pkey
SELECT w.note_id AS id, w.tsv, count_occurrences(w.tsv) AS lexeme_occurrences FROM note_words AS w
WHERE w.note_id = ANY({ids});

-- name: search_chunk_words
-- BM25 over both Spanish stemmings (Robertson and Zaragoza, 2009; k1 1.2, b 0.75), divided by its upper bound.
-- A candidate contains one of the rarest lexemes; lexemes are added while their document counts stay within the budget.
-- If even the rarest is in too many, a candidate must contain several of the rarest. So the cost does not grow
-- with the corpus. Candidates are ranked by their stored weights, which assume a usual average length; only the best
-- are scored exactly, with the present average. {matched} names the relation that candidates come from: all chunks if
-- none is excluded, else the searched ones.
-- params:  {query} text, {pool} (>= 1), {budget} (>= 1), {ranked} or null, {rescored} (>= pool): all literals
-- index:   chunks_tsv_idx, chunks_pkey
SELECT {list} AS list, s.chunk_id, s.note_id, s.score FROM (
    WITH corpus AS MATERIALIZED ({corpus}),

    lexemes AS MATERIALIZED ({lexemes}),

    budgeted AS (
        SELECT
            x.lexeme, x.document_count,
            sum(x.document_count) OVER rarest_first AS running,
            -- Expected number of documents with all rarer lexemes, if these were independent; NULL for the rarest.
            c.document_count * exp(sum(ln(least(1, x.document_count / c.document_count))) OVER rarer) AS expected
        FROM lexemes AS x CROSS JOIN corpus AS c
        WHERE x.document_count > 0
        WINDOW
            rarest_first AS (ORDER BY x.document_count, x.lexeme),
            rarer AS (rarest_first ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
    ),

    -- A lexeme without a count came with the latest notes, so it is in few documents.
    queries AS MATERIALIZED (
        SELECT
            concat_ws(
                ' | ',
                (SELECT string_agg(quote_literal(x.lexeme), ' | ') FROM lexemes AS x WHERE x.document_count = 0),
                coalesce(
                    string_agg(quote_literal(b.lexeme), ' | ') FILTER (WHERE b.running <= {budget}),
                    string_agg(quote_literal(b.lexeme), ' & ') FILTER (
                        WHERE b.expected IS NULL OR b.expected > {budget}
                    )
                )
            )::tsquery AS candidate_query,
            (array_agg(quote_literal(b.lexeme) ORDER BY b.document_count, b.lexeme))[1]::tsquery AS rarest_query,
            (
                SELECT ('{{' || string_agg(w.dimension || ':' || w.idf, ',') || '}}/536870912')::sparsevec
                FROM (
                    SELECT lexeme_dimension(x.lexeme) AS dimension, max(x.idf)::real AS idf
                    FROM lexemes AS x GROUP BY lexeme_dimension(x.lexeme)
                ) AS w
            ) AS weights,
            (SELECT array_agg(x.lexeme) FROM lexemes AS x) AS all_lexemes
        FROM budgeted AS b
    ),

    -- noqa: disable=AM09
    matched AS MATERIALIZED (
        SELECT c.id, -(c.weights <#> q.weights) AS rank
        FROM {matched} AS c INNER JOIN queries AS q ON c.tsv @@ q.candidate_query
        LIMIT {ranked}
    ),

    -- Sorted before the notes are looked up, since only the best are needed.
    candidates AS MATERIALIZED (
        SELECT s.id, s.note_id, s.tsv, s.lexeme_occurrences
        FROM (
            SELECT w.* FROM matched AS w
            UNION ALL
            (
                SELECT c.id, -(c.weights <#> r.weights) AS rank
                FROM {matched} AS c INNER JOIN queries AS r ON c.tsv @@ r.rarest_query
                WHERE NOT EXISTS (SELECT FROM matched)
                LIMIT {ranked}
            )
            ORDER BY rank DESC, id
        ) AS m INNER JOIN searched_chunks AS s ON s.id = m.id
        ORDER BY m.rank DESC, m.id LIMIT {rescored}
    )
    -- noqa: enable=AM09

    -- Only the question's lexemes are extracted from a candidate, filtered by weight, which takes a tenth of the time.
    -- They are summed in one fixed order whatever the plan, since floating-point sums depend on the order.
    SELECT
        c.id AS chunk_id, c.note_id,
        least(1, sum(
            x.idf * cardinality(t.positions) * 2.2
            / (cardinality(t.positions) + 1.2 * (0.25 + 0.75 * c.lexeme_occurrences / k.average_length))
            ORDER BY x.lexeme
        ) / (SELECT sum(a.idf ORDER BY a.lexeme) * 2.2 FROM lexemes AS a)) AS score
    FROM candidates AS c
    CROSS JOIN corpus AS k
    CROSS JOIN
        LATERAL unnest(ts_filter(setweight(c.tsv, 'A', (SELECT q.all_lexemes FROM queries AS q)), '{{a}}')) AS t
    INNER JOIN lexemes AS x ON x.lexeme = t.lexeme
    GROUP BY c.id, c.note_id
) AS s
ORDER BY s.score DESC, s.chunk_id LIMIT {pool};

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
SELECT {list} AS list, s.chunk_id, s.note_id, s.score, s.path
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
            0 AS hops, f.ids, NULL::uuid[] AS parent_ids, f.ids AS seen_ids, c.chunk_ids, c.note_ids,
            c.entity_ids, coalesce(c.chunk_ids, '{{}}') AS held_ids
        FROM (SELECT array_agg(b.id ORDER BY b.id) AS ids, '{{}}'::uuid[] AS held_ids FROM started AS b) AS f
        CROSS JOIN LATERAL ({chunks}) AS c
        UNION ALL
        SELECT
            l.hops + 1 AS hops, f.ids, f.parent_ids, l.seen_ids || f.ids AS seen_ids, c.chunk_ids, c.note_ids,
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
        SELECT c.chunk_id, c.note_id, c.entity_id, l.hops
        FROM levels AS l
        CROSS JOIN
            LATERAL unnest(l.chunk_ids, l.note_ids, l.entity_ids)
                AS c (chunk_id, note_id, entity_id)
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

    SELECT b.chunk_id, b.note_id, 1 - 0.5 * b.hops / {max_depth} AS score, p.path
    FROM best AS b INNER JOIN paths AS p ON p.entity_id = b.entity_id AND p.hops = 0
) AS s
ORDER BY s.score DESC, s.chunk_id;

-- name: event_chunks
-- The chunks that state the events f.ids, without f.held_ids: the first searchable ones by id, each with the first of
-- its events.
-- noqa: disable=AM09, RF01, RF02
SELECT
    array_agg(v.chunk_id) AS chunk_ids, array_agg(v.note_id) AS note_ids,
    array_agg(v.entity_id) AS entity_ids
FROM (
    SELECT d.chunk_id, x.note_id, d.entity_id
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

-- name: search_note_words
-- Whole notes by their words. The score is normalised as r / (r + 0.1), so it is in [0, 1).
-- params:  {query} text, {pool} (a literal, >= 1)
-- index:   note_words_tsv_idx
SELECT {list} AS list, s.id AS chunk_id, s.note_id, s.rank / (s.rank + 0.1) AS score
FROM (
    WITH query AS MATERIALIZED (
        SELECT string_agg(quote_literal(q.lexeme), ' | ')::tsquery AS any_lexeme
        FROM unnest(spanish_tsvector({query})) AS q
    )

    SELECT n.id, n.note_id, ts_rank(w.tsv, q.any_lexeme, 1)::double precision AS rank
    FROM query AS q
    INNER JOIN note_words AS w ON w.tsv @@ q.any_lexeme
    INNER JOIN {searched} AS n ON n.id = w.note_id -- noqa: ST09
    ORDER BY rank DESC, n.id LIMIT {pool}
) AS s
WHERE s.rank > 0
ORDER BY score DESC, s.id;

-- name: plan_search
-- The plan of a search: whether any note is not searchable by chunk yet, whether any has expired, the requested models,
-- and the numbers of visible notes and of the tenant's chunks, each up to a limit. Notes and chunks are counted only if
-- they may be few: with filters, or with several tenants.
-- params:  model text (empty: none), window_model text (empty: none), models text[], {counted} and {few} (the limits,
--          literals), those of visible_notes
-- returns: any_unchunked bool, any_expired bool, matching bigint or null, chunk_count bigint or null, name text,
--          dimension int, provider text, digest text, similarity_threshold float8, cosine_low float8,
--          cosine_high float8, has_windows bool; one row for each requested model that is known and not retired, or a
--          single row without a name
-- index:   notes_unchunked_idx, pending_vectors_pkey, notes_expiry_idx, those of visible_notes
SELECT
    p.any_unchunked, p.any_expired, p.matching, p.chunk_count, m.name, m.dimension, m.provider, m.digest,
    m.similarity_threshold, m.cosine_low, m.cosine_high, m.windows_hash IS NOT NULL AS has_windows
FROM (
    SELECT
        EXISTS (SELECT FROM notes WHERE chunked_at IS NULL)
        OR EXISTS (SELECT FROM pending_vectors WHERE model = :model AND kind = 'chunk')
        OR EXISTS (SELECT FROM pending_vectors WHERE model = :window_model AND kind = 'window') AS any_unchunked,
        (SELECT min(n.expires_at) <= now() FROM notes AS n WHERE n.tenant_id = :tenant) IS TRUE AS any_expired,
        -- noqa: disable=AM09
        CASE
            WHEN s.may_be_few
                THEN (SELECT count(*) FROM (SELECT v.id FROM ({visible_notes}) AS v LIMIT {counted}) AS c)
        END AS matching,
        CASE
            WHEN s.may_be_few
                THEN (SELECT count(*) FROM (SELECT c.id FROM chunks AS c WHERE c.tenant_id = :tenant LIMIT {few}) AS c)
        END AS chunk_count
        -- noqa: enable=AM09
    FROM (SELECT {filtered} OR has_other_tenants(:tenant) AS may_be_few) AS s
) AS p
LEFT JOIN embedding_models AS m ON m.name = ANY(:models) AND m.retired_at IS NULL;
