-- Ranked lists of one question. Every query here returns (retriever text, chunk_id uuid, note_id uuid, score float8),
-- score in [0, 1]; store.search joins those that a strategy needs by UNION ALL, so that they take one round trip.
-- Placeholders in braces are identifiers and the dimension of a model, filled in by psycopg.sql.

-- name: search_chunk_vectors
-- Nearest chunks by cosine of their standard or contextual vectors: the column is a placeholder.
-- params:  vector halfvec, model text, tenant text, threshold float8, pool int (>= 1)
-- index:   HNSW of the model's partition; exact while it has none
SELECT {list_name} AS retriever, s.chunk_id, s.note_id, greatest(0, least(1, 1 - s.distance)) AS score
FROM (
    SELECT
        e.chunk_id, c.note_id,
        (e.{embedding}::halfvec({dimension}) <=> :vector::halfvec({dimension})) AS distance
    FROM {chunk_embeddings} AS e
    INNER JOIN chunks AS c ON c.id = e.chunk_id
    INNER JOIN notes AS n ON n.id = c.note_id
    WHERE
        n.tenant_id = :tenant AND n.chunked_at IS NOT NULL AND (n.expires_at IS NULL OR n.expires_at > now())
        AND e.{embedding} IS NOT NULL
        AND NOT EXISTS (SELECT FROM pending_embeddings AS p WHERE p.model = :model AND p.note_id = c.note_id)
    ORDER BY e.{embedding}::halfvec({dimension}) <=> :vector::halfvec({dimension}), e.chunk_id LIMIT :pool
) AS s
WHERE 1 - s.distance >= :threshold
ORDER BY s.distance, s.chunk_id;

-- name: search_fulltext_chunks
-- BM25 over both Spanish stemmings (Robertson and Zaragoza, 2009; k1 1.2, b 0.75), divided by its upper bound.
-- Candidates hold one of the rarest lexemes, taken while their document counts stay within the budget; the best of
-- them by ts_rank are scored over all lexemes, so the cost does not grow with the corpus.
-- params:  query text, model text (empty: none), tenant text, pool int (>= 1), budget int (>= 1),
--          rescored int (>= pool)
-- index:   chunks_tsv_idx
SELECT 'fulltext' AS retriever, s.chunk_id, s.note_id, s.score FROM (
    WITH corpus AS MATERIALIZED (
        SELECT
            greatest(i.chunk_count, 1)::double precision AS document_count,
            greatest(i.average_lexeme_occurrences, 1) AS average_length
        FROM index_state AS i
    ),

    lexemes AS MATERIALIZED (
        SELECT
            q.lexeme, coalesce(l.document_count, 0) AS document_count,
            ln(
                1 + (greatest(c.document_count - coalesce(l.document_count, 0), 0) + 0.5)
                / (coalesce(l.document_count, 0) + 0.5)
            ) AS idf
        FROM unnest(spanish_tsvector(:query)) AS q
        CROSS JOIN corpus AS c
        LEFT JOIN lexeme_statistics AS l ON l.lexeme = q.lexeme
    ),

    budgeted AS (
        SELECT
            x.lexeme, x.document_count,
            sum(x.document_count) OVER (ORDER BY x.document_count, x.lexeme) AS running
        FROM lexemes AS x
    ),

    queries AS MATERIALIZED (
        SELECT
            (
                SELECT string_agg(quote_literal(b.lexeme), ' | ')::tsquery FROM budgeted AS b
                WHERE b.running <= :budget OR b.running = b.document_count
            ) AS candidate_query,
            (SELECT string_agg(quote_literal(x.lexeme), ' | ')::tsquery FROM lexemes AS x) AS full_query
    ),

    candidates AS MATERIALIZED (
        SELECT c.id, c.note_id, c.tsv, c.lexeme_occurrences
        FROM queries AS q
        INNER JOIN chunks AS c ON c.tsv @@ q.candidate_query
        INNER JOIN notes AS n ON n.id = c.note_id
        WHERE
            n.tenant_id = :tenant AND n.chunked_at IS NOT NULL AND (n.expires_at IS NULL OR n.expires_at > now())
            AND NOT EXISTS (SELECT FROM pending_embeddings AS p WHERE p.model = :model AND p.note_id = c.note_id)
        ORDER BY ts_rank(c.tsv, q.full_query) DESC, c.id LIMIT :rescored
    )

    SELECT
        c.id AS chunk_id, c.note_id,
        least(1, sum(
            x.idf * cardinality(t.positions) * 2.2
            / (cardinality(t.positions) + 1.2 * (0.25 + 0.75 * c.lexeme_occurrences / k.average_length))
        ) / (SELECT sum(a.idf) * 2.2 FROM lexemes AS a)) AS score
    FROM candidates AS c
    CROSS JOIN corpus AS k
    CROSS JOIN LATERAL unnest(c.tsv) AS t
    INNER JOIN lexemes AS x ON x.lexeme = t.lexeme
    GROUP BY c.id, c.note_id
) AS s
ORDER BY s.score DESC, s.chunk_id LIMIT :pool;

