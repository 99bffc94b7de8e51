-- name: announce_chunking!
-- Announce that this transaction changes chunks. The lock conflicts with lock_for_partitions and lock_chunking. So a
-- model is registered or retired before notes are queued for the known models, and a rollback is visible before a note
-- is claimed.
LOCK TABLE chunks IN ROW EXCLUSIVE MODE;

-- name: find_changed_notes
-- The given notes whose stored chunks differ from the given ones, contexts included.
-- params:  note_ids uuid[], and a row for each chunk: parents uuid[], ids uuid[], contexts text[], topics text[],
--          rendered text[], starts int[], ends int[]
-- returns: note_id uuid
-- index:   chunks_position_key
SELECT DISTINCT coalesce(c.note_id, u.note_id) AS note_id
FROM (SELECT * FROM chunks WHERE note_id = ANY(:note_ids)) AS c
FULL JOIN
    unnest(
        :parents::uuid[], :ids::uuid[], :contexts::text[], :topics::text[], :rendered::text[], :starts::integer[],
        :ends::integer[]
    ) AS u (note_id, id, context, topics, rendered, start_char, end_char)
    ON u.id = c.id
WHERE
    (u.context, u.topics, u.rendered, u.start_char, u.end_char)
    IS DISTINCT FROM (c.context, c.topics, c.rendered, c.start_char, c.end_char);

-- name: request_vectors!
-- Queue notes for every model that embeds chunks, or windows. Run it before changing their chunks: it waits for an
-- embedding run that has claimed one of them, so that no work is lost and nothing deadlocks.
-- params:  note_ids uuid[]
SELECT request_vectors(:note_ids);

-- name: upsert_chunks!
-- Insert or update chunks of the given notes; existing chunks keep their vectors.
-- params:  a row for each chunk: parents uuid[], ids uuid[], indexes int[], contents text[], contexts text[],
--          topics text[], rendered text[], starts int[], ends int[]
INSERT INTO chunks AS c (note_id, id, chunk_index, content, context, topics, rendered, start_char, end_char, tenant_id)
SELECT u.*, n.tenant_id
FROM
    unnest(
        :parents::uuid[], :ids::uuid[], :indexes::integer[], :contents::text[], :contexts::text[], :topics::text[],
        :rendered::text[], :starts::integer[], :ends::integer[]
    ) AS u (note_id, id, chunk_index, content, context, topics, rendered, start_char, end_char)
INNER JOIN notes AS n ON n.id = u.note_id
ON CONFLICT (id) DO UPDATE
    SET
        context = excluded.context, topics = excluded.topics, rendered = excluded.rendered,
        start_char = excluded.start_char, end_char = excluded.end_char
    WHERE (c.context, c.topics, c.rendered, c.start_char, c.end_char)
    IS DISTINCT FROM (excluded.context, excluded.topics, excluded.rendered, excluded.start_char, excluded.end_char);

-- name: settle_provisional_chunks!
-- Make the provisional chunks of notes that are a single chunk that chunk: it keeps its words and vectors.
-- params:  note_ids uuid[], and a row for each chunk: parents uuid[], ids uuid[], contents text[], contexts text[],
--          topics text[], rendered text[]
UPDATE chunks AS c SET id = u.id, context = u.context, topics = u.topics, rendered = u.rendered, chunk_index = 0
FROM
    unnest(:parents::uuid[], :ids::uuid[], :contents::text[], :contexts::text[], :topics::text[], :rendered::text[])
        AS u (note_id, id, content, context, topics, rendered)
WHERE
    c.id = ANY(:note_ids) AND c.id = u.note_id AND c.content = u.content
    AND NOT EXISTS (SELECT FROM chunks AS o WHERE o.note_id = c.note_id AND o.id <> c.id);

-- name: delete_other_chunks!
-- Delete the chunks of the given notes whose ids are not listed.
-- params:  note_ids uuid[], ids uuid[]
DELETE FROM chunks WHERE note_id = ANY(:note_ids) AND id <> ALL(:ids);

-- name: count_chunks
-- params:  note_ids uuid[]
-- returns: note_id uuid, chunks bigint; no row for a note without any
SELECT c.note_id, count(*) AS chunks FROM chunks AS c WHERE c.note_id = ANY(:note_ids) GROUP BY c.note_id;

