-- What an evaluation measured: a fingerprint of each month's notes, chunks and vectors. Who writes only marks a month;
-- whoever asks counts the marked months anew (sql/queries/contents.sql).

-- Months with writes that month_contents does not show yet. Only added to by writers, under their own transaction: no
-- writer waits for another, and a rollback takes the mark along. A snapshot that shows a write shows its mark.
CREATE TABLE changed_months (
    transaction_id xid8 NOT NULL DEFAULT pg_current_xact_id(),
    -- The first day, in UTC; -infinity for what belongs to no month: the word statistics.
    month date NOT NULL,
    -- As in month_contents.
    part text NOT NULL,
    PRIMARY KEY (transaction_id, month, part)
);

-- What is searched, by month. Rows that are not present any more stay while the latest evaluation of a configuration
-- names them: the difference tells which notes have changed since.
CREATE TABLE month_contents (
    month date NOT NULL,
    -- notes, chunks, words; of a model: vectors/e5_small, windows/…, note_vectors/…, waiting/…, waiting_windows/…
    part text NOT NULL,
    -- Of the two arrays.
    fingerprint text NOT NULL,
    is_present boolean NOT NULL DEFAULT TRUE,
    -- How often it was counted after being written to: what changed and changed back between two readings did change.
    revision bigint NOT NULL DEFAULT 0,
    -- Rows of the table concerned.
    row_count bigint NOT NULL,
    note_ids uuid[] NOT NULL,
    -- By the same index as note_ids; the part is all that the hashes stand for.
    note_hashes bigint[] NOT NULL,
    PRIMARY KEY (month, part, fingerprint)
);

CREATE FUNCTION month_of(t timestamptz) RETURNS date
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN date_trunc('month', t AT TIME ZONE 'UTC')::date;

-- Marks the months of the rows that a statement changed, and the part of them that the table holds. tg_argv has the
-- part, and whether a row has its month by its own date, its note or its chunk. Rows whose note or chunk is gone count
-- for nothing: what deleted it has marked the month. As the owner: who may write notes need not know of the marks, nor
-- of their schema.
CREATE FUNCTION mark_months() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $mark_months$
DECLARE
    part text := quote_literal(tg_argv[0]) || CASE WHEN tg_argv[0] LIKE '%/' THEN ' || c.model' ELSE '' END;
    changed text := CASE tg_op
        WHEN 'UPDATE' THEN '(SELECT * FROM changed UNION ALL SELECT * FROM replaced)' ELSE 'changed' END;
    source text := CASE tg_argv[1]
        WHEN 'own' THEN 'SELECT %1$I.month_of(c.created_at), p.part FROM %2$s AS c '
            'CROSS JOIN (VALUES (''notes''), (''chunks'')) AS p (part)'
        WHEN 'note' THEN 'SELECT %1$I.month_of(n.created_at), %3$s FROM %2$s AS c '
            'INNER JOIN %1$I.notes AS n ON n.id = c.note_id'
        WHEN 'chunk' THEN 'SELECT %1$I.month_of(n.created_at), %3$s FROM %2$s AS c '
            'INNER JOIN %1$I.chunks AS h ON h.id = c.chunk_id INNER JOIN %1$I.notes AS n ON n.id = h.note_id'
        ELSE 'SELECT ''-infinity''::date, %3$s FROM %2$s AS c' END;
BEGIN
    IF tg_op = 'TRUNCATE' THEN
        source := 'SELECT m.month, m.part FROM %1$I.month_contents AS m';
    END IF;
    EXECUTE format(
        'INSERT INTO %1$I.changed_months (month, part) SELECT DISTINCT x.month, x.part FROM (' || source
        || ') AS x (month, part) ON CONFLICT DO NOTHING',
        tg_table_schema, changed, part
    );
    RETURN NULL;
END
$mark_months$;

-- Has a table mark the months of what is written to it. The arguments are those of mark_months.
CREATE PROCEDURE track_months(tracked text, part text, named_by text) LANGUAGE plpgsql AS $track_months$
DECLARE
    operation text;
    rows text;
