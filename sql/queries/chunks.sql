-- name: announce_chunking!
-- Announce that this transaction changes chunks. The lock conflicts with lock_for_partitions and lock_chunking. So a
-- model is registered or retired before notes are queued for the known models, and a rollback is visible before a note
-- is claimed.
LOCK TABLE chunks IN ROW EXCLUSIVE MODE;

-- name: find_changed_notes
-- The given notes whose stored chunks differ from the given ones, contexts included.
-- params:  note_ids uuid[], and a row for each chunk: parents uuid[], ids uuid[], contexts text[], topics text[],
--          starts int[], ends int[]
-- returns: note_id uuid
-- index:   chunks_position_key
SELECT DISTINCT coalesce(c.note_id, u.note_id) AS note_id
FROM (SELECT * FROM chunks WHERE note_id = ANY(:note_ids)) AS c
FULL JOIN
    unnest(:parents::uuid[], :ids::uuid[], :contexts::text[], :topics::text[], :starts::integer[], :ends::integer[])
        AS u (note_id, id, context, topics, start_char, end_char)
    ON u.id = c.id
WHERE
    (u.context, u.topics, u.start_char, u.end_char)
    IS DISTINCT FROM (c.context, c.topics, c.start_char, c.end_char);

-- name: request_embeddings!
-- Queue notes for every model that embeds chunks. Run it before changing their chunks: it waits for an embedding run
-- that has claimed one of them, so that no work is lost and nothing deadlocks.
-- params:  note_ids uuid[]
INSERT INTO pending_embeddings AS p (model, note_id)
SELECT m.name, u.id FROM embedding_models AS m CROSS JOIN unnest(:note_ids::uuid[]) AS u (id)
WHERE m.embeds_chunks ORDER BY m.name, u.id
ON CONFLICT (model, note_id) DO UPDATE SET requested_at = now();

-- name: request_windows!
-- Queue notes for every model that has windows; before any change of their chunks, too.
-- params:  note_ids uuid[]
INSERT INTO pending_windows AS p (model, note_id)
SELECT m.name, u.id FROM embedding_models AS m CROSS JOIN unnest(:note_ids::uuid[]) AS u (id)
WHERE m.windows_hash IS NOT NULL ORDER BY m.name, u.id
ON CONFLICT (model, note_id) DO UPDATE SET requested_at = now();

-- name: upsert_chunks!
-- Insert or update chunks of the given notes; existing chunks keep their vectors.
-- params:  a row for each chunk: parents uuid[], ids uuid[], indexes int[], contents text[], contexts text[],
--          topics text[], starts int[], ends int[]
INSERT INTO chunks AS c (note_id, id, chunk_index, content, context, topics, start_char, end_char)
SELECT u.*
FROM
    unnest(
        :parents::uuid[], :ids::uuid[], :indexes::integer[], :contents::text[], :contexts::text[], :topics::text[],
        :starts::integer[], :ends::integer[]
    ) AS u
ON CONFLICT (id) DO UPDATE
    SET
        context = excluded.context, topics = excluded.topics, start_char = excluded.start_char,
        end_char = excluded.end_char
    WHERE (c.context, c.topics, c.start_char, c.end_char)
    IS DISTINCT FROM (excluded.context, excluded.topics, excluded.start_char, excluded.end_char);

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
-- Update the document counts of all lexemes; only rows that changed are written.
WITH fresh AS MATERIALIZED (
    SELECT s.word AS lexeme, s.ndoc AS document_count FROM ts_stat('SELECT tsv FROM chunks') AS s
),

gone AS (
    DELETE FROM lexeme_statistics AS l WHERE NOT EXISTS (SELECT FROM fresh AS f WHERE f.lexeme = l.lexeme)
)

INSERT INTO lexeme_statistics AS l (lexeme, document_count)
SELECT f.lexeme, f.document_count FROM fresh AS f
ON CONFLICT (lexeme) DO UPDATE
    SET document_count = excluded.document_count
    WHERE l.document_count <> excluded.document_count;

-- name: compare_statistics
-- Whether the stored statistics agree with the current chunks.
-- returns: chunk_count bigint; exactly boolean; roughly boolean (the count differs by at most 1 % and the average
--          length by at most 5 %, and the statistics are at most a day old)
WITH counted AS (
    SELECT
        count(*) AS chunk_count,
        coalesce(avg(c.lexeme_occurrences), 0)::double precision AS average_occurrences
    FROM chunks AS c
)

SELECT
    c.chunk_count,
    (i.chunk_count, i.average_lexeme_occurrences) = (c.chunk_count, c.average_occurrences) AS exactly,
    abs(c.chunk_count - i.chunk_count) * 100 <= i.chunk_count
    AND abs(c.average_occurrences - i.average_lexeme_occurrences) * 20 <= i.average_lexeme_occurrences
    AND i.refreshed_at > now() - interval '1 day' AS roughly
FROM index_state AS i CROSS JOIN counted AS c;

-- name: refresh_corpus_statistics!
-- Update the number of chunks and their lengths, which BM25 needs besides the document counts.
UPDATE index_state
SET chunk_count = c.chunk_count, average_lexeme_occurrences = c.average_occurrences, refreshed_at = now()
FROM (
    SELECT count(*) AS chunk_count, coalesce(avg(lexeme_occurrences), 0) AS average_occurrences FROM chunks
) AS c;

-- name: shadow_statistics#
-- Count the word statistics anew for this session only: its temporary tables come before those of the schema.
CREATE TEMPORARY TABLE lexeme_statistics AS
SELECT s.word AS lexeme, s.ndoc AS document_count FROM ts_stat('SELECT tsv FROM chunks') AS s;
CREATE UNIQUE INDEX ON pg_temp.lexeme_statistics (lexeme);
CREATE TEMPORARY TABLE index_state AS
SELECT count(*) AS chunk_count, coalesce(avg(c.lexeme_occurrences), 0)::double precision AS average_lexeme_occurrences
FROM chunks AS c;
ANALYZE pg_temp.lexeme_statistics, pg_temp.index_state;

-- name: record_failure!
-- Record that a text could not be chunked or embedded, one row a text. A note that is deleted or being deleted gets
-- none.
-- params:  stage text, note_id uuid, chunk_id uuid or null, model text or null, error jsonb
INSERT INTO indexing_failures (stage, note_id, chunk_id, model, error)
SELECT :stage, n.id, :chunk_id::uuid, :model, :error FROM notes AS n WHERE n.id = :note_id
FOR KEY SHARE OF n SKIP LOCKED
ON CONFLICT (stage, note_id, chunk_id, model) DO UPDATE SET error = excluded.error, occurred_at = now();

-- name: clear_failures!
-- Delete the recorded failures of notes that have succeeded since.
-- params:  stage text, note_ids uuid[], model text or null
DELETE FROM indexing_failures
WHERE stage = :stage AND note_id = ANY(:note_ids) AND model IS NOT DISTINCT FROM :model;