-- name: find_broken_chunks
-- Chunks of a range of months with wrong bounds or content, and notes whose chunks are missing or out of sequence.
-- params:  month_start timestamptz, month_end timestamptz, row_limit int
-- returns: note_id uuid, problem text ('bounds', 'sequence', 'missing')
SELECT b.note_id, b.problem FROM (
    SELECT c.note_id, 'bounds' AS problem FROM chunks AS c
    INNER JOIN notes AS n ON n.id = c.note_id -- noqa: ST09
    WHERE
        n.created_at >= :month_start AND n.created_at < :month_end AND n.chunked_at IS NOT NULL
        AND (
            c.end_char > char_length(n.content)
            OR substr(n.content, c.start_char + 1, c.end_char - c.start_char) <> c.content
        )
    UNION ALL
    SELECT n.id, CASE WHEN count(c.id) = 0 THEN 'missing' ELSE 'sequence' END AS problem
    FROM notes AS n LEFT JOIN chunks AS c ON c.note_id = n.id
    WHERE
        n.created_at >= :month_start AND n.created_at < :month_end AND n.chunked_at IS NOT NULL
        AND n.content ~ '[^\s\x1c-\x1f]'
    GROUP BY n.id
    HAVING count(c.id) = 0 OR min(c.chunk_index) <> 0 OR max(c.chunk_index) <> count(c.id) - 1
) AS b ORDER BY b.note_id, b.problem LIMIT :row_limit;

-- name: stream_chunk_spans
-- Every chunked note of a range of months with the ranges of its chunks, to check their coverage.
-- params:  month_start timestamptz, month_end timestamptz
-- returns: note_id uuid, content text, starts int[], ends int[]
SELECT
    n.id AS note_id, n.content,
    array_agg(c.start_char ORDER BY c.chunk_index) AS starts, array_agg(c.end_char ORDER BY c.chunk_index) AS ends
FROM notes AS n INNER JOIN chunks AS c ON c.note_id = n.id
WHERE n.created_at >= :month_start AND n.created_at < :month_end AND n.chunked_at IS NOT NULL
GROUP BY n.id ORDER BY n.id;

-- name: lock_lexeme_statistics!
-- Allow one refresh at a time: two would wait for each other's rows. Readers never wait.
LOCK TABLE lexeme_statistics IN SHARE ROW EXCLUSIVE MODE;

-- name: refresh_lexeme_statistics!
-- Add the changes since the last refresh to the counts, without reading other rows. It is one statement, so one
-- snapshot: later commits are left to the next refresh. The row of a tenant without chunks stays.
WITH groups AS MATERIALIZED (
    SELECT
        w.tenant_id, w.sign, sum(w.sign) AS chunks, sum(w.sign * w.occurrences) AS occurrences,
        'SELECT words FROM chunk_word_changes WHERE tenant_id = ' || quote_literal(w.tenant_id)
        || ' AND sign = ' || w.sign AS words
    FROM chunk_word_changes AS w GROUP BY w.tenant_id, w.sign
),

counted AS MATERIALIZED (
    SELECT g.tenant_id, s.word AS lexeme, sum(g.sign * s.ndoc)::integer AS added
    FROM groups AS g CROSS JOIN LATERAL ts_stat(g.words) AS s
    GROUP BY g.tenant_id, s.word HAVING sum(g.sign * s.ndoc) <> 0
),

taken AS (
    DELETE FROM chunk_word_changes
),

gone AS (
    DELETE FROM lexeme_statistics AS l USING counted AS c
    WHERE l.tenant_id = c.tenant_id AND l.lexeme = c.lexeme AND l.document_count + c.added = 0
),

written AS (
    INSERT INTO lexeme_statistics AS l (tenant_id, lexeme, document_count)
    SELECT c.tenant_id, c.lexeme, coalesce(k.document_count, 0) + c.added AS document_count
    FROM counted AS c LEFT JOIN lexeme_statistics AS k ON k.tenant_id = c.tenant_id AND k.lexeme = c.lexeme
    WHERE coalesce(k.document_count, 0) + c.added <> 0
    ON CONFLICT (tenant_id, lexeme) DO UPDATE SET document_count = excluded.document_count
),

sums AS (
    SELECT
        g.tenant_id, coalesce(max(k.chunk_count), 0) + sum(g.chunks) AS chunk_count,
        (coalesce(max(k.lexeme_occurrences), 0) + sum(g.occurrences))::numeric AS occurrences
    FROM groups AS g LEFT JOIN corpus_statistics AS k ON k.tenant_id = g.tenant_id
    GROUP BY g.tenant_id
)