BEGIN
    FOREACH operation IN ARRAY ARRAY['INSERT', 'UPDATE', 'DELETE', 'TRUNCATE'] LOOP
        rows := CASE operation
            WHEN 'INSERT' THEN 'REFERENCING NEW TABLE AS changed'
            WHEN 'UPDATE' THEN 'REFERENCING NEW TABLE AS changed OLD TABLE AS replaced'
            WHEN 'DELETE' THEN 'REFERENCING OLD TABLE AS changed'
            ELSE '' END;
        EXECUTE format('CREATE TRIGGER %I AFTER %s ON %I %s FOR EACH STATEMENT EXECUTE FUNCTION mark_months(%L, %L)',
                       'months_by_' || lower(operation), operation, tracked, rows, part, named_by);
    END LOOP;
END
$track_months$;

-- What a database holds of some months: of each part and month the notes, each with a hash of all that search reads of
-- it there. -infinity stands for the word statistics.
CREATE FUNCTION count_months(months date[]) RETURNS TABLE (
    month date, part text, row_count bigint, note_ids uuid[], note_hashes bigint[]
) LANGUAGE sql STABLE AS $count_months$
    WITH noted AS MATERIALIZED (
        SELECT
            n.id, m.month, n.chunked_at IS NULL AS is_whole,
            hash_record_extended(
                ROW(
                    n.content_sha256, n.title, n.tenant_id, n.source, n.tags, n.metadata, n.created_at, n.expires_at,
                    tsvectorsend(w.tsv)
                ),
                0
            ) AS hash
        FROM unnest(count_months.months) AS m (month)
        INNER JOIN notes AS n
            ON n.created_at >= m.month::timestamp AT TIME ZONE 'UTC'
            AND n.created_at <= (m.month + interval '1 month') AT TIME ZONE 'UTC'
        LEFT JOIN note_words AS w ON w.note_id = n.id
        WHERE month_of(n.created_at) = m.month
    ),

    parts AS (
        SELECT n.month, 'notes' AS part, n.id, 1 AS row_count, n.hash FROM noted AS n
        UNION ALL
        SELECT
            n.month, 'chunks', n.id, count(c.id),
            hash_record_extended(
                ROW(
                    n.is_whole,
                    array_agg(
                        hash_record_extended(
                            ROW(c.id, c.content_sha256, c.contextual_sha256, c.topics, c.start_char, c.end_char), 0
                        ) ORDER BY c.chunk_index
                    )
                ),
                0
            )
        FROM noted AS n LEFT JOIN chunks AS c ON c.note_id = n.id
        GROUP BY n.month, n.id, n.is_whole
        UNION ALL
        SELECT
            n.month, 'vectors/' || e.model, n.id, count(*),
            hash_array_extended(
                array_agg(
                    hash_record_extended(
                        ROW(e.chunk_id, halfvec_send(e.embedding), halfvec_send(e.contextual_embedding)), 0
                    ) ORDER BY e.chunk_id
                ),
                0
            )
        FROM noted AS n
        INNER JOIN chunks AS c ON c.note_id = n.id
        INNER JOIN chunk_embeddings AS e ON e.chunk_id = c.id
        GROUP BY n.month, n.id, e.model
        UNION ALL
        SELECT
            n.month, 'windows/' || w.model, n.id, count(*),
            hash_array_extended(
                array_agg(
                    hash_record_extended(
                        ROW(w.chunk_id, w.window_index, w.start_char, w.end_char, halfvec_send(w.embedding)), 0
                    ) ORDER BY w.chunk_id, w.window_index
                ),
                0
            )
        FROM noted AS n
        INNER JOIN chunks AS c ON c.note_id = n.id
        INNER JOIN chunk_windows AS w ON w.chunk_id = c.id
        GROUP BY n.month, n.id, w.model
        UNION ALL
        SELECT n.month, 'note_vectors/' || e.model, n.id, 1, hash_record_extended(ROW(halfvec_send(e.embedding)), 0)
        FROM noted AS n INNER JOIN note_embeddings AS e ON e.note_id = n.id
        UNION ALL
        SELECT n.month, 'waiting/' || p.model, n.id, 1, 0
        FROM noted AS n INNER JOIN pending_embeddings AS p ON p.note_id = n.id
        UNION ALL
        SELECT n.month, 'waiting_windows/' || p.model, n.id, 1, 0
        FROM noted AS n INNER JOIN pending_windows AS p ON p.note_id = n.id
    )

    SELECT
        p.month, p.part, sum(p.row_count)::bigint, array_agg(p.id ORDER BY p.id), array_agg(p.hash ORDER BY p.id)
    FROM parts AS p GROUP BY p.month, p.part
    UNION ALL
    SELECT
        '-infinity'::date, 'words', count(*), '{}',
        ARRAY[
            hash_record_extended(ROW(i.chunk_count, i.average_lexeme_occurrences), 0),
            hash_record_extended(
                ROW(
                    array_agg(
                        hash_record_extended(ROW(l.lexeme, l.document_count), 0) ORDER BY l.lexeme COLLATE "C"
                    )
                ),
                0
            )
        ]
    FROM index_state AS i LEFT JOIN lexeme_statistics AS l ON TRUE
    WHERE '-infinity' = ANY(count_months.months)
    GROUP BY i.chunk_count, i.average_lexeme_occurrences
