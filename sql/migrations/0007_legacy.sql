-- The application that wrote the notes before us goes on as it did, and what it left behind is of use.

-- It may leave out a content or a time, or give null for it, as an object mapper does: its table allowed both.
CREATE FUNCTION note_completed() RETURNS trigger LANGUAGE plpgsql AS $note_completed$
BEGIN
    new.content := coalesce(new.content, '');
    new.created_at := coalesce(new.created_at, now());
    RETURN new;
END
$note_completed$;

CREATE TRIGGER notes_completed BEFORE INSERT OR UPDATE OF content, created_at ON notes FOR EACH ROW
WHEN (new.content IS NULL OR new.created_at IS NULL)
EXECUTE FUNCTION note_completed();

-- The copy of its vectors as a model "legacy", which could embed no question. They are still in notes.embedding; with
-- LEGACY_EMBEDDING_MODEL they become whole-note vectors of the model that made them.
CALL drop_model_partitions('legacy');
DELETE FROM embedding_models WHERE name = 'legacy' AND provider = 'legacy';
