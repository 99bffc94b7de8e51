-- The version of the index and the fingerprints of the months are a tenant's: one tenant's write neither empties
-- another's caches nor ages another's evaluations.

-- Changes of what is searched, by tenant; their sum is the version that cached answers are kept under. Only added to:
-- no writer waits for another. Rows of committed transactions are folded into one now and then, which keeps the sum.
CREATE TABLE index_changes (
    -- Empty for what concerns all tenants: the models, and the indexes.
    tenant_id text NOT NULL,
    transaction_id xid8 NOT NULL DEFAULT pg_current_xact_id(),
    changes bigint NOT NULL DEFAULT 1,
    PRIMARY KEY (tenant_id, transaction_id)
);
INSERT INTO index_changes (tenant_id, changes)
SELECT '' AS tenant_id, v.last_value AS changes FROM index_version AS v;

-- Counts one change for each tenant whose rows a statement changed, once in a transaction; `changed` holds the rows,
-- `replaced` those that an update replaced. As the owner: who may write notes need not know of it, nor of its schema.
--
-- A change is seen by the snapshots that see what was written, and the sum never falls: two different states of a
-- tenant's rows never have the same sum, as one of the two was committed later. Whoever reads the sum, then searches,
-- and keeps the answer under that sum may keep a later state under it, but nobody asks for that sum again once the
-- later state is committed. So nobody has to look for writers at work.
CREATE OR REPLACE FUNCTION index_changed() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $index_changed$
DECLARE
    rows text := CASE
        WHEN tg_op = 'TRUNCATE' THEN '(VALUES ('''')) AS c (tenant_id)'
        WHEN tg_argv[0] = 'everybody' THEN '(SELECT '''' AS tenant_id FROM changed LIMIT 1) AS c'
        WHEN tg_op = 'UPDATE' AND tg_argv[0] = 'tenant' THEN
            '(SELECT n.tenant_id FROM changed AS n UNION ALL SELECT o.tenant_id FROM replaced AS o) AS c'
        ELSE 'changed AS c' END;
    added bigint;
BEGIN
    EXECUTE format(
        'INSERT INTO %1$I.index_changes (tenant_id) SELECT DISTINCT c.tenant_id FROM %2$s '
        'ON CONFLICT (tenant_id, transaction_id) DO NOTHING',
        tg_table_schema, rows
    );
    GET DIAGNOSTICS added = ROW_COUNT;
    -- A stricter transaction would fail when it meets rows that another has folded since.
    IF added > 0 AND random() < 0.02 AND current_setting('transaction_isolation') = 'read committed' THEN
        EXECUTE format(
            $fold$
                WITH old AS MATERIALIZED (
                    SELECT o.tenant_id, o.transaction_id FROM %1$I.index_changes AS o
                    WHERE
                        o.transaction_id <> pg_current_xact_id()
                        AND o.tenant_id IN (
                            SELECT i.tenant_id FROM %1$I.index_changes AS i
                            WHERE i.transaction_id = pg_current_xact_id()
                        )
                    LIMIT 1000 FOR UPDATE SKIP LOCKED
                ),
                folded AS (
                    DELETE FROM %1$I.index_changes AS i USING old AS o
                    WHERE i.tenant_id = o.tenant_id AND i.transaction_id = o.transaction_id
                    RETURNING i.tenant_id, i.changes
                )
                INSERT INTO %1$I.index_changes AS i (tenant_id, changes)
                SELECT f.tenant_id, sum(f.changes) FROM folded AS f GROUP BY f.tenant_id
                ON CONFLICT (tenant_id, transaction_id) DO UPDATE SET changes = i.changes + excluded.changes
            $fold$,
            tg_table_schema
        );
    END IF;
    RETURN NULL;
END
$index_changed$;

-- Has the changes of a table counted; `whose` is 'tenant', or 'everybody' for a table without tenants.
CREATE PROCEDURE track_index(tracked text, whose text) LANGUAGE plpgsql AS $track_index$
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
        EXECUTE format('CREATE OR REPLACE TRIGGER %I AFTER %s ON %I %s FOR EACH STATEMENT '
                       'EXECUTE FUNCTION index_changed(%L)',
                       'index_changed_by_' || lower(operation), operation, tracked, rows, whose);
    END LOOP;
END
$track_index$;

