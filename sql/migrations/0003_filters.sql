-- What the filters of a question are looked up by; its source is the front of notes_external_key, its dates are
-- notes_newest_idx.

-- Prevents a scan of all notes for the few with a tag.
CREATE INDEX notes_tags_idx ON notes USING gin (tags);
-- Prevents a scan of all notes, and of their metadata out of line, for the few with some value in it.
CREATE INDEX notes_metadata_idx ON notes USING gin (metadata jsonb_path_ops);
