-- The words of notes in a table of their own: a note is updated whenever it is chunked, and every update of a row
-- enters it into all indexes of its table anew, a quarter of what chunking cost.

CREATE TABLE note_words (
    note_id uuid PRIMARY KEY REFERENCES notes (id) ON DELETE CASCADE,
    -- A tsvector holds 1 MB at most: the first 200,000 characters of a note always fit. Chunks have no such limit.
    tsv tsvector NOT NULL
);
INSERT INTO note_words (note_id, tsv) SELECT n.id, n.tsv FROM notes AS n;
CREATE INDEX note_words_tsv_idx ON note_words USING gin (tsv);
ALTER TABLE notes DROP COLUMN tsv;

-- As the owner: who may write notes need not know of it, nor of its schema.
CREATE FUNCTION index_note_words() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $index_note_words$
BEGIN
    EXECUTE format(
        'INSERT INTO %1$I.note_words (note_id, tsv) VALUES ($1, %1$I.spanish_tsvector($2)) '
        'ON CONFLICT (note_id) DO UPDATE SET tsv = excluded.tsv',
        tg_table_schema
    ) USING new.id, left(new.title, 1000) || ' ' || left(new.content, 200000);
    RETURN NULL;
END
$index_note_words$;

CREATE TRIGGER notes_words AFTER INSERT OR UPDATE OF title, content ON notes
FOR EACH ROW EXECUTE FUNCTION index_note_words();

CREATE TRIGGER index_changed_by_insert AFTER INSERT ON note_words REFERENCING NEW TABLE AS changed
FOR EACH STATEMENT EXECUTE FUNCTION index_changed();
CREATE TRIGGER index_changed_by_update AFTER UPDATE ON note_words REFERENCING NEW TABLE AS changed
FOR EACH STATEMENT EXECUTE FUNCTION index_changed();
CREATE TRIGGER index_changed_by_delete AFTER DELETE ON note_words REFERENCING OLD TABLE AS changed
FOR EACH STATEMENT EXECUTE FUNCTION index_changed();
CREATE TRIGGER index_changed_by_truncate AFTER TRUNCATE ON note_words
FOR EACH STATEMENT EXECUTE FUNCTION index_changed();
