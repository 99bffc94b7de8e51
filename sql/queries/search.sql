-- The search: one statement finds the candidates of a question, scores them, fuses the scores and reads the texts of
-- the best. `store.search` fills in what is in braces: the parts below, names of tables, and literals (PostgreSQL
-- assumes that a limit given as a parameter returns a tenth of all rows).

-- name: search
-- params:  those of {visible}, {questions} and the lists
-- returns: models_state text, number bigint, lineage text, next_expiry timestamptz (of the index, or null); for each
--          of the best, best first, ties by id: id uuid, the columns of its note and chunk, score float8 in [0, 1],
--          lists int[] that found it, their scores float8[], the columns of {windows}; without any a row of nulls
-- index:   those of the lists, chunks_pkey, notes_pkey
WITH visible AS {materialized} ({visible}),

questions AS MATERIALIZED ({questions}),

found AS MATERIALIZED ({lists}),

candidates AS MATERIALIZED ({candidates}),

scores AS MATERIALIZED ({scores}),

fused AS (SELECT p.id, sum(p.part ORDER BY p.part) AS score FROM ({fusion}) AS p GROUP BY p.id),

best AS MATERIALIZED (
    SELECT c.id, c.note_id, c.created_at, least(1, f.score) AS score
    FROM candidates AS c INNER JOIN fused AS f ON f.id = c.id
    ORDER BY score DESC, c.id LIMIT {shown}
)

SELECT
    ({models_state}) AS models_state, v.number, v.lineage, v.next_expiry, b.id, b.note_id, b.created_at, b.score,
    (SELECT array_agg(f.list ORDER BY f.list) FROM found AS f WHERE f.id = b.id) AS lists,
    (SELECT array_agg(f.score ORDER BY f.list) FROM found AS f WHERE f.id = b.id) AS scores,
    n.title, coalesce(n.external_id, n.id::text) AS external_id,
    CASE WHEN row_number() OVER (PARTITION BY b.note_id ORDER BY b.score DESC, b.id) = 1 THEN n.content END
        AS note_content,
    c.chunk_index, c.start_char, c.end_char, c.content, n.document_id, n.heading_path, w.starts, w.ends, w.cosines
FROM ({read_version}) AS v
LEFT JOIN best AS b ON TRUE
LEFT JOIN notes AS n ON n.id = b.note_id
LEFT JOIN chunks AS c ON c.id = b.id
LEFT JOIN LATERAL ({windows}) AS w ON TRUE -- noqa: ST05
ORDER BY b.score DESC, b.id;

-- name: question_words
-- The words of the texts: candidates have one of the rarest, so that the cost does not grow with the corpus, and score
-- by all of them. Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009; a chunk's own
-- share of it is stored.
-- params:  texts text[] (the question, then its sub-questions), tenant text; {budget}: a literal
WITH corpus AS MATERIALIZED (
    SELECT greatest(max(s.chunk_count), 1)::double precision AS chunks
    FROM corpus_statistics AS s WHERE s.tenant_id = :tenant
),

lexemes AS MATERIALIZED (
    SELECT
        t.number, q.lexeme, coalesce(l.document_count, 0) AS often,
        sum(coalesce(l.document_count, 0)) OVER rarest_first AS running,
        ln(
            1 + (greatest(c.chunks - coalesce(l.document_count, 0), 0) + 0.5) / (coalesce(l.document_count, 0) + 0.5)
        ) AS idf
    FROM unnest(:texts::text[]) WITH ORDINALITY AS t (text, number)
    CROSS JOIN LATERAL unnest(spanish_tsvector(t.text)) AS q
    CROSS JOIN corpus AS c
    LEFT JOIN lexeme_statistics AS l ON l.tenant_id = :tenant AND l.lexeme = q.lexeme -- noqa: ST09
    WINDOW rarest_first AS (PARTITION BY t.number ORDER BY coalesce(l.document_count, 0), q.lexeme)
)

SELECT
    x.number, sum(x.idf) * 2200 AS bound,
    string_agg(quote_literal(x.lexeme), ' | ') FILTER (WHERE x.running <= {budget} OR x.running = x.often)::tsquery
        AS candidates,
    (
        SELECT ('{{' || string_agg(w.dimension || ':' || w.idf, ',') || '}}/536870912')::sparsevec
        FROM ( -- noqa: ST05
            SELECT lexeme_dimension(y.lexeme) AS dimension, max(y.idf)::real AS idf
            FROM lexemes AS y WHERE y.number = x.number GROUP BY lexeme_dimension(y.lexeme)
        ) AS w
    ) AS weights