-- name: search_semantic_notes
-- Nearest whole notes: all of them, or those not searched by their chunks yet.
-- params:  note_vector halfvec, model text, tenant text, note_threshold float8, pool int (>= 1), unchunked_only bool
SELECT 'notes_semantic' AS retriever, s.note_id AS chunk_id, s.note_id, greatest(0, least(1, 1 - s.distance)) AS score
FROM (
    SELECT
        e.note_id,
        (e.embedding::halfvec({note_dimension}) <=> :note_vector::halfvec({note_dimension})) AS distance
    FROM {note_embeddings} AS e
    INNER JOIN notes AS n ON n.id = e.note_id
    WHERE
        n.tenant_id = :tenant AND (n.expires_at IS NULL OR n.expires_at > now())
        AND (NOT :unchunked_only OR n.id IN (
            SELECT u.id FROM notes AS u WHERE u.chunked_at IS NULL
            UNION ALL
            SELECT p.note_id FROM pending_embeddings AS p WHERE p.model = :model
        ))
    ORDER BY e.embedding::halfvec({note_dimension}) <=> :note_vector::halfvec({note_dimension}), e.note_id
    LIMIT :pool
) AS s
WHERE 1 - s.distance >= :note_threshold
ORDER BY s.distance, s.note_id;

-- name: search_fulltext_notes
-- Notes by their words: all of them, or those not searched by their chunks yet.
-- The score is normalised by r / (r + 0.1), so in [0, 1).
-- params:  query text, model text, tenant text, pool int (>= 1), unchunked_only bool
-- index:   notes_tsv_idx
SELECT 'notes_fulltext' AS retriever, s.note_id AS chunk_id, s.note_id, s.rank / (s.rank + 0.1) AS score
FROM (
    WITH query AS MATERIALIZED (
        SELECT string_agg(quote_literal(q.lexeme), ' | ')::tsquery AS any_lexeme
        FROM unnest(spanish_tsvector(:query)) AS q
    )

    SELECT n.id AS note_id, ts_rank(n.tsv, q.any_lexeme, 1)::double precision AS rank
    FROM query AS q INNER JOIN notes AS n ON n.tsv @@ q.any_lexeme
    WHERE
        n.tenant_id = :tenant AND (n.expires_at IS NULL OR n.expires_at > now())
        AND (NOT :unchunked_only OR n.id IN (
            SELECT u.id FROM notes AS u WHERE u.chunked_at IS NULL
            UNION ALL
            SELECT p.note_id FROM pending_embeddings AS p WHERE p.model = :model
        ))
    ORDER BY rank DESC, n.id LIMIT :pool
) AS s
WHERE s.rank > 0
ORDER BY score DESC, s.note_id;

-- name: any_unchunked$
-- Whether any note is not yet searched by its chunks.
-- params:  model text
-- returns: bool
-- index:   notes_unchunked_idx, pending_embeddings_pkey
SELECT
    EXISTS (SELECT FROM notes WHERE chunked_at IS NULL)
    OR EXISTS (SELECT FROM pending_embeddings WHERE model = :model);