-- Everything that search reads.
DO $tracked$
DECLARE
    tracked text;
BEGIN
    FOREACH tracked IN ARRAY ARRAY['notes', 'note_words', 'chunks', 'chunk_embeddings', 'note_embeddings',
                                   'pending_embeddings', 'lexeme_statistics', 'corpus_statistics', 'document_pages',
                                   'note_spans', 'chunk_windows', 'pending_windows'] LOOP
        CALL track_index(tracked, 'tenant');
    END LOOP;
    CALL track_index('embedding_models', 'everybody');
    CALL track_index('index_state', 'everybody');
END
$tracked$;
DROP FUNCTION read_index_version(text);
DROP SEQUENCE index_version;

-- The months of a tenant.
ALTER TABLE changed_months DROP CONSTRAINT changed_months_pkey;
ALTER TABLE month_contents DROP CONSTRAINT month_contents_pkey;
DO $months$
DECLARE
    main text := coalesce(
        (SELECT n.tenant_id FROM notes AS n GROUP BY n.tenant_id ORDER BY count(*) DESC, n.tenant_id LIMIT 1), 'default'
    );
BEGIN
    EXECUTE format('ALTER TABLE changed_months ADD COLUMN tenant_id text NOT NULL DEFAULT %L', main);
    EXECUTE format('ALTER TABLE month_contents ADD COLUMN tenant_id text NOT NULL DEFAULT %L', main);
    -- Of several tenants together nothing is known of each: their months are counted anew.
    IF EXISTS (SELECT FROM notes AS n WHERE n.tenant_id <> main) THEN
        DELETE FROM month_contents;
        DELETE FROM changed_months;
        INSERT INTO changed_months (tenant_id, month, part)
        SELECT DISTINCT n.tenant_id, month_of(n.created_at), 'notes' FROM notes AS n
        UNION
        SELECT DISTINCT n.tenant_id, '-infinity'::date, 'words' FROM notes AS n;
    END IF;
END
$months$;
ALTER TABLE changed_months
ALTER COLUMN tenant_id DROP DEFAULT,
ADD CONSTRAINT changed_months_pkey PRIMARY KEY (transaction_id, tenant_id, month, part);
ALTER TABLE month_contents
ALTER COLUMN tenant_id DROP DEFAULT,
ADD CONSTRAINT month_contents_pkey PRIMARY KEY (tenant_id, month, part, fingerprint);

CREATE OR REPLACE FUNCTION mark_months() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $mark_months$
DECLARE
    part text := quote_literal(tg_argv[0]) || CASE WHEN tg_argv[0] LIKE '%/' THEN ' || c.model' ELSE '' END;
    changed text := CASE tg_op
        WHEN 'UPDATE' THEN '(SELECT * FROM changed UNION ALL SELECT * FROM replaced)' ELSE 'changed' END;
    source text := CASE tg_argv[1]
        WHEN 'own' THEN 'SELECT c.tenant_id, %1$I.month_of(c.created_at), p.part FROM %2$s AS c '
            'CROSS JOIN (VALUES (''notes''), (''chunks'')) AS p (part)'
        WHEN 'note' THEN 'SELECT c.tenant_id, %1$I.month_of(n.created_at), %3$s FROM %2$s AS c '
            'INNER JOIN %1$I.notes AS n ON n.id = c.note_id'
        WHEN 'chunk' THEN 'SELECT c.tenant_id, %1$I.month_of(n.created_at), %3$s FROM %2$s AS c '
            'INNER JOIN %1$I.chunks AS h ON h.id = c.chunk_id INNER JOIN %1$I.notes AS n ON n.id = h.note_id'
        ELSE 'SELECT c.tenant_id, ''-infinity''::date, %3$s FROM %2$s AS c' END;
BEGIN
    IF tg_op = 'TRUNCATE' THEN
        source := 'SELECT m.tenant_id, m.month, m.part FROM %1$I.month_contents AS m';
    END IF;
    EXECUTE format(
        'INSERT INTO %1$I.changed_months (tenant_id, month, part) SELECT DISTINCT x.tenant_id, x.month, x.part FROM ('
        || source || ') AS x (tenant_id, month, part) ON CONFLICT DO NOTHING',
        tg_table_schema, changed, part
    );
    RETURN NULL;
END
$mark_months$;