FROM lexemes AS x GROUP BY x.number;

-- name: no_words
SELECT NULL::bigint AS number, NULL::float8 AS bound, NULL::tsquery AS candidates, NULL::sparsevec AS weights
WHERE FALSE;

-- name: visible_notes
-- The notes that a question may find: those of its tenant that have not expired and meet its filters.
-- An {any_…} is TRUE for a filter that is not given and FALSE for one that is; the planner removes either constant.
-- params:  tenant text, source text, tags text[], note_ids uuid[], excluded_note_ids uuid[], date_source text,
--          created_from timestamptz, created_until timestamptz, metadata jsonb
-- index:   notes_external_key, notes_tags_idx, notes_metadata_idx, notes_newest_idx, notes_pkey
SELECT n.id, n.created_at, n.chunked_at
FROM notes AS n
WHERE
    n.tenant_id = :tenant AND (n.expires_at IS NULL OR n.expires_at > now())
    AND ({any_source} OR n.source = :source)
    AND ({any_tags} OR n.tags @> :tags)
    AND ({any_note} OR n.id = ANY(:note_ids))
    AND ({none_excluded} OR n.id <> ALL(:excluded_note_ids))
    AND ({any_date_source} OR n.date_source = :date_source)
    AND ({any_start} OR n.created_at >= :created_from)
    AND ({any_end} OR n.created_at < :created_until)
    AND ({any_metadata} OR n.metadata @> :metadata);

-- name: count_visible$
-- How many notes are visible, up to a limit.
-- params:  {visible}: the statement visible_notes, with its parameters; {most}: a literal
-- returns: bigint
SELECT count(*) FROM (SELECT FROM ({visible}) AS v LIMIT {most}) AS few; -- noqa: AL05, AM09

-- name: list_vectors
-- The nearest vectors of chunks, windows or whole notes; a chunk is as near as its nearest window.
-- params:  {vector} halfvec, {threshold} float8; {exactly}: "+ 0" compares all of them, without the index
-- index:   HNSW of the model's partition and kind, exact while it has none; the tenant's if {exactly}
SELECT {list} AS list, s.id, greatest(0, least(1, 1 - min(s.distance))) AS score
FROM (
    SELECT
        e.{key} AS id, (e.embedding::halfvec({dimension}) <=> {vector}::halfvec({dimension})) {exactly} AS distance
    FROM {vectors} AS e {joined}
    WHERE {condition}
    ORDER BY distance, e.{key} LIMIT {pool}
) AS s
GROUP BY s.id HAVING 1 - min(s.distance) >= {threshold};

-- name: list_words
-- Chunks by BM25 over both Spanish stemmings, divided by its upper bound.
-- index:   chunks_tsv_idx
SELECT {list} AS list, s.id, least(1, -s.distance / s.bound) AS score
FROM (
    SELECT m.id, m.weights <#> q.weights AS distance, q.bound
    FROM questions AS q
    CROSS JOIN
        LATERAL (
            SELECT e.id, e.weights FROM chunks AS e {joined}
            WHERE e.tsv @@ q.candidates AND {condition} LIMIT {most} -- noqa: AM09
        ) AS m
    WHERE q.number = {number}
    ORDER BY distance, m.id LIMIT {pool}
) AS s;

-- name: list_given
-- Chunks that something else has found.
-- params:  {ids} uuid[], {given_scores} float8[]
SELECT {list} AS list, g.id, g.score FROM unnest({ids}::uuid[], {given_scores}::float8[]) AS g (id, score);

-- name: candidates_of_chunks
-- A note that waits to be chunked is found by its provisional chunk alone, whose id is its own.
SELECT f.id, c.note_id, v.created_at
FROM (SELECT DISTINCT d.id FROM found AS d) AS f
INNER JOIN chunks AS c ON c.id = f.id
INNER JOIN visible AS v ON v.id = c.note_id
WHERE (v.chunked_at IS NULL) = (c.id = c.note_id);

-- name: candidates_of_notes
SELECT f.id, f.id AS note_id, v.created_at
FROM (SELECT DISTINCT d.id FROM found AS d) AS f INNER JOIN visible AS v ON v.id = f.id;

-- name: found_scores
-- The scores of the candidates in the lists that found them.
SELECT f.list, f.id, f.score FROM found AS f INNER JOIN candidates AS c ON c.id = f.id;

