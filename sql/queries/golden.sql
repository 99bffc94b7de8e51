-- name: list_golden
-- The golden dataset in a stable order.
-- returns: all columns of golden_dataset but normalized_query
SELECT
    g.id, g.query, g.relevant_note_ids, g.expected_answer, g.category, g.difficulty, g.tags, g.created_at, g.updated_at,
    g.places
FROM golden_dataset AS g WHERE g.tenant_id = current_tenant()
ORDER BY
    g.normalized_query COLLATE "C", -- noqa: RF03
    g.id;

-- name: withdrawn_golden
-- Questions as they were at the last promotion that were removed or changed since without a reason. A promotion is
-- still judged on them, while one of their notes is stored.
-- returns: golden_id uuid, is_changed bool (it is still in the dataset, otherwise), entry jsonb (of golden_dataset)
-- index:   golden_history_question_idx
WITH changes AS (
    SELECT h.golden_id, h.id, h.old_entry, h.reason
    FROM golden_history AS h
    WHERE
        h.tenant_id = current_tenant()
        AND h.changed_at > (SELECT max(p.promoted_at) FROM promotions AS p WHERE p.tenant_id = current_tenant())
),

before AS (SELECT DISTINCT ON (c.golden_id) c.golden_id, c.old_entry FROM changes AS c ORDER BY c.golden_id, c.id)

SELECT
    b.golden_id, b.old_entry AS entry,
    (SELECT count(*) > 0 FROM golden_dataset AS g WHERE g.id = b.golden_id AND g.tenant_id = current_tenant())
        AS is_changed
FROM before AS b
WHERE
    b.old_entry IS NOT NULL
    AND NOT EXISTS (SELECT FROM changes AS c WHERE c.golden_id = b.golden_id AND c.reason <> '')
    AND NOT EXISTS (
        SELECT FROM golden_dataset AS g
        WHERE
            g.tenant_id = current_tenant() AND g.normalized_query = b.old_entry ->> 'normalized_query'
            AND to_jsonb(g.relevant_note_ids) = b.old_entry -> 'relevant_note_ids'
            AND g.category = b.old_entry ->> 'category' AND g.difficulty = (b.old_entry ->> 'difficulty')::smallint
    )
    AND EXISTS (
        SELECT FROM notes AS n
        WHERE b.old_entry -> 'relevant_note_ids' ? n.id::text
    )
ORDER BY b.golden_id;

-- name: displaced_places
-- Places of golden questions whose stored text no longer matches the note at that range, with the note's current
-- content.
-- returns: golden_id uuid, position int (from 0), content text
SELECT g.id AS golden_id, (p.number - 1)::integer AS position, n.content
FROM golden_dataset AS g
CROSS JOIN LATERAL jsonb_array_elements(g.places) WITH ORDINALITY AS p (place, number)
INNER JOIN notes AS n ON n.id = (p.place ->> 'note')::uuid
WHERE
    g.tenant_id = current_tenant()
    AND substr(
        n.content, (p.place ->> 'start')::integer + 1, (p.place ->> 'end')::integer - (p.place ->> 'start')::integer
    ) <> p.place ->> 'text';

-- name: lock_golden!
-- Allow one writer of the dataset at a time; its triggers take the same lock.
LOCK TABLE golden_history IN SHARE ROW EXCLUSIVE MODE;

-- name: defer_golden_repeats!
-- Check that questions are unique only at commit, so that two rows can exchange their questions.
SET CONSTRAINTS golden_dataset_tenant_id_normalized_query_key DEFERRED;

-- name: insert_golden*!
-- params:  golden_id uuid, query text, normalized_query text, relevant_note_ids uuid[], expected_answer text,
--          category text, difficulty int, tags text[], created_at timestamptz or null, updated_at timestamptz or null,
--          places jsonb
INSERT INTO golden_dataset (
    id, query, normalized_query, relevant_note_ids, expected_answer, category, difficulty, tags, created_at, updated_at,
    places
)
VALUES (
    :golden_id, :query, :normalized_query, :relevant_note_ids, :expected_answer, :category, :difficulty, :tags,
    coalesce(:created_at::timestamptz, now()), coalesce(:updated_at::timestamptz, now()), :places
);

-- name: update_golden*!
-- params:  stored_id uuid (as it was), and the parameters of insert_golden
UPDATE golden_dataset
SET
    id = :golden_id, query = :query, normalized_query = :normalized_query, relevant_note_ids = :relevant_note_ids,
    expected_answer = :expected_answer, category = :category, difficulty = :difficulty, tags = :tags, places = :places,
    created_at = coalesce(:created_at::timestamptz, created_at), updated_at = coalesce(:updated_at::timestamptz, now())
WHERE id = :stored_id AND tenant_id = current_tenant();

