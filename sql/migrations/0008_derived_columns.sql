-- What is derived from a row is computed once, when what it is derived from changes. Generated columns computed the
-- words of a chunk twice, for two columns; and with a row trigger BEFORE UPDATE on notes, PostgreSQL computed the words
-- of a whole note again whenever it was marked as chunked.

CREATE FUNCTION chunk_words() RETURNS trigger LANGUAGE plpgsql AS $chunk_words$
BEGIN
    new.tsv := spanish_tsvector(new.topics || ' ' || new.content);
    new.lexeme_occurrences := count_occurrences(new.tsv);
    RETURN new;
END
$chunk_words$;

-- What is stored stays.
ALTER TABLE chunks
ALTER COLUMN tsv DROP EXPRESSION,
ALTER COLUMN lexeme_occurrences DROP EXPRESSION;

CREATE TRIGGER chunks_words BEFORE INSERT OR UPDATE OF topics, content, tsv, lexeme_occurrences ON chunks
FOR EACH ROW EXECUTE FUNCTION chunk_words();

-- A note whose content changed must be chunked again, whoever changed it: as the owner, who need not know of chunking.
-- Names are qualified instead of setting a search_path, in which the triggers of the application before us, that this
-- fires, would not find their own tables.
CREATE OR REPLACE FUNCTION note_changed() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER AS $note_changed$
BEGIN
    EXECUTE pg_catalog.format(
        'UPDATE %I.notes SET chunked_at = NULL, updated_at = pg_catalog.now() WHERE id OPERATOR(pg_catalog.=) $1',
        tg_table_schema
    ) USING new.id;
    RETURN NULL;
END
$note_changed$;

DROP TRIGGER notes_changed ON notes;
CREATE TRIGGER notes_changed AFTER UPDATE OF content, title ON notes FOR EACH ROW
WHEN ((old.content, old.title) IS DISTINCT FROM (new.content, new.title))
EXECUTE FUNCTION note_changed();