$count_months$;

CREATE OR REPLACE PROCEDURE create_model_partitions(model_name text, model_dimension integer)
LANGUAGE plpgsql AS $create_model_partitions$
DECLARE
    family text;
    child text;
    part text;
BEGIN
    FOREACH family IN ARRAY ARRAY['chunk_embeddings', 'chunk_windows', 'note_embeddings'] LOOP
        child := family || '_' || model_name;
        part := CASE family
            WHEN 'chunk_embeddings' THEN 'vectors/' WHEN 'chunk_windows' THEN 'windows/' ELSE 'note_vectors/' END;
        IF to_regclass(quote_ident(child)) IS NULL THEN
            EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING ALL)', child, family);
            EXECUTE format('ALTER TABLE %I ADD CONSTRAINT %I CHECK (vector_dims(embedding) = %s)',
                           child, child || '_dimension', model_dimension);
            -- Vectors stay in the row: an exact search must not read them from TOAST one by one.
            EXECUTE format('ALTER TABLE %I SET (toast_tuple_target = 8160)', child);
            EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES IN (%L)', family, child, model_name);
            -- A statement that names the partition runs no trigger of the table above it.
            CALL track_months(child, part, CASE family WHEN 'note_embeddings' THEN 'note' ELSE 'chunk' END);
        END IF;
    END LOOP;
END
$create_model_partitions$;

CREATE OR REPLACE PROCEDURE drop_model_partitions(model_name text)
LANGUAGE plpgsql AS $drop_model_partitions$
DECLARE
    family text;
BEGIN
    FOREACH family IN ARRAY ARRAY['chunk_embeddings', 'chunk_windows', 'note_embeddings'] LOOP
        EXECUTE format('DROP TABLE IF EXISTS %I', family || '_' || model_name);
    END LOOP;
    INSERT INTO changed_months (month, part) SELECT DISTINCT m.month, m.part FROM month_contents AS m
    ON CONFLICT DO NOTHING;
END
$drop_model_partitions$;

-- Everything of a month that search reads, and the partitions that are there already.
CALL track_months('notes', '', 'own');
CALL track_months('note_words', 'notes', 'note');
CALL track_months('chunks', 'chunks', 'note');
CALL track_months('chunk_embeddings', 'vectors/', 'chunk');
CALL track_months('chunk_windows', 'windows/', 'chunk');
CALL track_months('note_embeddings', 'note_vectors/', 'note');
CALL track_months('pending_embeddings', 'waiting/', 'note');
CALL track_months('pending_windows', 'waiting_windows/', 'note');
CALL track_months('lexeme_statistics', 'words', 'corpus');
CALL track_months('index_state', 'words', 'corpus');
DO $partitions$
DECLARE
    model text;
BEGIN
    FOR model IN SELECT m.name FROM embedding_models AS m WHERE m.retired_at IS NULL LOOP
        CALL track_months('chunk_embeddings_' || model, 'vectors/', 'chunk');
        CALL track_months('note_embeddings_' || model, 'note_vectors/', 'note');
        -- A model from before there were windows gets this partition with its first ones.
        IF to_regclass('chunk_windows_' || model) IS NOT NULL THEN
            CALL track_months('chunk_windows_' || model, 'windows/', 'chunk');
        END IF;
    END LOOP;
END
$partitions$;

INSERT INTO changed_months (month, part)
SELECT DISTINCT month_of(n.created_at) AS month, 'notes' AS part FROM notes AS n
UNION ALL
SELECT '-infinity'::date AS month, 'words' AS part;

-- Null in evaluations from before this was recorded: nothing can be promoted on them.
ALTER TABLE evaluation_results
-- {"2025-01-01": {"notes": fingerprint, …}, "-infinity": {what belongs to no month}}: what the configuration searched.
ADD COLUMN contents jsonb,
-- The database's clock as the evaluation began: notes expire without being written.
ADD COLUMN measured_at timestamptz;