-- name: score_vectors
-- The scores of the candidates that a list by vectors has not found.
-- index:   the primary key of the model's partition
SELECT {list} AS list, c.id, greatest(0, 1 - min(e.embedding <=> {vector}::halfvec({dimension}))) AS score
FROM candidates AS c INNER JOIN {vectors} AS e ON e.{key} = c.id
WHERE NOT EXISTS (SELECT FROM found AS f WHERE f.list = {list} AND f.id = c.id)
GROUP BY c.id;

-- name: score_words
-- The same for a list by words.
SELECT {list} AS list, c.id, least(1, -(e.weights <#> q.weights) / q.bound) AS score
FROM candidates AS c
INNER JOIN chunks AS e ON e.id = c.id
INNER JOIN questions AS q ON q.number = {number}
WHERE NOT EXISTS (SELECT FROM found AS f WHERE f.list = {list} AND f.id = c.id);

-- name: fuse_scaled
-- A convex combination of all scores, each on the fixed scale of its list (Bruch et al., arXiv 2210.11934, §3).
-- params:  {weights}, {lows}, {highs} float8[], by list
SELECT
    s.id,
    ({weights}::float8[])[s.list + 1] * greatest(
        0,
        least(
            1,
            (s.score - ({lows}::float8[])[s.list + 1])
            / (({highs}::float8[])[s.list + 1] - ({lows}::float8[])[s.list + 1])
        )
    ) AS part
FROM scores AS s;

-- name: fuse_weighted
-- A convex combination after min-max normalisation inside each list; what a list lacks scores 0 there.
-- params:  {weights} float8[], by list
SELECT
    s.id,
    ({weights}::float8[])[s.list + 1]
    * coalesce((s.score - min(s.score) OVER own) / nullif(max(s.score) OVER own - min(s.score) OVER own, 0), 1) AS part
FROM scores AS s
WINDOW own AS (PARTITION BY s.list);

-- name: fuse_rrf
-- Reciprocal rank fusion (Cormack et al., SIGIR 2009, doi:10.1145/1571941.1572114).
-- params:  {weights} float8[], by list; {rank_constant} int
SELECT
    s.id,
    ({weights}::float8[])[s.list + 1]
    / ({rank_constant} + row_number() OVER (PARTITION BY s.list ORDER BY s.score DESC, s.id)) AS part
FROM scores AS s;

-- name: windows
-- The windows of one of the best with their cosines to the question, the nearest first; equally near ones in order.
-- params:  {vector} halfvec
-- index:   the primary key of the model's partition
SELECT
    array_agg(m.start_char ORDER BY m.distance, m.position) AS starts,
    array_agg(m.end_char ORDER BY m.distance, m.position) AS ends,
    array_agg(1 - m.distance ORDER BY m.distance, m.position) AS cosines
FROM (
    SELECT w.start_char, w.end_char, w.position, w.embedding <=> {vector}::halfvec({dimension}) AS distance
    FROM {vectors} AS w WHERE w.chunk_id = b.id -- noqa: RF01
) AS m;

-- name: no_windows
SELECT NULL::integer[] AS starts, NULL::integer[] AS ends, NULL::float8[] AS cosines;

-- name: no_index_version
-- The version if the answer is not cached.
SELECT NULL::bigint AS number, NULL::text AS lineage, NULL::timestamptz AS next_expiry;

-- name: models_state
-- Changes with every change of a model.
SELECT md5(string_agg(s::text, '' ORDER BY s.name)) FROM embedding_models AS s;

-- name: search_facts
-- What decides how a tenant is searched.
-- params:  tenant text
--          {most}: a literal
-- returns: models_state text, is_shared bool (others have notes here, too), chunk_count bigint (then: how many the
--          tenant has, up to {most}), and a row for each model that is not retired, or a single one without a name:
--          name text, dimension int, provider text, digest text, similarity_threshold float8, cosine_low float8,
--          cosine_high float8, kinds text[]
SELECT
    ({models_state}) AS models_state, o.is_shared,
    CASE WHEN o.is_shared THEN (
        SELECT count(*)
        FROM (SELECT FROM chunks AS c WHERE c.tenant_id = :tenant LIMIT {most}) AS few -- noqa: AL05, AM09
    ) ELSE 0 END AS chunk_count,
    m.name, m.dimension, m.provider, m.digest, m.similarity_threshold, m.cosine_low, m.cosine_high,
    m.kinds
FROM (SELECT has_other_tenants(:tenant) AS is_shared) AS o
LEFT JOIN embedding_models AS m ON m.retired_at IS NULL;
