-- Small windows of chunks: their vectors, and the queue of the notes that wait for them.

-- How the chunks of a model are cut into windows (core.windows.windows_hash); null for a model without windows. And the
-- cosines that stand for "unrelated" and "the same": between them a fused score goes from 0 to 1.
ALTER TABLE embedding_models
ADD COLUMN windows_hash text,
ADD COLUMN cosine_low double precision NOT NULL DEFAULT 0,
ADD COLUMN cosine_high double precision NOT NULL DEFAULT 1,
ADD CONSTRAINT embedding_models_cosine_range_check CHECK (
    cosine_low >= -1 AND cosine_low < cosine_high AND cosine_high <= 1
);
UPDATE embedding_models SET cosine_low = 0.75, cosine_high = 0.95 WHERE name = 'e5_small';
UPDATE embedding_models SET cosine_low = -0.28, cosine_high = 0.76 WHERE name = 'use_multilingual';

CREATE TABLE chunk_windows (
    chunk_id uuid NOT NULL REFERENCES chunks (id) ON DELETE CASCADE,
    model text NOT NULL REFERENCES embedding_models (name),
    window_index integer NOT NULL CHECK (window_index >= 0),
    -- In the content of the chunk, which keeps its id wherever its note moves it.
    start_char integer NOT NULL CHECK (start_char >= 0),
    end_char integer NOT NULL,
    embedding halfvec NOT NULL,
    -- Of the text that the vector stands for, with the note's title (core.windows.window_text).
    text_sha256 bytea NOT NULL,
    PRIMARY KEY (model, chunk_id, window_index),
    CONSTRAINT chunk_windows_bounds_check CHECK (end_char > start_char)
) PARTITION BY LIST (model);
-- Prevents embedding the same text twice.
CREATE INDEX chunk_windows_text_idx ON chunk_windows (text_sha256);

-- Chunked notes whose windows are not all there yet, as pending_embeddings is for the vectors of chunks.
CREATE TABLE pending_windows (
    model text NOT NULL REFERENCES embedding_models (name) ON DELETE CASCADE,
    note_id uuid NOT NULL REFERENCES notes (id) ON DELETE CASCADE,
    requested_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (model, note_id)
);

CREATE OR REPLACE PROCEDURE create_model_partitions(model_name text, model_dimension integer)
LANGUAGE plpgsql AS $create_model_partitions$
DECLARE
    family text;
    child text;
BEGIN
    FOREACH family IN ARRAY ARRAY['chunk_embeddings', 'chunk_windows', 'note_embeddings'] LOOP
        child := family || '_' || model_name;
        IF to_regclass(quote_ident(child)) IS NULL THEN
            EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING ALL)', child, family);
            EXECUTE format('ALTER TABLE %I ADD CONSTRAINT %I CHECK (vector_dims(embedding) = %s)',
                           child, child || '_dimension', model_dimension);
            -- Vectors stay in the row: an exact search must not read them from TOAST one by one.
            EXECUTE format('ALTER TABLE %I SET (toast_tuple_target = 8160)', child);
            EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES IN (%L)', family, child, model_name);
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
END
$drop_model_partitions$;

-- Search reads both.
DO $triggers$
DECLARE
    tracked text;
BEGIN
    FOREACH tracked IN ARRAY ARRAY['chunk_windows', 'pending_windows'] LOOP
        EXECUTE format('CREATE TRIGGER index_changed_by_insert AFTER INSERT ON %I REFERENCING NEW TABLE AS changed '
                       'FOR EACH STATEMENT EXECUTE FUNCTION index_changed()', tracked);
        EXECUTE format('CREATE TRIGGER index_changed_by_update AFTER UPDATE ON %I REFERENCING NEW TABLE AS changed '
                       'FOR EACH STATEMENT EXECUTE FUNCTION index_changed()', tracked);
        EXECUTE format('CREATE TRIGGER index_changed_by_delete AFTER DELETE ON %I REFERENCING OLD TABLE AS changed '
                       'FOR EACH STATEMENT EXECUTE FUNCTION index_changed()', tracked);
        EXECUTE format('CREATE TRIGGER index_changed_by_truncate AFTER TRUNCATE ON %I '
                       'FOR EACH STATEMENT EXECUTE FUNCTION index_changed()', tracked);
    END LOOP;
END
$triggers$;

ALTER TABLE indexing_failures DROP CONSTRAINT indexing_failures_stage_check;
ALTER TABLE indexing_failures ADD CONSTRAINT indexing_failures_stage_check CHECK (
    stage IN ('chunk', 'embed_note', 'embed_chunk', 'embed_window')
);