CALL track_months('corpus_statistics', 'words', 'corpus');
DROP TRIGGER months_by_insert ON index_state;
DROP TRIGGER months_by_update ON index_state;
DROP TRIGGER months_by_delete ON index_state;
DROP TRIGGER months_by_truncate ON index_state;

CREATE OR REPLACE PROCEDURE drop_model_partitions(model_name text)
LANGUAGE plpgsql AS $drop_model_partitions$
DECLARE
    family text;
BEGIN
    FOREACH family IN ARRAY ARRAY['chunk_embeddings', 'chunk_windows', 'note_embeddings'] LOOP
        EXECUTE format('DROP TABLE IF EXISTS %I', family || '_' || model_name);
    END LOOP;
    INSERT INTO changed_months (tenant_id, month, part)
    SELECT DISTINCT m.tenant_id, m.month, m.part FROM month_contents AS m
    ON CONFLICT DO NOTHING;
END
$drop_model_partitions$;

-- What a database holds of some months of tenants: of each part and month the notes, each with a hash of all that
-- search reads of it there. -infinity stands for the word statistics.
DROP FUNCTION count_months(date[]);
CREATE FUNCTION count_months(tenants text[], months date[]) RETURNS TABLE (
    tenant_id text, month date, part text, row_count bigint, note_ids uuid[], note_hashes bigint[]
) LANGUAGE sql STABLE AS $count_months$
    WITH wanted AS MATERIALIZED (
        SELECT DISTINCT w.tenant_id, w.month
        FROM unnest(count_months.tenants, count_months.months) AS w (tenant_id, month)
    ),

    noted AS MATERIALIZED (
        SELECT
            n.id, n.tenant_id, m.month, n.chunked_at IS NULL AS is_whole,
            hash_record_extended(
                ROW(
                    n.content_sha256, n.title, n.tenant_id, n.source, n.tags, n.metadata, n.created_at, n.expires_at,
                    tsvectorsend(w.tsv)
                ),
                0
            ) AS hash
        FROM (SELECT DISTINCT o.month FROM wanted AS o) AS m
        INNER JOIN notes AS n
            ON n.created_at >= m.month::timestamp AT TIME ZONE 'UTC'
            AND n.created_at <= (m.month + interval '1 month') AT TIME ZONE 'UTC'
        LEFT JOIN note_words AS w ON w.note_id = n.id
        WHERE
            month_of(n.created_at) = m.month
            AND (n.tenant_id, m.month) IN (SELECT o.tenant_id, o.month FROM wanted AS o)
    ),

    parts AS (
        SELECT n.tenant_id, n.month, 'notes' AS part, n.id, 1 AS row_count, n.hash FROM noted AS n
        UNION ALL
        SELECT
            n.tenant_id, n.month, 'chunks', n.id, count(c.id),
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
        GROUP BY n.tenant_id, n.month, n.id, n.is_whole
        UNION ALL
        SELECT
            n.tenant_id, n.month, 'vectors/' || e.model, n.id, count(*),
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
        GROUP BY n.tenant_id, n.month, n.id, e.model
        UNION ALL
        SELECT
            n.tenant_id, n.month, 'windows/' || w.model, n.id, count(*),
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
        GROUP BY n.tenant_id, n.month, n.id, w.model
        UNION ALL
        SELECT
            n.tenant_id, n.month, 'note_vectors/' || e.model, n.id, 1,
            hash_record_extended(ROW(halfvec_send(e.embedding)), 0)
        FROM noted AS n INNER JOIN note_embeddings AS e ON e.note_id = n.id
        UNION ALL
        SELECT n.tenant_id, n.month, 'waiting/' || p.model, n.id, 1, 0
        FROM noted AS n INNER JOIN pending_embeddings AS p ON p.note_id = n.id
        UNION ALL
        SELECT n.tenant_id, n.month, 'waiting_windows/' || p.model, n.id, 1, 0
        FROM noted AS n INNER JOIN pending_windows AS p ON p.note_id = n.id
    )

    SELECT
        p.tenant_id, p.month, p.part, sum(p.row_count)::bigint, array_agg(p.id ORDER BY p.id),
        array_agg(p.hash ORDER BY p.id)
    FROM parts AS p GROUP BY p.tenant_id, p.month, p.part
    UNION ALL
    SELECT
        o.tenant_id, '-infinity'::date, 'words', count(*), '{}',
        ARRAY[
            hash_record_extended(ROW(coalesce(i.chunk_count, 0), coalesce(i.average_lexeme_occurrences, 0)), 0),
            hash_record_extended(
                ROW(
                    array_agg(
                        hash_record_extended(ROW(l.lexeme, l.document_count), 0) ORDER BY l.lexeme COLLATE "C"
                    )
                ),
                0
            )
        ]
    FROM wanted AS o
    LEFT JOIN corpus_statistics AS i ON i.tenant_id = o.tenant_id
    LEFT JOIN lexeme_statistics AS l ON l.tenant_id = o.tenant_id
    WHERE o.month = '-infinity'
    GROUP BY o.tenant_id, i.chunk_count, i.average_lexeme_occurrences