-- name: delete_golden!
-- params:  golden_ids uuid[]
DELETE FROM golden_dataset AS g WHERE g.id = ANY(:golden_ids) AND g.tenant_id = current_tenant();

-- name: golden_origins
-- The last writer of each question.
-- returns: golden_id uuid, source text (the file; empty if unknown), by_person bool
-- index:   golden_history_question_idx
SELECT
    g.id AS golden_id, h.source,
    h.source = '' AND (h.origin = '' OR starts_with(h.origin, 'rag golden ')) AS by_person
FROM golden_dataset AS g
CROSS JOIN
    LATERAL (
        SELECT l.source, l.origin FROM golden_history AS l
        WHERE l.golden_id = g.id AND l.tenant_id = g.tenant_id
        ORDER BY l.id DESC LIMIT 1
    ) AS h
WHERE g.tenant_id = current_tenant();

-- name: deleted_golden
-- Questions that a person deleted and nobody has entered again.
-- returns: golden_id uuid, normalized_query text
-- index:   golden_history_question_idx
SELECT h.golden_id, h.old_entry ->> 'normalized_query' AS normalized_query
FROM (
    SELECT DISTINCT ON (l.golden_id) l.golden_id, l.operation, l.source, l.origin, l.old_entry
    FROM golden_history AS l WHERE l.tenant_id = current_tenant() ORDER BY l.golden_id, l.id DESC
) AS h
WHERE h.operation = 'delete' AND h.source = '' AND (h.origin = '' OR starts_with(h.origin, 'rag golden '));

-- name: notes_with_texts
-- A note that has each of the given texts, the newest; texts that no note has are left out. It reads every note.
-- params:  texts text[]
-- returns: text text, name text (as the source calls the note)
SELECT DISTINCT ON (t.text) t.text, coalesce(n.external_id, n.id::text) AS name
FROM unnest(:texts::text[]) AS t (text)
INNER JOIN notes AS n ON strpos(n.content, t.text) > 0
WHERE n.tenant_id = current_tenant() AND (n.expires_at IS NULL OR n.expires_at > now())
ORDER BY t.text, n.created_at DESC, n.id;

-- name: golden_note_states
-- Relevant notes that were deleted, have expired, or have changed since their question was last written.
-- returns: golden_id uuid, query text, note_id uuid, name text (as the source calls it),
--          gone bool (deleted or expired), deleted bool
-- index:   golden_history_question_idx
WITH deleted AS (
    SELECT DISTINCT ON (t.note_id) t.note_id, t.external_id FROM tombstones AS t
    WHERE t.tenant_id = current_tenant()
    ORDER BY t.note_id, t.deleted_at DESC, t.content_sha256
)

SELECT
    g.id AS golden_id, g.query, r.note_id, coalesce(n.external_id, d.external_id, r.note_id::text) AS name,
    n.id IS NULL OR coalesce(n.expires_at <= now(), FALSE) AS gone, n.id IS NULL AS deleted
FROM golden_dataset AS g
CROSS JOIN LATERAL unnest(g.relevant_note_ids) WITH ORDINALITY AS r (note_id, place)
LEFT JOIN notes AS n ON n.id = r.note_id
LEFT JOIN deleted AS d ON d.note_id = r.note_id
WHERE
    g.tenant_id = current_tenant()
    AND (
        n.id IS NULL OR n.expires_at <= now()
        OR encode(n.content_sha256, 'hex') IS DISTINCT FROM (
            SELECT h.note_hashes ->> r.note_id::text FROM golden_history AS h
            WHERE h.golden_id = g.id AND h.tenant_id = g.tenant_id ORDER BY h.id DESC LIMIT 1
        )
    )
ORDER BY g.query, g.id, r.place;

-- name: reference_breakdown$
-- The breakdown by question kind of the reference evaluation: that of the serving promotion, or else the latest.
-- returns: jsonb; nothing before the first evaluation
SELECT e.breakdown FROM evaluation_results AS e WHERE e.tenant_id = current_tenant()
ORDER BY
    e.id = (
        SELECT p.evaluation_id FROM promotions AS p
        WHERE p.evaluation_id IS NOT NULL AND p.tenant_id = current_tenant() ORDER BY p.id DESC LIMIT 1
    ) DESC NULLS LAST,
    e.created_at DESC,
    e.id
LIMIT 1;

-- name: golden_questions_naming
-- Golden questions with one of these notes among their relevant ones.
-- params:  note_ids uuid[]
-- returns: id uuid, query text
SELECT g.id, g.query FROM golden_dataset AS g
WHERE g.relevant_note_ids && :note_ids AND g.tenant_id = current_tenant()
ORDER BY
    g.normalized_query COLLATE "C", -- noqa: RF03
    g.id;
