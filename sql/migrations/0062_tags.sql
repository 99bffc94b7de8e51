-- The tags of a note are among its words: people name a note's subject there, in other words than in its text.

-- Its chunks and windows have its tags, too, so other tags are a change like another title.
CREATE OR REPLACE FUNCTION note_changed() RETURNS trigger LANGUAGE plpgsql AS $note_changed$
BEGIN
    IF (new.content, new.title, new.tags) IS DISTINCT FROM (old.content, old.title, old.tags) THEN
        new.chunked_at := NULL;
        new.updated_at := now();
    END IF;
    RETURN new;
END
$note_changed$;

DROP TRIGGER notes_changed ON notes;
CREATE TRIGGER notes_changed BEFORE UPDATE OF content, title, tags ON notes
FOR EACH ROW EXECUTE FUNCTION note_changed();

-- The words that a whole note is found by.
CREATE FUNCTION note_words_of(title text, tags text[], content text) RETURNS tsvector
LANGUAGE sql STABLE PARALLEL SAFE
RETURN spanish_tsvector(
    left(title, 1000) || ' ' || translate(left(array_to_string(tags, ' '), 200), '-_', '  ') || ' '
    || left(content, 200000)
);

CREATE OR REPLACE FUNCTION index_note_words() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $index_note_words$
DECLARE
    written text := 'written AS n';
BEGIN
    IF tg_level = 'ROW' THEN
        written := format('%I.notes AS n WHERE n.id = $1', tg_table_schema);
    END IF;
    EXECUTE format(
        'INSERT INTO %1$I.note_words (note_id, tsv, tenant_id) '
        'SELECT n.id, %1$I.note_words_of(n.title, n.tags, n.content), n.tenant_id '
        'FROM %2$s ON CONFLICT (note_id) DO UPDATE SET tsv = excluded.tsv',
        tg_table_schema, written
    ) USING new.id;
    RETURN NULL;
END
$index_note_words$;

DROP TRIGGER notes_words_by_update ON notes;
CREATE TRIGGER notes_words_by_update AFTER UPDATE OF title, content, tags ON notes
FOR EACH ROW EXECUTE FUNCTION index_note_words();

-- Those that are there. Their chunks and windows are made again by the next run, since the algorithm is another one.
UPDATE note_words AS w SET tsv = note_words_of(n.title, n.tags, n.content)
FROM notes AS n WHERE n.id = w.note_id AND n.tags <> '{}';