$count_months$;

-- The same of the graph, whose tables a later migration makes: hence in this language, which looks for them when
-- called.
CREATE FUNCTION count_graph_months(tenants text[], months date[]) RETURNS TABLE (
    tenant_id text, month date, part text, row_count bigint, note_ids uuid[], note_hashes bigint[]
) LANGUAGE plpgsql STABLE AS $count_graph_months$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH wanted AS MATERIALIZED (
        SELECT DISTINCT w.tenant_id, w.month
        FROM unnest(count_graph_months.tenants, count_graph_months.months) AS w (tenant_id, month)
    ),

    noted AS MATERIALIZED (
        SELECT n.id, n.tenant_id, m.month
        FROM (SELECT DISTINCT o.month FROM wanted AS o WHERE o.month > '-infinity') AS m
        INNER JOIN notes AS n
            ON n.created_at >= m.month::timestamp AT TIME ZONE 'UTC'
            AND n.created_at <= (m.month + interval '1 month') AT TIME ZONE 'UTC'
        WHERE
            month_of(n.created_at) = m.month
            AND (n.tenant_id, m.month) IN (SELECT o.tenant_id, o.month FROM wanted AS o)
    ),

    parts AS (
        SELECT
            n.tenant_id, n.month, 'mentions' AS part, n.id, count(*) AS row_count,
            hash_array_extended(
                array_agg(
                    hash_record_extended(ROW(m.chunk_id, m.entity_id, m.start_char, m.end_char), 0)
                    ORDER BY m.chunk_id, m.start_char, m.entity_id
                ),
                0
            ) AS hash
        FROM noted AS n
        INNER JOIN chunks AS c ON c.note_id = n.id
        INNER JOIN mentions AS m ON m.chunk_id = c.id
        GROUP BY n.tenant_id, n.month, n.id
        UNION ALL
        SELECT
            n.tenant_id, n.month, 'statements', n.id, count(*),
            hash_array_extended(
                array_agg(
                    hash_record_extended(ROW(r.chunk_id, r.id, r.source_id, r.target_id, r.type, r.confidence), 0)
                    ORDER BY r.id
                ),
                0
            )
        FROM noted AS n
        INNER JOIN chunks AS c ON c.note_id = n.id
        INNER JOIN relationships AS r ON r.chunk_id = c.id
        GROUP BY n.tenant_id, n.month, n.id
    )

    SELECT
        p.tenant_id, p.month, p.part, sum(p.row_count)::bigint, array_agg(p.id ORDER BY p.id),
        array_agg(p.hash ORDER BY p.id)
    FROM parts AS p GROUP BY p.tenant_id, p.month, p.part
    UNION ALL
    SELECT d.tenant_id, '-infinity'::date, 'decisions', count(*), '{}'::uuid[], array_agg(d.hash ORDER BY d.hash)
    FROM (
        SELECT a.tenant_id, hash_record_extended(ROW(a.tenant_id, a.alias_id, a.entity_id), 0) AS hash
        FROM entity_aliases AS a WHERE a.state = 'confirmed'
        UNION ALL
        SELECT l.tenant_id, hash_record_extended(ROW(l.tenant_id, l.source_id, l.target_id, l.type), 0)
        FROM event_links AS l WHERE l.state = 'confirmed'
    ) AS d
    WHERE d.tenant_id IN (SELECT o.tenant_id FROM wanted AS o WHERE o.month = '-infinity')
    GROUP BY d.tenant_id;
END
$count_graph_months$;
