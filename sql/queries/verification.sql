-- The verification that stored vectors come from the model: a sample to embed again, and counts over all of them.

-- name: sample_embeddings
-- Some chunks of each of a range of months with their vectors, chosen by the hash of their id, so always the same ones.
-- Chunks whose text has changed since are left out.
-- params:  model text, month_start timestamptz, month_end timestamptz, per_month int
-- returns: content text (rendered), context text, embedding halfvec, contextual_embedding halfvec
WITH numbered AS (
    SELECT
        e.chunk_id,
        row_number() OVER (
            PARTITION BY date_trunc('month', n.created_at, 'UTC')
            ORDER BY sha256(uuid_send(e.chunk_id)), e.chunk_id
        ) AS place
    FROM notes AS n
    INNER JOIN chunks AS c ON c.note_id = n.id
    INNER JOIN chunk_embeddings AS e ON e.model = :model AND e.chunk_id = c.id
    WHERE
        n.created_at >= :month_start AND n.created_at < :month_end
        AND e.content_sha256 = c.content_sha256 AND e.contextual_sha256 = c.contextual_sha256
)

SELECT coalesce(c.rendered, c.content) AS content, c.context, e.embedding, e.contextual_embedding
FROM numbered AS s
INNER JOIN chunks AS c ON c.id = s.chunk_id
INNER JOIN chunk_embeddings AS e ON e.model = :model AND e.chunk_id = s.chunk_id
WHERE s.place <= :per_month
ORDER BY s.chunk_id;

-- name: sample_windows
-- Some windows of each of a range of months with their vectors, chosen by the hash of their chunk and their number:
-- always the same ones. Windows of notes that wait for new ones are left out.
-- params:  model text, month_start timestamptz, month_end timestamptz, per_month int
-- returns: title text, tags text[], content text (of the chunk), start_char int, end_char int, embedding halfvec
WITH numbered AS (
    SELECT
        w.chunk_id, w.window_index,
        row_number() OVER (
            PARTITION BY date_trunc('month', n.created_at, 'UTC')
            ORDER BY sha256(uuid_send(w.chunk_id) || int4send(w.window_index)), w.chunk_id, w.window_index
        ) AS place
    FROM notes AS n
    INNER JOIN chunks AS c ON c.note_id = n.id
    INNER JOIN chunk_windows AS w ON w.model = :model AND w.chunk_id = c.id
    LEFT JOIN pending_vectors AS p ON p.model = :model AND p.kind = 'window' AND p.note_id = n.id
    WHERE n.created_at >= :month_start AND n.created_at < :month_end AND p.note_id IS NULL
)

SELECT n.title, n.tags, c.content, w.start_char, w.end_char, w.embedding
FROM numbered AS s
INNER JOIN chunks AS c ON c.id = s.chunk_id
INNER JOIN notes AS n ON n.id = c.note_id
INNER JOIN chunk_windows AS w
    ON w.model = :model AND w.chunk_id = s.chunk_id AND w.window_index = s.window_index
WHERE s.place <= :per_month
ORDER BY s.chunk_id, s.window_index;

-- name: count_faulty_embeddings^
-- How many chunks of a range of months have a vector whose length is not 1 (apart from the rounding of halfvec), and
-- how many have one of another dimension.
-- params:  model text, dimension int, month_start timestamptz, month_end timestamptz
-- returns: wrong_norms bigint, wrong_dimension bigint
SELECT
    count(*) FILTER (
        WHERE l2_norm(e.embedding) NOT BETWEEN 0.99 AND 1.01
        OR l2_norm(e.contextual_embedding) NOT BETWEEN 0.99 AND 1.01
    ) AS wrong_norms,
    count(*) FILTER (
        WHERE vector_dims(e.embedding) <> :dimension OR vector_dims(e.contextual_embedding) <> :dimension
    ) AS wrong_dimension
FROM notes AS n
INNER JOIN chunks AS c ON c.note_id = n.id
INNER JOIN chunk_embeddings AS e ON e.model = :model AND e.chunk_id = c.id
WHERE n.created_at >= :month_start AND n.created_at < :month_end;

-- name: count_faulty_windows^
-- The same for windows.
-- params:  model text, dimension int, month_start timestamptz, month_end timestamptz
-- returns: wrong_norms bigint, wrong_dimension bigint
SELECT
    count(*) FILTER (WHERE l2_norm(w.embedding) NOT BETWEEN 0.99 AND 1.01) AS wrong_norms,
    count(*) FILTER (WHERE vector_dims(w.embedding) <> :dimension) AS wrong_dimension
FROM notes AS n
INNER JOIN chunks AS c ON c.note_id = n.id
INNER JOIN chunk_windows AS w ON w.model = :model AND w.chunk_id = c.id
WHERE n.created_at >= :month_start AND n.created_at < :month_end;
