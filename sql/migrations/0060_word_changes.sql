-- Statistics of words that cost what changed: whoever writes chunks adds their words to chunk_word_changes.
ALTER TABLE corpus_statistics
-- Of all chunks, which the average is made of; null: the words of all tenants are to be counted anew.
ADD COLUMN lexeme_occurrences bigint;

-- What was added to the words of chunks and taken from them since the statistics were last refreshed: both together are
-- the words of all chunks, in every snapshot. So a refresh reads what changed and not the corpus.
CREATE TABLE chunk_word_changes (
    -- 1: the words of a chunk that is there now; -1: of one that is not any more.
    sign smallint NOT NULL CHECK (sign IN (-1, 1)),
    words tsvector NOT NULL,
    occurrences integer NOT NULL,
    tenant_id text NOT NULL DEFAULT current_tenant()
);
-- Prevents reading the changes of all tenants once for each.
CREATE INDEX chunk_word_changes_tenant_idx ON chunk_word_changes (tenant_id, sign);

-- Keeps them. Only added to: no writer waits for another. As the owner: who may write notes need not know of it.
CREATE FUNCTION chunk_words_changed() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $chunk_words_changed$
DECLARE
    rows text := CASE tg_op
        WHEN 'INSERT' THEN 'SELECT 1, strip(c.tsv), c.lexeme_occurrences, c.tenant_id FROM changed AS c'
        WHEN 'DELETE' THEN 'SELECT -1, strip(c.tsv), c.lexeme_occurrences, c.tenant_id FROM replaced AS c'
        ELSE 'SELECT w.* FROM changed AS n FULL JOIN replaced AS o ON o.id = n.id CROSS JOIN LATERAL '
             '(VALUES (1, strip(n.tsv), n.lexeme_occurrences, n.tenant_id), '
             '(-1, strip(o.tsv), o.lexeme_occurrences, o.tenant_id)) AS w (sign, words, occurrences, tenant_id) '
             'WHERE (n.tenant_id, n.tsv) IS DISTINCT FROM (o.tenant_id, o.tsv) AND w.tenant_id IS NOT NULL' END;
BEGIN
    IF tg_op = 'TRUNCATE' THEN
        EXECUTE format('DELETE FROM %I.chunk_word_changes', tg_table_schema);
        EXECUTE format('UPDATE %I.corpus_statistics SET lexeme_occurrences = NULL', tg_table_schema);
    ELSE
        EXECUTE format('INSERT INTO %I.chunk_word_changes (sign, words, occurrences, tenant_id) %s',
                       tg_table_schema, rows);
    END IF;
    RETURN NULL;
END
$chunk_words_changed$;

CREATE TRIGGER chunk_words_changed_by_insert AFTER INSERT ON chunks
REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION chunk_words_changed();
CREATE TRIGGER chunk_words_changed_by_update AFTER UPDATE ON chunks
REFERENCING NEW TABLE AS changed OLD TABLE AS replaced FOR EACH STATEMENT EXECUTE FUNCTION chunk_words_changed();
CREATE TRIGGER chunk_words_changed_by_delete AFTER DELETE ON chunks
REFERENCING OLD TABLE AS replaced FOR EACH STATEMENT EXECUTE FUNCTION chunk_words_changed();
CREATE TRIGGER chunk_words_changed_by_truncate AFTER TRUNCATE ON chunks
FOR EACH STATEMENT EXECUTE FUNCTION chunk_words_changed();

-- Counted once more in full, by the next refresh: nobody noted what changed until now.
INSERT INTO corpus_statistics (tenant_id)
SELECT DISTINCT c.tenant_id FROM chunks AS c
ON CONFLICT (tenant_id) DO NOTHING;

-- As before, and the changes of words go with those that deleting other rows writes.
CREATE OR REPLACE FUNCTION delete_tenant(leaving text, names text[])
RETURNS TABLE (relation text, deleted bigint, remaining bigint) LANGUAGE plpgsql AS $delete_tenant$
DECLARE
    held text[] := (
        SELECT array_agg(
            c.relname::text
            -- A promotion holds its evaluation. What deleting other rows writes goes last.
            ORDER BY
                c.relname <> 'promotions',
                c.relname IN (
                    'golden_history', 'changed_months', 'month_contents', 'index_changes', 'chunk_word_changes'
                ),
                c.relname
        )
        FROM pg_class AS c
        INNER JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = 'tenant_id' AND NOT a.attisdropped
        WHERE
            c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p')
            AND c.relname = ANY(delete_tenant.names)
    );
    counts bigint[];
    counted bigint;
BEGIN
    FOREACH relation IN ARRAY held LOOP
        EXECUTE format('SELECT count(*) FROM %I WHERE tenant_id = $1', relation) INTO counted USING leaving;
        counts := counts || counted;
    END LOOP;
    -- Nobody's version of the index may fall, or a tenant of the same name would be shown cached answers of this one.
    INSERT INTO index_changes AS i (tenant_id, changes)
    SELECT '' AS tenant_id, sum(c.changes) + 1 AS changes
    FROM index_changes AS c WHERE c.tenant_id = leaving HAVING count(*) > 0
    ON CONFLICT (tenant_id, transaction_id) DO UPDATE SET changes = i.changes + excluded.changes;
    ALTER TABLE golden_history DISABLE TRIGGER golden_history_only_grows;
    FOREACH relation IN ARRAY held LOOP
        EXECUTE format('DELETE FROM %I WHERE tenant_id = $1', relation) USING leaving;
    END LOOP;
    ALTER TABLE golden_history ENABLE TRIGGER golden_history_only_grows;
    FOR number IN 1 .. cardinality(held) LOOP
        relation := held[number];
        deleted := counts[number];
        EXECUTE format('SELECT count(*) FROM %I WHERE tenant_id = $1', relation) INTO remaining USING leaving;
        RETURN NEXT;
    END LOOP;
END
$delete_tenant$;