INSERT INTO corpus_statistics AS s (
    tenant_id, chunk_count, average_lexeme_occurrences, lexeme_occurrences, refreshed_at
)
SELECT
    s.tenant_id, s.chunk_count,
    coalesce(s.occurrences / nullif(s.chunk_count, 0), 0) AS average_lexeme_occurrences,
    s.occurrences AS lexeme_occurrences, now() AS refreshed_at
FROM sums AS s
ON CONFLICT (tenant_id) DO UPDATE
    SET
        chunk_count = excluded.chunk_count, average_lexeme_occurrences = excluded.average_lexeme_occurrences,
        lexeme_occurrences = excluded.lexeme_occurrences, refreshed_at = excluded.refreshed_at;

-- name: recount_words!
-- Let the next refresh count the words of all chunks anew, whatever is counted already.
WITH counted AS (
    DELETE FROM lexeme_statistics
),

sums AS (
    UPDATE corpus_statistics SET chunk_count = 0, average_lexeme_occurrences = 0, lexeme_occurrences = 0
),

taken AS (
    DELETE FROM chunk_word_changes
)

INSERT INTO chunk_word_changes (sign, words, occurrences, tenant_id)
SELECT 1 AS sign, strip(c.tsv) AS words, c.lexeme_occurrences, c.tenant_id FROM chunks AS c;

-- name: compare_statistics
-- How far the stored statistics are from the present chunks, judged by the changes since, without reading other rows.
-- returns: chunk_count bigint; exactly boolean; roughly boolean (no tenant's count differs by more than 1 %, nor the
--          average length by more than 5 %, and statistics that differ are at most a day old); wrong boolean (they and
--          what changed are not what the chunks are: somebody has written them, or they were never counted)
WITH changes AS (
    SELECT w.tenant_id, count(*) AS entries, sum(w.sign) AS chunks, sum(w.sign * w.occurrences) AS occurrences
    FROM chunk_word_changes AS w GROUP BY w.tenant_id
),

compared AS (
    SELECT
        coalesce(s.tenant_id, c.tenant_id) AS tenant_id, coalesce(s.chunk_count, 0) AS known_count,
        coalesce(s.average_lexeme_occurrences, 0) AS known_average,
        coalesce(s.chunk_count, 0) + coalesce(c.chunks, 0) AS chunk_count,
        coalesce(c.entries, 0) AS entries,
        s.tenant_id IS NOT NULL AND s.lexeme_occurrences IS NULL AS is_uncounted,
        coalesce(
            (s.lexeme_occurrences + coalesce(c.occurrences, 0))
            / nullif(s.chunk_count + coalesce(c.chunks, 0), 0)::double precision,
            0
        ) AS average_occurrences,
        s.refreshed_at
    FROM corpus_statistics AS s FULL JOIN changes AS c ON c.tenant_id = s.tenant_id
)

SELECT
    coalesce(sum(c.chunk_count), 0)::bigint AS chunk_count,
    coalesce(bool_and(c.entries = 0), TRUE) AS exactly,
    coalesce(
        bool_and(
            c.entries = 0
            OR (
                abs(c.chunk_count - c.known_count) * 100 <= c.known_count
                AND abs(c.average_occurrences - c.known_average) * 20 <= c.known_average
                AND c.refreshed_at > now() - interval '1 day'
            )
        ),
        TRUE
    ) AS roughly,
    coalesce(
        bool_or(
            c.is_uncounted
            OR (c.chunk_count > 0) <> EXISTS (SELECT FROM chunks AS h WHERE h.tenant_id = c.tenant_id)
        ),
        FALSE
    ) AS wrong
FROM compared AS c;

-- name: record_failure!
-- Record that a text could not be chunked or embedded, one row per text. Nothing is recorded for a note that is deleted
-- or being deleted.
-- params:  stage text, note_id uuid, chunk_id uuid or null, model text or null, error jsonb
INSERT INTO indexing_failures (stage, note_id, chunk_id, model, error, tenant_id)
SELECT :stage, n.id, :chunk_id::uuid, :model, :error, n.tenant_id FROM notes AS n WHERE n.id = :note_id
FOR KEY SHARE OF n SKIP LOCKED
ON CONFLICT (stage, note_id, chunk_id, model) DO UPDATE SET error = excluded.error, occurred_at = now();

-- name: clear_failures!
-- Delete the recorded failures of notes that have succeeded since.
-- params:  stage text, note_ids uuid[], model text or null
DELETE FROM indexing_failures
WHERE stage = :stage AND note_id = ANY(:note_ids) AND model IS NOT DISTINCT FROM :model;
