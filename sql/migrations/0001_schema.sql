-- The schema of Brain Sync RAG. A database that already has notes(id, content, embedding, created_at) is adopted
-- in place: ids, contents and timestamps stay as they are, its whole-note vectors are kept where they are and copied
-- to note_embeddings as the model "legacy".

-- Accents folded, so that "organizacion" finds "organización". IMMUTABLE and without extensions, for generated columns.
CREATE FUNCTION fold_accents(t text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN translate(
    normalize(t, nfc),
    'áéíóúüàèìòùâêîôûäëïöçÁÉÍÓÚÜÀÈÌÒÙÂÊÎÔÛÄËÏÖÇ',
    'aeiouuaeiouaeiouaeiocAEIOUUAEIOUAEIOUAEIOC'
);

-- Both Spanish stemmings, with and without accents: each alone loses words (see docs/decisions.md). Lower case comes
-- first: a word that only in the dictionary outgrows the longest lexeme (Ⱥ has 2 bytes, ⱥ 3) crashes the server.
-- "-cion" and "-sion" are always "-ción" and "-sión": without the accent they are not stemmed as their plurals are.
CREATE FUNCTION spanish_tsvector(t text) RETURNS tsvector
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN to_tsvector('pg_catalog.spanish'::regconfig, regexp_replace(lower(t), '([cs])ion\M', '\1ión', 'g'))
|| to_tsvector('pg_catalog.spanish'::regconfig, fold_accents(lower(t)));

-- Lexeme occurrences of a text: the document length of BM25.
CREATE FUNCTION count_occurrences(v tsvector) RETURNS integer
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN (SELECT coalesce(sum(cardinality(l.positions)), 0)::integer FROM unnest(v) AS l);

-- convert_to is only STABLE because conversions can be redefined; the one to UTF8 is fixed.
CREATE FUNCTION text_sha256(t text) RETURNS bytea
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN sha256(convert_to(t, 'UTF8'));

CREATE TABLE IF NOT EXISTS notes (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    content text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);

-- Adoption: a legacy timestamp without time zone was written in UTC; a missing one becomes the time of adoption.
DO $adopt$
BEGIN
    IF (SELECT data_type FROM information_schema.columns
         WHERE table_schema = current_schema() AND table_name = 'notes' AND column_name = 'created_at')
        = 'timestamp without time zone' THEN
        ALTER TABLE notes ALTER COLUMN created_at TYPE timestamptz USING created_at AT TIME ZONE 'UTC';
    END IF;
    UPDATE notes SET created_at = now() WHERE created_at IS NULL;
    UPDATE notes SET content = '' WHERE content IS NULL;
    ALTER TABLE notes ALTER COLUMN created_at SET DEFAULT now();
    ALTER TABLE notes ALTER COLUMN created_at SET NOT NULL;
    ALTER TABLE notes ALTER COLUMN content SET NOT NULL;
END
$adopt$;

-- Every column has a default, so that the INSERT of an application that knows none of them still works.
ALTER TABLE notes
ADD COLUMN IF NOT EXISTS tenant_id text NOT NULL DEFAULT 'default',
ADD COLUMN IF NOT EXISTS source text NOT NULL DEFAULT 'legacy',
ADD COLUMN IF NOT EXISTS external_id text,
ADD COLUMN IF NOT EXISTS title text NOT NULL DEFAULT '',
ADD COLUMN IF NOT EXISTS content_sha256 bytea GENERATED ALWAYS AS (text_sha256(content)) STORED,
ADD COLUMN IF NOT EXISTS tags text[] NOT NULL DEFAULT '{}',
ADD COLUMN IF NOT EXISTS metadata jsonb NOT NULL DEFAULT '{}',
ADD COLUMN IF NOT EXISTS updated_at timestamptz NOT NULL DEFAULT now(),
ADD COLUMN IF NOT EXISTS expires_at timestamptz,
ADD COLUMN IF NOT EXISTS chunked_at timestamptz,
ADD COLUMN IF NOT EXISTS chunking_hash text,
-- A tsvector holds 1 MB at most: the first 200,000 characters of a note always fit. Chunks have no such limit.
ADD COLUMN IF NOT EXISTS tsv tsvector
GENERATED ALWAYS AS (spanish_tsvector(left(title, 1000) || ' ' || left(content, 200000))) STORED;

-- Prevents two rows for one record of a source; legacy rows have no external id and never collide.
CREATE UNIQUE INDEX notes_external_key ON notes (tenant_id, source, external_id);
-- Prevents a scan of all notes for one month's partition.
CREATE INDEX notes_newest_idx ON notes (created_at DESC, id);
-- Prevents a scan of all notes for the few that still need chunking (an anti-join cannot be a partial index).
CREATE INDEX notes_unchunked_idx ON notes (created_at DESC, id) WHERE chunked_at IS NULL;
CREATE INDEX notes_tsv_idx ON notes USING gin (tsv);

-- A note whose content changed must be chunked again, whoever changed it.
CREATE FUNCTION note_changed() RETURNS trigger LANGUAGE plpgsql AS $note_changed$
BEGIN
    IF new.content IS DISTINCT FROM old.content OR new.title IS DISTINCT FROM old.title THEN
        new.chunked_at := NULL;
        new.updated_at := now();
    END IF;
    RETURN new;
END
$note_changed$;

CREATE TRIGGER notes_changed BEFORE UPDATE OF content, title ON notes
FOR EACH ROW EXECUTE FUNCTION note_changed();

CREATE TABLE chunks (
    id uuid PRIMARY KEY,
    note_id uuid NOT NULL REFERENCES notes (id) ON DELETE CASCADE,
    content text NOT NULL,
    -- What the prefix says of the note and of the neighbouring chunks, without its fixed words: those match everything.
    topics text NOT NULL DEFAULT '',
    -- The contextual prefix: which note, which part of it (Anthropic, "Contextual Retrieval", 2024).
    context text NOT NULL DEFAULT '',
    chunk_index integer NOT NULL CHECK (chunk_index >= 0),
    start_char integer NOT NULL CHECK (start_char >= 0),
    end_char integer NOT NULL,
    metadata jsonb NOT NULL DEFAULT '{}',
    content_sha256 bytea GENERATED ALWAYS AS (text_sha256(content)) STORED,
    -- Of core.contextual.contextual_text(context, content), what the contextual vector stands for.
    contextual_sha256 bytea GENERATED ALWAYS AS (text_sha256(context || E'\n' || content)) STORED,
    tsv tsvector GENERATED ALWAYS AS (spanish_tsvector(topics || ' ' || content)) STORED,
    lexeme_occurrences integer
    GENERATED ALWAYS AS (count_occurrences(spanish_tsvector(topics || ' ' || content))) STORED,
    created_at timestamptz NOT NULL DEFAULT now(),
    -- Also what a note's chunks are read, replaced and deleted by.
    CONSTRAINT chunks_position_key UNIQUE (note_id, chunk_index),
    CONSTRAINT chunks_bounds_check CHECK (end_char > start_char AND char_length(content) = end_char - start_char)
);
CREATE INDEX chunks_tsv_idx ON chunks USING gin (tsv);

CREATE TABLE embedding_models (
    name text PRIMARY KEY CHECK (name ~ '^[a-z0-9_]{1,40}$'),
    dimension integer NOT NULL CHECK (dimension BETWEEN 1 AND 4000),
    provider text NOT NULL,
    digest text NOT NULL,
    similarity_threshold double precision NOT NULL CHECK (similarity_threshold BETWEEN 0 AND 1),
    -- False for a model that only has whole-note vectors.
    embeds_chunks boolean NOT NULL DEFAULT TRUE,
    state text NOT NULL DEFAULT 'building' CHECK (state IN ('building', 'serving', 'retired')),
    created_at timestamptz NOT NULL DEFAULT now()
);

-- A partition per model: its own dimension check and HNSW index; retiring a model drops its partition.
CREATE TABLE chunk_embeddings (
    chunk_id uuid NOT NULL REFERENCES chunks (id) ON DELETE CASCADE,
    model text NOT NULL REFERENCES embedding_models (name),
    embedding halfvec NOT NULL,
    contextual_embedding halfvec,
    content_sha256 bytea NOT NULL,
    contextual_sha256 bytea,
    PRIMARY KEY (model, chunk_id)
) PARTITION BY LIST (model);
-- Prevent embedding the same text twice.
CREATE INDEX chunk_embeddings_content_idx ON chunk_embeddings (content_sha256);
CREATE INDEX chunk_embeddings_contextual_idx ON chunk_embeddings (contextual_sha256);

-- Chunked notes whose vectors of a model are not all there yet: the queue of the embedding runs, and the notes that
-- are still searched as a whole. Written by the transaction that chunks a note, before it touches the chunks.
CREATE TABLE pending_embeddings (
    model text NOT NULL REFERENCES embedding_models (name) ON DELETE CASCADE,
    note_id uuid NOT NULL REFERENCES notes (id) ON DELETE CASCADE,
    requested_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (model, note_id)
);

CREATE TABLE note_embeddings (
    note_id uuid NOT NULL REFERENCES notes (id) ON DELETE CASCADE,
    model text NOT NULL REFERENCES embedding_models (name),
    embedding halfvec NOT NULL,
    content_sha256 bytea NOT NULL,
    PRIMARY KEY (model, note_id)
) PARTITION BY LIST (model);

-- The partitions of a model in both tables. Called once per model, idempotent.
CREATE PROCEDURE create_model_partitions(model_name text, model_dimension integer)
LANGUAGE plpgsql AS $create_model_partitions$
DECLARE
    family text;
    child text;
BEGIN
    FOREACH family IN ARRAY ARRAY['chunk_embeddings', 'note_embeddings'] LOOP
        child := family || '_' || model_name;
        IF to_regclass(quote_ident(child)) IS NULL THEN
            EXECUTE format('CREATE TABLE %I PARTITION OF %I FOR VALUES IN (%L)', child, family, model_name);
            EXECUTE format('ALTER TABLE %I ADD CONSTRAINT %I CHECK (vector_dims(embedding) = %s)',
                           child, child || '_dimension', model_dimension);
            -- Vectors stay in the row: an exact search must not read them from TOAST one by one.
            EXECUTE format('ALTER TABLE %I SET (toast_tuple_target = 8160)', child);
        END IF;
    END LOOP;
END
$create_model_partitions$;

DO $legacy$
DECLARE
    legacy_dimension integer;
BEGIN
    IF EXISTS (SELECT FROM information_schema.columns
                WHERE table_schema = current_schema() AND table_name = 'notes' AND column_name = 'embedding') THEN
        EXECUTE 'SELECT vector_dims(embedding) FROM notes WHERE embedding IS NOT NULL LIMIT 1' INTO legacy_dimension;
        IF legacy_dimension IS NOT NULL THEN
            INSERT INTO embedding_models (name, dimension, provider, digest, similarity_threshold, embeds_chunks)
            VALUES ('legacy', legacy_dimension, 'legacy', 'unknown', 0, false);
            CALL create_model_partitions('legacy', legacy_dimension);
            EXECUTE 'INSERT INTO note_embeddings (note_id, model, embedding, content_sha256) '
                    'SELECT id, ''legacy'', embedding::halfvec, content_sha256 FROM notes '
                    'WHERE vector_dims(embedding) = $1' USING legacy_dimension;
        END IF;
    END IF;
END
$legacy$;

-- Document frequencies of the chunks' lexemes, refreshed after indexing: the idf of BM25 and the candidate budget.
CREATE TABLE lexeme_statistics (
    lexeme text PRIMARY KEY,
    document_count integer NOT NULL
);

-- One row: what changes when the index does. version is part of every cache key.
CREATE TABLE index_state (
    only_row boolean PRIMARY KEY DEFAULT TRUE CHECK (only_row),
    version bigint NOT NULL DEFAULT 0,
    chunk_count bigint NOT NULL DEFAULT 0,
    average_lexeme_occurrences double precision NOT NULL DEFAULT 0,
    refreshed_at timestamptz NOT NULL DEFAULT now()
);
INSERT INTO index_state DEFAULT VALUES;

-- What could not be chunked or embedded; a success removes the row.
CREATE TABLE indexing_failures (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    stage text NOT NULL CHECK (stage IN ('chunk', 'embed_note', 'embed_chunk')),
    note_id uuid NOT NULL REFERENCES notes (id) ON DELETE CASCADE,
    chunk_id uuid REFERENCES chunks (id) ON DELETE CASCADE,
    model text REFERENCES embedding_models (name),
    error text NOT NULL,
    occurred_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE NULLS NOT DISTINCT (stage, note_id, chunk_id, model)
);

-- Questions with known relevant notes. normalized_query is core.text.normalize_query of query.
CREATE TABLE golden_dataset (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    query text NOT NULL,
    normalized_query text NOT NULL UNIQUE,
    relevant_note_ids uuid[] NOT NULL CHECK (cardinality(relevant_note_ids) > 0),
    expected_answer text NOT NULL,
    category text NOT NULL CHECK (category IN ('factual', 'causal', 'temporal', 'comparative', 'multi-part')),
    difficulty smallint NOT NULL CHECK (difficulty BETWEEN 1 AND 5),
    tags text[] NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);

-- One row per evaluation of a configuration over the golden dataset.
CREATE TABLE evaluation_results (
    id uuid PRIMARY KEY,
    configuration text NOT NULL,
    config jsonb NOT NULL,
    config_hash text NOT NULL,
    golden_hash text NOT NULL,
    model text NOT NULL,
    model_digest text NOT NULL,
    index_version bigint NOT NULL,
    run_id text,
    total_queries integer NOT NULL,
    failed_queries integer NOT NULL,
    degraded_queries integer NOT NULL,
    hit_rate_at_1 double precision NOT NULL,
    hit_rate_at_3 double precision NOT NULL,
    hit_rate_at_5 double precision NOT NULL,
    hit_rate_at_10 double precision NOT NULL,
    hit_rate_at_10_low double precision NOT NULL,
    hit_rate_at_10_high double precision NOT NULL,
    mrr double precision NOT NULL,
    precision_at_10 double precision NOT NULL,
    recall_at_10 double precision NOT NULL,
    ndcg_at_10 double precision NOT NULL,
    faithfulness double precision,
    answer_relevance double precision,
    judge text,
    latency_p50_ms double precision NOT NULL,
    latency_p95_ms double precision NOT NULL,
    latency_p99_ms double precision NOT NULL,
    stage_latencies jsonb NOT NULL DEFAULT '{}',
    breakdown jsonb NOT NULL DEFAULT '{}',
    gate text NOT NULL CHECK (gate IN ('pass', 'inconclusive', 'fail')),
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX evaluation_results_latest_idx ON evaluation_results (configuration, created_at DESC, id);

-- One row per question of an evaluation: significance tests and "which questions flipped?" need them.
CREATE TABLE evaluation_queries (
    evaluation_id uuid NOT NULL REFERENCES evaluation_results (id) ON DELETE CASCADE,
    golden_id uuid NOT NULL,
    query text NOT NULL,
    category text NOT NULL,
    difficulty smallint NOT NULL,
    relevant_note_ids uuid[] NOT NULL,
    retrieved_note_ids uuid[] NOT NULL,
    first_relevant_rank integer CHECK (first_relevant_rank >= 1),
    metrics jsonb NOT NULL,
    latency_ms double precision NOT NULL,
    stage_latencies jsonb NOT NULL DEFAULT '{}',
    degraded text[] NOT NULL DEFAULT '{}',
    error text,
    PRIMARY KEY (evaluation_id, golden_id)
);

CREATE TABLE entities (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id text NOT NULL DEFAULT 'default',
    name text NOT NULL,
    kind text NOT NULL DEFAULT '',
    UNIQUE (tenant_id, name, kind)
);

CREATE TABLE relationships (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    source_id uuid NOT NULL REFERENCES entities (id) ON DELETE CASCADE,
    target_id uuid NOT NULL REFERENCES entities (id) ON DELETE CASCADE,
    relationship_type text NOT NULL,
    chunk_id uuid REFERENCES chunks (id) ON DELETE CASCADE,
    confidence double precision NOT NULL DEFAULT 1 CHECK (confidence BETWEEN 0 AND 1),
    UNIQUE NULLS NOT DISTINCT (source_id, target_id, relationship_type, chunk_id)
);
CREATE INDEX relationships_target_idx ON relationships (target_id);

-- The history of what serves; the newest row is what serves now.
CREATE TABLE promotions (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    configuration text NOT NULL,
    config jsonb NOT NULL,
    config_hash text NOT NULL,
    model text NOT NULL REFERENCES embedding_models (name),
    evaluation_id uuid NOT NULL REFERENCES evaluation_results (id),
    run_id text,
    promoted_at timestamptz NOT NULL DEFAULT now()
);
