-- name: list_golden
-- The golden dataset in a stable order.
-- returns: all columns of golden_dataset but normalized_query
SELECT
    g.id, g.query, g.relevant_note_ids, g.expected_answer, g.category, g.difficulty, g.tags, g.created_at, g.updated_at
FROM golden_dataset AS g
ORDER BY
    g.normalized_query COLLATE "C", -- noqa: RF03
    g.id;

-- name: upsert_golden!
-- Insert a question or bring it up to date; the question itself, normalised, is its identity.
-- params:  golden_id uuid, query text, normalized_query text, relevant_note_ids uuid[], expected_answer text,
--          category text, difficulty int, tags text[], created_at timestamptz or null, updated_at timestamptz or null
INSERT INTO golden_dataset AS g (
    id, query, normalized_query, relevant_note_ids, expected_answer, category, difficulty, tags, created_at, updated_at
)
VALUES (
    :golden_id, :query, :normalized_query, :relevant_note_ids, :expected_answer, :category, :difficulty, :tags,
    coalesce(:created_at::timestamptz, now()), coalesce(:updated_at::timestamptz, now())
)
ON CONFLICT (normalized_query) DO UPDATE
    SET
        query = excluded.query, relevant_note_ids = excluded.relevant_note_ids,
        expected_answer = excluded.expected_answer, category = excluded.category, difficulty = excluded.difficulty,
        tags = excluded.tags, updated_at = coalesce(:updated_at::timestamptz, now())
    WHERE (g.query, g.relevant_note_ids, g.expected_answer, g.category, g.difficulty, g.tags)
    IS DISTINCT FROM (
        excluded.query, excluded.relevant_note_ids, excluded.expected_answer, excluded.category,
        excluded.difficulty, excluded.tags
    );

-- name: delete_other_golden!
-- Delete the questions that a replacing import no longer has.
-- params:  normalized_queries text[]
DELETE FROM golden_dataset AS g WHERE g.normalized_query <> ALL(:normalized_queries);

-- name: find_broken_golden
-- Golden questions with a relevant note that is gone.
-- returns: query text, missing uuid[]
SELECT b.query, b.missing FROM (
    SELECT
        g.query,
        (
            SELECT array_agg(r.note_id ORDER BY r.note_id) FROM unnest(g.relevant_note_ids) AS r (note_id)
            WHERE NOT EXISTS (SELECT FROM notes AS n WHERE n.id = r.note_id)
        ) AS missing
    FROM golden_dataset AS g
) AS b WHERE b.missing IS NOT NULL ORDER BY b.query;
