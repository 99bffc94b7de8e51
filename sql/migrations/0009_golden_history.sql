-- Every change of the golden dataset is kept, whoever makes it and however.

-- A transaction may exchange the questions of two rows.
ALTER TABLE golden_dataset
DROP CONSTRAINT golden_dataset_normalized_query_key,
ADD CONSTRAINT golden_dataset_normalized_query_key UNIQUE (normalized_query) DEFERRABLE;

-- What became of each question. Written by triggers of golden_dataset, and only added to.
CREATE TABLE golden_history (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- Of the whole dataset: every transaction that changes it makes the next one.
    version integer NOT NULL,
    transaction_id xid8 NOT NULL DEFAULT pg_current_xact_id(),
    golden_id uuid NOT NULL,
    operation text NOT NULL CHECK (operation IN ('insert', 'update', 'delete')),
    -- The rows of golden_dataset; null before an insert, after a delete.
    old_entry jsonb CHECK ((old_entry IS NULL) = (operation = 'insert')),
    new_entry jsonb CHECK ((new_entry IS NULL) = (operation = 'delete')),
    -- content_sha256 of the relevant notes, by id: which of them were edited since?
    note_hashes jsonb NOT NULL DEFAULT '{}',
    changed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    changed_by text NOT NULL DEFAULT session_user,
    -- The file, command or run, as the application says; empty for what was changed without it.
    origin text NOT NULL DEFAULT coalesce(current_setting('rag.golden_origin', TRUE), '')
);
-- Prevents a scan of the history for what a question last was.
CREATE INDEX golden_history_question_idx ON golden_history (golden_id, id);

-- Before the statement: one transaction at a time changes the dataset, so that versions follow each other as their
-- commits do; before it has locked any row, so that two never wait for each other. After each row: what became of it.
-- As the owner of the history: who may write questions need not know of it, nor of its schema.
CREATE FUNCTION golden_changed() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $golden_changed$
BEGIN
    IF tg_level = 'STATEMENT' THEN
        EXECUTE format('LOCK TABLE %I.golden_history IN SHARE ROW EXCLUSIVE MODE', tg_table_schema);
    ELSIF new IS DISTINCT FROM old THEN
        EXECUTE format(
            $insert$
                INSERT INTO %1$I.golden_history (version, golden_id, operation, old_entry, new_entry, note_hashes)
                SELECT
                    coalesce(
                        (
                            SELECT h.version + CASE WHEN h.transaction_id = pg_current_xact_id() THEN 0 ELSE 1 END
                            FROM %1$I.golden_history AS h ORDER BY h.id DESC LIMIT 1
                        ),
                        1
                    ),
                    $1, $2, $3, $4,
                    coalesce(
                        (
                            SELECT jsonb_object_agg(n.id, encode(n.content_sha256, 'hex'))
                            FROM %1$I.notes AS n WHERE n.id = ANY($5)
                        ),
                        '{}'
                    )
            $insert$,
            tg_table_schema
        ) USING coalesce(new.id, old.id), lower(tg_op), to_jsonb(old), to_jsonb(new), new.relevant_note_ids;
    END IF;
    RETURN NULL;
END
$golden_changed$;

-- Emptied row by row first: TRUNCATE itself runs no trigger of rows.
CREATE FUNCTION golden_truncated() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $golden_truncated$
BEGIN
    EXECUTE format('DELETE FROM %I.golden_dataset', tg_table_schema);
    RETURN NULL;
END
$golden_truncated$;

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $refuse_change$
BEGIN
    RAISE EXCEPTION 'table % is only added to', tg_table_name;
END
$refuse_change$;

CREATE TRIGGER golden_changing BEFORE INSERT OR UPDATE OR DELETE ON golden_dataset
FOR EACH STATEMENT EXECUTE FUNCTION golden_changed();
CREATE TRIGGER golden_changed AFTER INSERT OR UPDATE OR DELETE ON golden_dataset
FOR EACH ROW EXECUTE FUNCTION golden_changed();
CREATE TRIGGER golden_truncating BEFORE TRUNCATE ON golden_dataset
FOR EACH STATEMENT EXECUTE FUNCTION golden_truncated();
CREATE TRIGGER golden_history_only_grows BEFORE UPDATE OR DELETE OR TRUNCATE ON golden_history
FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- The dataset as it is now is the first version, of the time of its last known change.
INSERT INTO golden_history (version, golden_id, operation, new_entry, note_hashes, changed_at, origin)
SELECT
    1 AS version, g.id AS golden_id, 'insert' AS operation, to_jsonb(g) AS new_entry,
    coalesce(
        (
            SELECT jsonb_object_agg(n.id, encode(n.content_sha256, 'hex'))
            FROM notes AS n WHERE n.id = ANY(g.relevant_note_ids)
        ),
        '{}'
    ) AS note_hashes,
    g.updated_at AS changed_at, '0009_golden_history' AS origin
FROM golden_dataset AS g ORDER BY g.normalized_query, g.id;
