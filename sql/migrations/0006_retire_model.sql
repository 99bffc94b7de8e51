-- Models come and go beside everything else that goes on.

-- Which model serves is said by promotions alone; a model only says whether it was retired, which none was so far.
DROP TRIGGER index_changed_by_update ON embedding_models;
ALTER TABLE embedding_models DROP COLUMN state, ADD COLUMN retired_at timestamptz;

-- What becomes of a model, derived: as embedding_models.state it reads like a column.
CREATE FUNCTION state(m embedding_models) RETURNS text
LANGUAGE sql STABLE
RETURN CASE
    WHEN m.retired_at IS NOT NULL THEN 'retired'
    WHEN m.name = (SELECT p.model FROM promotions AS p ORDER BY p.id DESC LIMIT 1) THEN 'serving'
    ELSE 'building'
END;

CREATE TRIGGER index_changed_by_update AFTER UPDATE ON embedding_models REFERENCING NEW TABLE AS changed
FOR EACH STATEMENT EXECUTE FUNCTION index_changed();

-- The partitions of a model in both tables. Called once per model, idempotent. Made apart and attached: made in place
-- they would lock out whoever uses the vectors of any model.
CREATE OR REPLACE PROCEDURE create_model_partitions(model_name text, model_dimension integer)
LANGUAGE plpgsql AS $create_model_partitions$
DECLARE
    family text;
    child text;
BEGIN
    FOREACH family IN ARRAY ARRAY['chunk_embeddings', 'note_embeddings'] LOOP
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

-- Drops those partitions with their indexes, idempotent. As partitions, which locks out whoever uses both tables until
-- commit, though not who searches another model's partition. Detached first (CONCURRENTLY) they would take foreign keys
-- of their own along, and to drop those locks chunks and notes against every reader.
CREATE PROCEDURE drop_model_partitions(model_name text)
LANGUAGE plpgsql AS $drop_model_partitions$
DECLARE
    family text;
BEGIN
    FOREACH family IN ARRAY ARRAY['chunk_embeddings', 'note_embeddings'] LOOP
        EXECUTE format('DROP TABLE IF EXISTS %I', family || '_' || model_name);
    END LOOP;
END
$drop_model_partitions$;
