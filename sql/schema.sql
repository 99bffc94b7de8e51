-- The schema as the migrations leave it in an empty database, for reading; a test keeps the two equal. Do not apply it:
-- `rag` applies sql/migrations, which also adopts an existing table notes.

-- Accents folded, so that "organizacion" finds "organización". IMMUTABLE and without extensions, for generated columns.
-- The letters of Spanish one by one: translate() compares every character with all of its list, twice the time. Below
-- U+0300, of dashes, quotation marks and the euro every character is normalized and joins with none, and most texts
-- have no other: looking for one takes a third of the check.
CREATE FUNCTION fold_accents(t text) RETURNS text
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $fold_accents$
BEGIN
    IF t ~ '[^\u0001-\u02ff\u2010-\u203a\u20ac]' AND t IS NOT nfc NORMALIZED THEN
        t := normalize(t, nfc);
    END IF;
    t := replace(replace(replace(t, 'á', 'a'), 'é', 'e'), 'í', 'i');
    t := replace(replace(replace(t, 'ó', 'o'), 'ú', 'u'), 'ü', 'u');
    IF t ~ '[àèìòùâêîôûäëïöçÁÉÍÓÚÜÀÈÌÒÙÂÊÎÔÛÄËÏÖÇ]' THEN
        t := translate(
            t, 'àèìòùâêîôûäëïöçÁÉÍÓÚÜÀÈÌÒÙÂÊÎÔÛÄËÏÖÇ', 'aeiouaeiouaeiocAEIOUUAEIOUAEIOUAEIOC'
        );
    END IF;
    RETURN t;
END
$fold_accents$;

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

-- The dimension of a lexeme in a sparse vector.
CREATE FUNCTION lexeme_dimension(lexeme text) RETURNS integer
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN 1 + (hashtext(lexeme) & 536870911);

-- How much each lexeme of a text counts in BM25, in thousandths of its idf; of a text of the length that chunks usually
-- have, since the average moves. Only the order of candidates depends on it: those that lead are scored by the average
-- of the corpus. 2,200 times the occurrences, divided by occurrences + 1.2 (0.25 + 0.75 length / 200), rounded half up
-- in integers. A sparse vector has 16,000 elements at most.
CREATE FUNCTION lexeme_weights(v tsvector, occurrences integer) RETURNS sparsevec
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN (
    SELECT
        (
            '{' || coalesce(
                string_agg(w.dimension || ':' || (44000000 * w.often + w.divisor) / (2 * w.divisor), ','), ''
            ) || '}/536870912'
        )::sparsevec
    FROM (
        SELECT
            lexeme_dimension(l.lexeme) AS dimension, max(cardinality(l.positions))::bigint AS often,
            10000 * max(cardinality(l.positions))::bigint + 3000 + 45 * occurrences::bigint AS divisor
        FROM unnest(v) AS l GROUP BY lexeme_dimension(l.lexeme) LIMIT 16000 -- noqa: AM09
    ) AS w
);

-- convert_to is only STABLE because conversions can be redefined; the one to UTF8 is fixed.
CREATE FUNCTION text_sha256(t text) RETURNS bytea
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN sha256(convert_to(t, 'UTF8'));

-- Whose questions, evaluations and promotions a session reads and writes: the application sets it for its sessions.
CREATE FUNCTION current_tenant() RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE
RETURN coalesce(nullif(current_setting('rag.tenant', TRUE), ''), 'default');

-- A file whose sections are notes. Two addresses with the same text are one document.
CREATE TABLE documents (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id text NOT NULL DEFAULT 'default',
    source text NOT NULL,
    title text NOT NULL DEFAULT '',
    -- As in the file's media type, e.g. application/pdf.
    media_type text NOT NULL DEFAULT '',
    -- Any key is a filter, through the notes of the document.
    metadata jsonb NOT NULL DEFAULT '{}',
    -- Where our copy of the file lies; null before it is downloaded.
    file_url text,
    file_bytes bigint CHECK (file_bytes >= 0),
    file_sha256 bytea,
    -- Of the file, read or not; null before extraction.
    page_count integer CHECK (page_count >= 0),
    -- Of the text of all pages; null before extraction.
    text_sha256 bytea,
    status text NOT NULL DEFAULT 'pending' CHECK (
        status IN ('pending', 'downloading', 'extracting', 'chunking', 'embedding', 'completed', 'partial', 'failed')
    ),
    -- Decides the partition.
    arrived_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    -- Hidden from then on; the notes of its sections have the same time.
    expires_at timestamptz,
    CONSTRAINT documents_tenant_key UNIQUE (tenant_id, id)
);
-- Prevents a scan of all documents for those to purge.
CREATE INDEX documents_expiry_idx ON documents (expires_at) WHERE expires_at IS NOT NULL;
-- Prevents a scan of all documents for one month's partition.
CREATE INDEX documents_arrival_idx ON documents (arrived_at DESC, id);
-- Prevents a scan of all documents for one with the same text.
CREATE INDEX documents_text_idx ON documents (tenant_id, text_sha256) WHERE text_sha256 IS NOT NULL;

-- Where a document was found; what the next download sends along to spare it.
CREATE TABLE document_addresses (
    tenant_id text NOT NULL DEFAULT 'default',
    source text NOT NULL,
    -- A URL, or a path inside the source's folder.
    address text NOT NULL,
    document_id uuid NOT NULL,
    etag text,
    checked_at timestamptz NOT NULL DEFAULT now(),
    -- Of the file last found there, read or not: the same file is not read again.
    file_sha256 bytea,
    -- Since when the source lacks it; its document stays.
    missing_since timestamptz,
    PRIMARY KEY (tenant_id, source, address),
    CONSTRAINT document_addresses_document_id_fkey FOREIGN KEY (tenant_id, document_id)
    REFERENCES documents (tenant_id, id) ON UPDATE CASCADE ON DELETE CASCADE
);
-- Prevents a scan of all addresses for the document of a file.
CREATE INDEX document_addresses_file_idx ON document_addresses (tenant_id, file_sha256);
-- What a document's addresses are read and deleted by.
CREATE INDEX document_addresses_document_idx ON document_addresses (document_id);

-- What a reader made of a page, or of a sheet of a workbook.
CREATE TABLE document_pages (
    document_id uuid NOT NULL,
    page_number integer NOT NULL CHECK (page_number >= 1),
    -- Of a workbook's page; null in other documents.
    sheet text,
    -- Which reader, and the hash of its code and settings: another hash makes the page stale.
    reader text NOT NULL,
    reader_hash text NOT NULL,
    -- Whether the text was in the file, was recognised in a picture, or is missing.
    route text NOT NULL CHECK (route IN ('text', 'ocr', 'none')),
    text text NOT NULL,
    -- What cleaning left out of the notes: [{"start": 0, "end": 12, "reason": "running_head"}], offsets into text.
    removed jsonb NOT NULL DEFAULT '[]',
    -- Under 0.3 the page stays out of search.
    quality double precision CHECK (quality BETWEEN 0 AND 1),
    has_images boolean NOT NULL DEFAULT FALSE,
    has_tables boolean NOT NULL DEFAULT FALSE,
    has_multiple_columns boolean NOT NULL DEFAULT FALSE,
    word_count integer NOT NULL DEFAULT 0 CHECK (word_count >= 0),
    character_count integer GENERATED ALWAYS AS (char_length(text)) STORED,
    extracted_at timestamptz NOT NULL DEFAULT now(),
    -- Headings, paragraphs, lists and tables: [[kind, start, end, level, [[start, end, box or cells], …]], …].
    blocks jsonb NOT NULL DEFAULT '[]',
    -- Codes of messages about the page, as that it needs OCR.
    notices text[] NOT NULL DEFAULT '{}',
    -- Characters that nobody sees on the page, by reason: {"hidden": 12}.
    left_out jsonb NOT NULL DEFAULT '{}',
    -- What the file says about itself, on its first page: {"title": "Plan"}.
    metadata jsonb NOT NULL DEFAULT '{}',
    -- What a person decided about a page of low quality.
    review text CHECK (review IN ('accepted', 'dropped')),
    tenant_id text NOT NULL DEFAULT current_tenant(),
    PRIMARY KEY (document_id, page_number),
    CONSTRAINT document_pages_document_id_fkey FOREIGN KEY (tenant_id, document_id)
    REFERENCES documents (tenant_id, id) ON UPDATE CASCADE ON DELETE CASCADE
);

-- What could not be done; a success removes the row. The reason is a message in English and its values.
CREATE TABLE document_failures (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    document_id uuid NOT NULL,
    -- Null if the whole document failed.
    page_number integer CHECK (page_number >= 1),
    stage text NOT NULL CHECK (stage IN ('downloading', 'extracting', 'chunking', 'embedding')),
    reason jsonb NOT NULL,
    occurred_at timestamptz NOT NULL DEFAULT now(),
    tenant_id text NOT NULL DEFAULT current_tenant(),
    UNIQUE NULLS NOT DISTINCT (document_id, page_number, stage),
    CONSTRAINT document_failures_document_id_fkey FOREIGN KEY (tenant_id, document_id)
    REFERENCES documents (tenant_id, id) ON UPDATE CASCADE ON DELETE CASCADE
);

-- Every reading of a file by a reader, good or not.
CREATE TABLE document_extractions (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    document_id uuid NOT NULL,
    file_sha256 bytea NOT NULL,
    reader text NOT NULL,
    reader_hash text NOT NULL,
    -- read: waits to replace the pages; held: it would lose too much, a person decides; applied: it has replaced them;
    -- dropped: a person refused it, or a later one took its place; failed: it gave no page.
    state text NOT NULL CHECK (state IN ('read', 'held', 'applied', 'dropped', 'failed')),
    page_count integer NOT NULL DEFAULT 0,
    word_count integer NOT NULL DEFAULT 0,
    -- Against the pages that it would replace; null for a first reading.
    diff jsonb,
    -- Code and values of the message, if the file could not be read to its end.
    failure jsonb,
    -- Under which limits: a failed reading is tried again under others.
    limits jsonb NOT NULL,
    seconds double precision NOT NULL DEFAULT 0,
    extracted_at timestamptz NOT NULL DEFAULT now(),
    tenant_id text NOT NULL DEFAULT current_tenant(),
    CONSTRAINT document_extractions_tenant_key UNIQUE (tenant_id, id),
    CONSTRAINT document_extractions_document_id_fkey FOREIGN KEY (tenant_id, document_id)
    REFERENCES documents (tenant_id, id) ON UPDATE CASCADE ON DELETE CASCADE
);
-- What a document's readings are looked up by, the latest first.
CREATE INDEX document_extractions_document_idx ON document_extractions (document_id, id DESC);

-- Pages of readings that have not replaced others yet.
CREATE TABLE extracted_pages (
    extraction_id bigint NOT NULL,
    page_number integer NOT NULL CHECK (page_number >= 1),
    -- A page or the failure of one, as core.page_json writes them.
    content jsonb NOT NULL,
    tenant_id text NOT NULL DEFAULT current_tenant(),
    PRIMARY KEY (extraction_id, page_number),
    CONSTRAINT extracted_pages_extraction_id_fkey FOREIGN KEY (tenant_id, extraction_id)
    REFERENCES document_extractions (tenant_id, id) ON UPDATE CASCADE ON DELETE CASCADE
);

-- Documents that a person deleted: their sources do not bring them back. Nothing of their text is kept.
CREATE TABLE deleted_documents (
    tenant_id text NOT NULL,
    file_sha256 bytea NOT NULL,
    text_sha256 bytea,
    source text NOT NULL,
    address text NOT NULL,
    reason text NOT NULL DEFAULT '',
    deleted_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, file_sha256)
);
CREATE INDEX deleted_documents_text_idx ON deleted_documents (tenant_id, text_sha256);

-- A legacy table has its own column "embedding" besides, which stays.
CREATE TABLE notes (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    content text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    -- Every column has a default, so that the INSERT of an application that knows none of them still works.
    tenant_id text NOT NULL DEFAULT 'default',
    source text NOT NULL DEFAULT 'legacy',
    external_id text,
    title text NOT NULL DEFAULT '',
    content_sha256 bytea GENERATED ALWAYS AS (text_sha256(content)) STORED,
    tags text[] NOT NULL DEFAULT '{}',
    metadata jsonb NOT NULL DEFAULT '{}',
    -- Where the creation time is from: field, file_name, title, folder, text, git or file_modified; null: not ours.
    date_source text,
    -- Its former names, and those of identical copies; and since when its file is gone.
    addresses text[] NOT NULL DEFAULT '{}',
    missing_since timestamptz,
    updated_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz,
    chunked_at timestamptz,
    chunking_hash text,
    -- Of a note that is a section of a document: which one, and under which headings, outermost first.
    document_id uuid,
    section_index integer CHECK (section_index >= 0),
    heading_path text[] NOT NULL DEFAULT '{}',
    -- Metadata that a person changed, which its source does not change back.
    edited jsonb NOT NULL DEFAULT '{}',
    CONSTRAINT notes_section_check CHECK ((document_id IS NULL) = (section_index IS NULL)),
    CONSTRAINT notes_tenant_key UNIQUE (tenant_id, id),
    CONSTRAINT notes_document_id_fkey FOREIGN KEY (tenant_id, document_id)
    REFERENCES documents (tenant_id, id) ON UPDATE CASCADE ON DELETE CASCADE
);

-- Prevents two rows for one record of a source; legacy rows have no external id and never collide.
CREATE UNIQUE INDEX notes_external_key ON notes (tenant_id, source, external_id);
-- Prevents a scan of all notes for one month's partition.
CREATE INDEX notes_newest_idx ON notes (created_at DESC, id);
-- Prevents a scan of all notes for the few that still need chunking (an anti-join cannot be a partial index).
CREATE INDEX notes_unchunked_idx ON notes (created_at DESC, id) WHERE chunked_at IS NULL;
-- Prevents a scan of all notes for the few with a tag.
CREATE INDEX notes_tags_idx ON notes USING gin (tags);
-- Prevents a scan of all notes for the one that has, or had, a name.
CREATE INDEX notes_addresses_idx ON notes USING gin (addresses);
-- Prevents a scan of all notes, and of their metadata out of line, for the few with some value in it.
CREATE INDEX notes_metadata_idx ON notes USING gin (metadata jsonb_path_ops);
-- Prevents a scan of a tenant's notes for the next one to expire, at every question.
CREATE INDEX notes_expiry_idx ON notes (tenant_id, expires_at) WHERE expires_at IS NOT NULL;

-- What a document's notes are read and deleted by.
CREATE UNIQUE INDEX notes_document_idx ON notes (document_id, section_index) WHERE document_id IS NOT NULL;

-- The metadata that a source states, with those a person changed: null takes a field away.
CREATE FUNCTION with_edits(stated jsonb, edits jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (
    SELECT coalesce(jsonb_object_agg(f.key, f.value), '{}') FROM jsonb_each($1 || $2) AS f
    WHERE f.value <> 'null' OR NOT $2 ? f.key
);

-- A note whose content, title or tags changed must be chunked again, whoever changed it.
CREATE FUNCTION note_changed() RETURNS trigger LANGUAGE plpgsql AS $note_changed$
BEGIN
    IF (new.content, new.title, new.tags) IS DISTINCT FROM (old.content, old.title, old.tags) THEN
        new.chunked_at := NULL;
        new.updated_at := now();
    END IF;
    RETURN new;
END
$note_changed$;

CREATE TRIGGER notes_changed BEFORE UPDATE OF content, title, tags ON notes
FOR EACH ROW EXECUTE FUNCTION note_changed();

-- The application that wrote the notes before us may leave out a content or a time, or give null for it, as an object
-- mapper does: its table allowed both.
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

-- Runs of a note's characters that stand in a page: the same characters, from page_start on. White space that joins two
-- runs belongs to none.
CREATE TABLE note_spans (
    note_id uuid NOT NULL,
    start_char integer NOT NULL CHECK (start_char >= 0),
    end_char integer NOT NULL,
    document_id uuid NOT NULL,
    page_number integer NOT NULL,
    -- Offset into document_pages.text.
    page_start integer NOT NULL CHECK (page_start >= 0),
    -- Left, top, right, bottom in points (1/72 inch) from the page's upper left corner; null in a workbook.
    box real[] CHECK (cardinality(box) = 4),
    -- As B2 or B2:D2; null in a page.
    cells text,
    tenant_id text NOT NULL DEFAULT current_tenant(),
    PRIMARY KEY (note_id, start_char),
    FOREIGN KEY (document_id, page_number) REFERENCES document_pages (document_id, page_number) ON DELETE CASCADE,
    CONSTRAINT note_spans_bounds_check CHECK (end_char > start_char),
    CONSTRAINT note_spans_note_id_fkey FOREIGN KEY (tenant_id, note_id)
    REFERENCES notes (tenant_id, id) ON UPDATE CASCADE ON DELETE CASCADE,
    CONSTRAINT note_spans_document_id_fkey FOREIGN KEY (tenant_id, document_id)
    REFERENCES documents (tenant_id, id) ON UPDATE CASCADE ON DELETE CASCADE
);
-- What a page's runs are deleted by.
CREATE INDEX note_spans_page_idx ON note_spans (document_id, page_number);

-- The runs of a note whose content changed are gone: they would name other characters. As the owner: who may write
-- notes need not know of it, nor of its schema.
CREATE FUNCTION drop_note_spans() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $drop_note_spans$
BEGIN
    EXECUTE format('DELETE FROM %I.note_spans WHERE note_id = $1', tg_table_schema) USING new.id;
    RETURN NULL;
END
$drop_note_spans$;

CREATE TRIGGER notes_spans_by_update AFTER UPDATE OF content ON notes FOR EACH ROW
WHEN (new.document_id IS NOT NULL AND new.content IS DISTINCT FROM old.content)
EXECUTE FUNCTION drop_note_spans();

CREATE TABLE chunks (
    id uuid PRIMARY KEY,
    note_id uuid NOT NULL,
    content text NOT NULL,
    -- What the prefix says of the note and of the neighbouring chunks, without its fixed words: those match everything.
    topics text NOT NULL DEFAULT '',
    -- The contextual prefix: which note, which part of it (Anthropic, "Contextual Retrieval", 2024).
    context text NOT NULL DEFAULT '',
    chunk_index integer NOT NULL CHECK (chunk_index >= 0),
    start_char integer NOT NULL CHECK (start_char >= 0),
    end_char integer NOT NULL,
    metadata jsonb NOT NULL DEFAULT '{}',
    -- What a reader of the rendered note sees of the content (core.blocks); null where it is the content.
    rendered text CHECK (rendered <> content),
    -- The words of topics and content, and how many they are: by a trigger, which computes them once for both.
    tsv tsvector,
    lexeme_occurrences integer,
    created_at timestamptz NOT NULL DEFAULT now(),
    -- What candidates of a search by words are ranked by.
    weights sparsevec GENERATED ALWAYS AS (lexeme_weights(tsv, lexeme_occurrences)) STORED,
    tenant_id text NOT NULL DEFAULT current_tenant(),
    -- Also what a note's chunks are read, replaced and deleted by.
    CONSTRAINT chunks_position_key UNIQUE (note_id, chunk_index),
    CONSTRAINT chunks_bounds_check CHECK (end_char > start_char AND char_length(content) = end_char - start_char),
    CONSTRAINT chunks_tenant_key UNIQUE (tenant_id, id),
    CONSTRAINT chunks_note_id_fkey FOREIGN KEY (tenant_id, note_id)
    REFERENCES notes (tenant_id, id) ON UPDATE CASCADE ON DELETE CASCADE
);
CREATE INDEX chunks_tsv_idx ON chunks USING gin (tsv);
-- Its words beside a chunk, two chunks a page: every candidate of a search by words is ranked by them.
ALTER TABLE chunks ALTER COLUMN tsv SET STORAGE MAIN, ALTER COLUMN weights SET STORAGE MAIN,
SET (toast_tuple_target = 4080);

-- The words of a chunk. Those of a provisional chunk are the words of its whole note, as far as they fit: a tsvector
-- holds 1 MB at most, and the first 200,000 characters always do. A provisional chunk that becomes the only chunk of
-- its note keeps them, with what its topics say besides: parsing the text again would take half of the time of writing.
-- Only where the parser sees the same words, one by one, as in topics and content together: so not after what may go on
-- with the next word.
CREATE FUNCTION chunk_words() RETURNS trigger LANGUAGE plpgsql AS $chunk_words$
DECLARE
    further integer;
BEGIN
    IF tg_op = 'UPDATE' THEN
        IF
            old.id = old.note_id AND new.id <> new.note_id AND new.content = old.content AND new.rendered IS NULL
            AND starts_with(new.topics, old.topics) AND old.topics !~ '[<&/@.:]' AND new.topics !~ '<'
        THEN
            further := 1 + char_length(old.topics);
        END IF;
    END IF;
    IF further IS NOT NULL AND (further = 1 OR substr(new.topics, further, 1) IN ('', ':')) THEN
        new.tsv := old.tsv || spanish_tsvector(substr(new.topics, further));
    ELSIF new.id = new.note_id THEN
        SELECT spanish_tsvector(
            new.topics || ' ' || normalize(translate(left(n.content, 200000), U&'\00AD\200B\200E\2060\FEFF', ''))
        ) INTO new.tsv
        FROM notes AS n WHERE n.id = new.note_id;
    ELSE
        new.tsv := spanish_tsvector(new.topics || ' ' || coalesce(new.rendered, new.content));
    END IF;
    new.lexeme_occurrences := count_occurrences(new.tsv);
    RETURN new;
END
$chunk_words$;

CREATE TRIGGER chunks_words BEFORE INSERT OR UPDATE OF topics, content, rendered, tsv, lexeme_occurrences ON chunks
FOR EACH ROW EXECUTE FUNCTION chunk_words();

CREATE TABLE embedding_models (
    -- As short as the names of its tables and indexes of vectors need.
    name text PRIMARY KEY CHECK (name ~ '^[a-z0-9_]{1,39}$'),
    dimension integer NOT NULL CHECK (dimension BETWEEN 1 AND 4000),
    provider text NOT NULL,
    digest text NOT NULL,
    similarity_threshold double precision NOT NULL CHECK (similarity_threshold BETWEEN 0 AND 1),
    -- The kinds of vectors that it makes: those that configurations search.
    kinds text[] NOT NULL CHECK (kinds <@ ARRAY['chunk', 'contextual', 'window', 'note']),
    created_at timestamptz NOT NULL DEFAULT now(),
    -- Since when nothing is kept of it but this row, for the promotions that name it.
    retired_at timestamptz,
    -- How the chunks of a model are cut into windows (core.windows.windows_hash); null for a model without windows.
    windows_hash text,
    -- The cosines that stand for "unrelated" and "the same": between them a fused score goes from 0 to 1.
    cosine_low double precision NOT NULL DEFAULT 0,
    cosine_high double precision NOT NULL DEFAULT 1,
    CONSTRAINT embedding_models_cosine_range_check CHECK (
        cosine_low >= -1 AND cosine_low < cosine_high AND cosine_high <= 1
    )
);

-- The vectors of chunks (their text alone, under their context, or their windows: a few sentences each under the note's
-- title) and of whole notes. A partition per model, with a partition per kind: each has a dimension check and an HNSW
-- index of its own, a search reads the table of its kind alone, and retiring a model drops its partition.
CREATE TABLE vectors (
    -- Of a whole note there is no chunk, of all others no note.
    chunk_id uuid,
    note_id uuid,
    -- Of a window among those of its chunk, and where it is in the content of that: the chunk keeps its id wherever its
    -- note moves it.
    position integer NOT NULL DEFAULT 0 CHECK (position >= 0),
    start_char integer CHECK (start_char >= 0),
    end_char integer CHECK (end_char > start_char),
    model text NOT NULL REFERENCES embedding_models (name),
    kind text NOT NULL,
    tenant_id text NOT NULL DEFAULT current_tenant(),
    -- Of the text that the vector stands for.
    text_sha256 bytea NOT NULL,
    embedding halfvec NOT NULL,
    CONSTRAINT vectors_chunk_id_fkey FOREIGN KEY (tenant_id, chunk_id)
    REFERENCES chunks (tenant_id, id) ON UPDATE CASCADE ON DELETE CASCADE,
    CONSTRAINT vectors_note_id_fkey FOREIGN KEY (tenant_id, note_id)
    REFERENCES notes (tenant_id, id) ON UPDATE CASCADE ON DELETE CASCADE
) PARTITION BY LIST (model);
-- Prevents embedding the same text twice.
CREATE INDEX vectors_text_idx ON vectors USING hash (text_sha256);
-- For tenants with so few vectors that all are compared.
CREATE INDEX vectors_tenant_idx ON vectors (tenant_id);

-- Notes whose chunks lack vectors of a model: the queue of the embedding runs. Written by the transaction that writes
-- or chunks a note, before it touches the chunks.
CREATE TABLE pending_vectors (
    model text NOT NULL REFERENCES embedding_models (name) ON DELETE CASCADE,
    note_id uuid NOT NULL,
    requested_at timestamptz NOT NULL DEFAULT now(),
    tenant_id text NOT NULL DEFAULT current_tenant(),
    PRIMARY KEY (model, note_id),
    CONSTRAINT pending_vectors_note_id_fkey FOREIGN KEY (tenant_id, note_id)
    REFERENCES notes (tenant_id, id) ON UPDATE CASCADE ON DELETE CASCADE
);

-- A note is always chunks. Until it is chunked, and again after its text has changed, it is found by a provisional
-- chunk: its first 2,000 tokens under its own id, with the words of all of it, queued for vectors as any other. Chunks
-- from before a change stay unseen until the note is chunked again, so that those that did not change keep their
-- vectors.
-- As the owner: who may write notes need not know of it, nor of its schema.
CREATE FUNCTION write_provisional_chunks() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $write_provisional_chunks$
BEGIN
    PERFORM set_config('search_path', quote_ident(tg_table_schema) || ', pg_temp', TRUE);
    IF tg_op = 'INSERT' THEN
        PERFORM provide_chunks(ARRAY(SELECT w.id FROM written AS w ORDER BY w.id));
    ELSE
        PERFORM provide_chunks(ARRAY[new.id]);
    END IF;
    RETURN NULL;
END
$write_provisional_chunks$;

-- Queues notes for the vectors of every model that makes some of chunks.
CREATE FUNCTION request_vectors(note_ids uuid[]) RETURNS void LANGUAGE sql AS $request_vectors$
    INSERT INTO pending_vectors AS p (model, note_id, tenant_id)
    SELECT m.name, n.id, n.tenant_id
    FROM embedding_models AS m CROSS JOIN notes AS n
    WHERE m.retired_at IS NULL AND m.kinds && '{chunk,contextual,window}' AND n.id = ANY(request_vectors.note_ids) ORDER BY m.name, n.id
    ON CONFLICT (model, note_id) DO UPDATE SET requested_at = now();
$request_vectors$;

CREATE FUNCTION provide_chunks(note_ids uuid[]) RETURNS void LANGUAGE plpgsql AS $provide_chunks$
BEGIN
    -- As announce_chunking in sql/queries/chunks.sql: models cannot change now. Nobody who writes a note waits for whoever
    -- embeds it: what is queued already stays so, and chunking queues it again.
    LOCK TABLE chunks IN ROW EXCLUSIVE MODE;
    -- A blank note has no chunk.
    note_ids := ARRAY(SELECT n.id FROM notes AS n WHERE n.id = ANY(note_ids) AND n.content ~ '[^\s\x1c-\x1f]');
    INSERT INTO pending_vectors (model, note_id, tenant_id)
    SELECT m.name, n.id, n.tenant_id
    FROM embedding_models AS m CROSS JOIN notes AS n
    WHERE m.retired_at IS NULL AND m.kinds && '{chunk,contextual,window}' AND n.id = ANY(note_ids) ORDER BY m.name, n.id
    ON CONFLICT DO NOTHING;
    INSERT INTO chunks AS c (id, note_id, chunk_index, content, topics, start_char, end_char, tenant_id)
    SELECT
        n.id, n.id, coalesce((SELECT max(o.chunk_index) + 1 FROM chunks AS o WHERE o.note_id = n.id), 0),
        left(n.content, 8000),
        CASE
            WHEN n.tags = '{}' THEN left(n.title, 1000)
            ELSE left(n.title, 1000) || ' ' || translate(left(array_to_string(n.tags, ' '), 200), '-_', '  ') END,
        0, least(char_length(n.content), 8000), n.tenant_id
    FROM notes AS n
    WHERE n.id = ANY(note_ids)
    ORDER BY n.id
    ON CONFLICT (id) DO UPDATE
        SET content = excluded.content, topics = excluded.topics, end_char = excluded.end_char;
END
$provide_chunks$;

CREATE TRIGGER notes_chunks_by_insert AFTER INSERT ON notes REFERENCING NEW TABLE AS written
FOR EACH STATEMENT EXECUTE FUNCTION write_provisional_chunks();
-- Not by statement: a note is updated whenever it is chunked, and keeps its chunks.
CREATE TRIGGER notes_chunks_by_update AFTER UPDATE OF title, content, tags ON notes FOR EACH ROW
WHEN ((new.content, new.title, new.tags) IS DISTINCT FROM (old.content, old.title, old.tags))
EXECUTE FUNCTION write_provisional_chunks();

-- How fast vectors are made, for the time a migration still takes: nothing else says when one was. A row for the notes
-- that one transaction took off the queue.
CREATE TABLE embedding_work (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    model text NOT NULL,
    notes integer NOT NULL,
    vectors integer NOT NULL,
    -- Of that transaction.
    started_at timestamptz NOT NULL,
    finished_at timestamptz NOT NULL
);
-- Prevents a scan of all the work ever done for the latest of a model.
CREATE INDEX embedding_work_latest_idx ON embedding_work (model, id DESC);

-- Row-level security: a transaction sees and writes the rows of the tenant that it names by
-- set_config('rag.tenant', …, true), and none if it names none. Applied to every table with a column tenant_id, present
-- and future: `rag up` calls isolate_tenants after the migrations.

-- Puts the owner of a table under its policies, too, unless that costs something: who is neither a superuser nor has
-- BYPASSRLS could not COPY into it any more. The policy of the owner lets everything through in any case.
CREATE PROCEDURE bind_owner(bound regclass) LANGUAGE plpgsql AS $bind_owner$
BEGIN
    EXECUTE format(
        'ALTER TABLE %s %s ROW LEVEL SECURITY', bound,
        (
            SELECT CASE WHEN r.rolsuper OR r.rolbypassrls THEN 'FORCE' ELSE 'NO FORCE' END
            FROM pg_class AS c INNER JOIN pg_roles AS r ON r.oid = c.relowner WHERE c.oid = bound
        )
    );
END
$bind_owner$;

-- Isolates one table. The rows of no tenant in particular ('') are everybody's to read.
CREATE PROCEDURE isolate_table(isolated regclass) LANGUAGE plpgsql AS $isolate_table$
DECLARE
    -- Rows of these are for the machinery: whose they are is nobody's business.
    is_private boolean := isolated::text IN ('api_keys', 'month_contents', 'changed_months');
    has_shared boolean := isolated::text = 'index_changes';
    owner_name text := (SELECT pg_get_userbyid(c.relowner) FROM pg_class AS c WHERE c.oid = isolated);
    own text := 'tenant_id = current_setting(''rag.tenant'', TRUE)';
    grantee text;
BEGIN
    IF
        NOT is_private AND EXISTS (SELECT FROM pg_roles AS r WHERE r.rolname = 'rag_reader')
        AND NOT has_table_privilege('rag_writer', isolated, 'INSERT')
    THEN
        EXECUTE format('GRANT SELECT ON %s TO rag_reader', isolated);
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %s TO rag_writer', isolated);
    END IF;
    IF EXISTS (SELECT FROM pg_policy AS p WHERE p.polrelid = isolated AND p.polname = 'tenant') THEN
        RETURN;
    END IF;
    -- Who could use the table before it was isolated still can: an application of one's own goes on working.
    FOR grantee IN
        SELECT DISTINCT CASE WHEN a.grantee = 0 THEN 'public' ELSE pg_get_userbyid(a.grantee) END
        FROM pg_class AS c CROSS JOIN LATERAL aclexplode(c.relacl) AS a
        WHERE
            c.oid = isolated AND a.grantee <> c.relowner
            AND (a.grantee = 0 OR pg_get_userbyid(a.grantee) NOT IN ('rag_reader', 'rag_writer'))
    LOOP
        EXECUTE format(
            'CREATE POLICY %I ON %s TO %s USING (TRUE) WITH CHECK (TRUE)', 'granted before to ' || grantee, isolated,
            CASE WHEN grantee = 'public' THEN 'PUBLIC' ELSE quote_ident(grantee) END
        );
    END LOOP;
    EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', isolated);
    CALL bind_owner(isolated);
    -- The owner migrates, indexes, purges and counts for all tenants.
    EXECUTE format('CREATE POLICY owner ON %s TO %I USING (TRUE) WITH CHECK (TRUE)', isolated, owner_name);
    EXECUTE format('CREATE POLICY tenant ON %s USING (%s) WITH CHECK (%s)', isolated, own, own);
    -- Who names no tenant may add rows of the default one, as the column's default does, but sees none.
    EXECUTE format('CREATE POLICY unnamed ON %s FOR INSERT WITH CHECK (tenant_id = ''default'' AND '
                   'coalesce(current_setting(''rag.tenant'', TRUE), '''') = '''')', isolated);
    IF has_shared THEN
        EXECUTE format('CREATE POLICY shared ON %s FOR SELECT USING (tenant_id = '''')', isolated);
    END IF;
END
$isolate_table$;

-- The tables of a model's vectors. Idempotent. Made apart and attached: made in place they would lock out whoever uses
-- the vectors of any model.
CREATE PROCEDURE create_model_partitions(model_name text, model_dimension integer)
LANGUAGE plpgsql AS $create_model_partitions$
DECLARE
    own text := 'vectors_' || model_name;
    own_kind text;
    child text;
BEGIN
    IF to_regclass(quote_ident(own)) IS NOT NULL THEN
        RETURN;
    END IF;
    EXECUTE format('CREATE TABLE %I (LIKE vectors INCLUDING ALL) PARTITION BY LIST (kind)', own);
    FOREACH own_kind IN ARRAY ARRAY['chunk', 'contextual', 'window', 'note'] LOOP
        child := own || '_' || own_kind;
        EXECUTE format('CREATE TABLE %I (LIKE vectors INCLUDING ALL)', child);
        -- That the other column is null spares the deletion of a note a look into its vectors of chunks, and the other
        -- way round. Vectors stay in the row: an exact search must not read them from TOAST one by one.
        EXECUTE format(
            'ALTER TABLE %I ADD PRIMARY KEY (%I, position), ADD CONSTRAINT owner CHECK (%I IS NULL), '
            'ADD CONSTRAINT dimension CHECK (vector_dims(embedding) = %s), SET (toast_tuple_target = 8160)',
            child, CASE own_kind WHEN 'note' THEN 'note_id' ELSE 'chunk_id' END,
            CASE own_kind WHEN 'note' THEN 'chunk_id' ELSE 'note_id' END, model_dimension
        );
        EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES IN (%L)', own, child, own_kind);
    END LOOP;
    EXECUTE format('ALTER TABLE vectors ATTACH PARTITION %I FOR VALUES IN (%L)', own, model_name);
    -- A statement that names a partition runs no trigger of the table above it, nor its policies.
    CALL isolate_table(own::regclass);
    CALL track(own, 'mark_months', '/', 'vector');
    FOREACH own_kind IN ARRAY ARRAY['chunk', 'contextual', 'window', 'note'] LOOP
        CALL isolate_table((own || '_' || own_kind)::regclass);
        CALL track(own || '_' || own_kind, 'mark_months', '/', 'vector');
    END LOOP;
END
$create_model_partitions$;

-- Drops those tables with their indexes, idempotent. As a partition, which locks out whoever uses `vectors` until
-- commit, though not who searches another model's partition. Detached first (CONCURRENTLY) it would take foreign keys
-- of its own along, and to drop those locks chunks and notes against every reader.
CREATE PROCEDURE drop_model_partitions(model_name text)
LANGUAGE plpgsql AS $drop_model_partitions$
BEGIN
    EXECUTE format('DROP TABLE IF EXISTS %I', 'vectors_' || model_name);
    INSERT INTO changed_months (tenant_id, month, part)
    SELECT DISTINCT m.tenant_id, m.month, m.part FROM month_contents AS m
    ON CONFLICT DO NOTHING;
END
$drop_model_partitions$;

-- Document frequencies of the lexemes of a tenant's chunks, refreshed after indexing: the idf of BM25 and the candidate
-- budget.
CREATE TABLE lexeme_statistics (
    lexeme text NOT NULL,
    document_count integer NOT NULL,
    tenant_id text NOT NULL DEFAULT current_tenant(),
    PRIMARY KEY (tenant_id, lexeme)
);

-- The corpus statistics of BM25, by tenant: what is rare in one tenant's notes says nothing of another's.
CREATE TABLE corpus_statistics (
    tenant_id text PRIMARY KEY DEFAULT current_tenant(),
    chunk_count bigint NOT NULL DEFAULT 0,
    average_lexeme_occurrences double precision NOT NULL DEFAULT 0,
    refreshed_at timestamptz NOT NULL DEFAULT now(),
    -- Of all chunks, which the average is made of; null: the words of all tenants are to be counted anew.
    lexeme_occurrences bigint
);

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

-- One row: which database this is. No two take each other's versions of the index for their own, though they share a
-- cache.
CREATE TABLE index_state (
    only_row boolean PRIMARY KEY DEFAULT TRUE CHECK (only_row),
    database_id uuid NOT NULL DEFAULT gen_random_uuid()
);
INSERT INTO index_state DEFAULT VALUES;

-- Changes of what is searched, by tenant; their sum is the version that cached answers are kept under. Only added to:
-- no writer waits for another. Rows of committed transactions are folded into one now and then, which keeps the sum.
CREATE TABLE index_changes (
    -- Empty for what concerns all tenants: the models, and the indexes.
    tenant_id text NOT NULL,
    transaction_id xid8 NOT NULL DEFAULT pg_current_xact_id(),
    changes bigint NOT NULL DEFAULT 1,
    PRIMARY KEY (tenant_id, transaction_id)
);
INSERT INTO index_changes (tenant_id, changes)
VALUES ('', 1);

-- Counts one change for each tenant whose rows a statement changed, once in a transaction; `changed` holds the rows,
-- `replaced` those that an update replaced. As the owner: who may write notes need not know of it, nor of its schema.
--
-- A change is seen by the snapshots that see what was written, and the sum never falls: two different states of a
-- tenant's rows never have the same sum, as one of the two was committed later. Whoever reads the sum, then searches,
-- and keeps the answer under that sum may keep a later state under it, but nobody asks for that sum again once the
-- later state is committed. So nobody has to look for writers at work.
CREATE FUNCTION index_changed() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $index_changed$
DECLARE
    rows text := CASE
        WHEN tg_op = 'TRUNCATE' THEN '(VALUES ('''')) AS c (tenant_id)'
        WHEN tg_argv[0] = 'everybody' THEN '(SELECT '''' AS tenant_id FROM changed LIMIT 1) AS c'
        WHEN tg_op = 'UPDATE' AND tg_argv[0] = 'tenant' THEN
            '(SELECT n.tenant_id FROM changed AS n UNION ALL SELECT o.tenant_id FROM replaced AS o) AS c'
        ELSE 'changed AS c' END;
    added bigint;
BEGIN
    EXECUTE format(
        'INSERT INTO %1$I.index_changes (tenant_id) SELECT DISTINCT c.tenant_id FROM %2$s '
        'ON CONFLICT (tenant_id, transaction_id) DO NOTHING',
        tg_table_schema, rows
    );
    GET DIAGNOSTICS added = ROW_COUNT;
    -- A stricter transaction would fail when it meets rows that another has folded since.
    IF added > 0 AND random() < 0.02 AND current_setting('transaction_isolation') = 'read committed' THEN
        EXECUTE format(
            $fold$
                WITH old AS MATERIALIZED (
                    SELECT o.tenant_id, o.transaction_id FROM %1$I.index_changes AS o
                    WHERE
                        o.transaction_id <> pg_current_xact_id()
                        AND o.tenant_id IN (
                            SELECT i.tenant_id FROM %1$I.index_changes AS i
                            WHERE i.transaction_id = pg_current_xact_id()
                        )
                    LIMIT 1000 FOR UPDATE SKIP LOCKED
                ),
                folded AS (
                    DELETE FROM %1$I.index_changes AS i USING old AS o
                    WHERE i.tenant_id = o.tenant_id AND i.transaction_id = o.transaction_id
                    RETURNING i.tenant_id, i.changes
                )
                INSERT INTO %1$I.index_changes AS i (tenant_id, changes)
                SELECT f.tenant_id, sum(f.changes) FROM folded AS f GROUP BY f.tenant_id
                ON CONFLICT (tenant_id, transaction_id) DO UPDATE SET changes = i.changes + excluded.changes
            $fold$,
            tg_table_schema
        );
    END IF;
    RETURN NULL;
END
$index_changed$;

-- Has every statement that changes a table call a trigger function: `changed` holds the rows, `replaced` those that an
-- update replaced.
CREATE PROCEDURE track(tracked text, called text, VARIADIC arguments text[]) LANGUAGE plpgsql AS $track$
DECLARE
    operation text;
BEGIN
    FOREACH operation IN ARRAY ARRAY['INSERT', 'UPDATE', 'DELETE', 'TRUNCATE'] LOOP
        EXECUTE format(
            'CREATE TRIGGER %I AFTER %s ON %I %s FOR EACH STATEMENT EXECUTE FUNCTION %I(%s)',
            called || '_by_' || lower(operation), operation, tracked,
            CASE operation
                WHEN 'INSERT' THEN 'REFERENCING NEW TABLE AS changed'
                WHEN 'UPDATE' THEN 'REFERENCING NEW TABLE AS changed OLD TABLE AS replaced'
                WHEN 'DELETE' THEN 'REFERENCING OLD TABLE AS changed'
                ELSE '' END,
            called, (SELECT string_agg(quote_literal(a.argument), ', ') FROM unnest(arguments) AS a (argument))
        );
    END LOOP;
END
$track$;

-- The causal graph: what notes are about, and what they say is the cause of what.

-- The parts of the graph that are made, and how (core.graph_version): another version makes all of it anew.
CREATE TABLE graph_parts (
    part text PRIMARY KEY CHECK (part IN ('mentions', 'causal_statements')),
    version text NOT NULL
);

-- Chunked notes that a part of the graph has not read yet, as pending_vectors is for vectors.
CREATE TABLE pending_graph (
    tenant_id text NOT NULL,
    note_id uuid NOT NULL,
    part text NOT NULL REFERENCES graph_parts (part) ON DELETE CASCADE,
    requested_at timestamptz NOT NULL DEFAULT now(),
    -- Also what a note's rows are deleted by.
    PRIMARY KEY (note_id, part, tenant_id),
    CONSTRAINT pending_graph_note_id_fkey FOREIGN KEY (tenant_id, note_id)
    REFERENCES notes (tenant_id, id) ON UPDATE CASCADE ON DELETE CASCADE
);

-- Names, tags and dates, and the events of causal statements. An id is made of tenant, kind and key (of an event: also
-- of its note), so that the same name is the same entity after any rebuild.
CREATE TABLE entities (
    tenant_id text NOT NULL,
    id uuid NOT NULL,
    kind text NOT NULL CHECK (kind IN ('name', 'tag', 'date', 'event')),
    -- In small letters, without accents.
    key text NOT NULL,
    -- As somebody wrote it.
    name text NOT NULL,
    -- The words of an event, by which causal questions find where to begin.
    tsv tsvector GENERATED ALWAYS AS (CASE WHEN kind = 'event' THEN spanish_tsvector(name) END) STORED,
    PRIMARY KEY (tenant_id, id)
);
-- What a question's names are looked up by.
CREATE INDEX entities_key_idx ON entities (tenant_id, key);

-- Where an entity is named, in the content of a chunk, which keeps its id wherever its note moves it.
CREATE TABLE mentions (
    tenant_id text NOT NULL,
    entity_id uuid NOT NULL,
    chunk_id uuid NOT NULL,
    note_id uuid NOT NULL,
    -- Both 0 for a tag, which belongs to the whole note.
    start_char integer NOT NULL CHECK (start_char >= 0),
    end_char integer NOT NULL,
    -- What found it: rules, or the name of a language model.
    extractor text NOT NULL,
    version text NOT NULL,
    -- Also what the chunks of an entity are found by.
    PRIMARY KEY (tenant_id, entity_id, chunk_id, start_char),
    FOREIGN KEY (tenant_id, entity_id) REFERENCES entities (tenant_id, id) ON DELETE CASCADE,
    CONSTRAINT mentions_bounds_check CHECK (end_char > start_char OR (start_char = 0 AND end_char = 0)),
    CONSTRAINT mentions_chunk_id_fkey FOREIGN KEY (tenant_id, chunk_id)
    REFERENCES chunks (tenant_id, id) ON UPDATE CASCADE ON DELETE CASCADE
);
-- What the entities of a chunk are found by, and deleted with it.
CREATE INDEX mentions_chunk_idx ON mentions (chunk_id, entity_id);

-- Causal statements: which event is the cause of which, and the words of a chunk that say so.
CREATE TABLE relationships (
    tenant_id text NOT NULL,
    id uuid NOT NULL,
    source_id uuid NOT NULL,
    target_id uuid NOT NULL,
    type text NOT NULL CHECK (type IN ('CAUSES', 'TRIGGERS', 'LEADS_TO')),
    confidence double precision NOT NULL CHECK (confidence BETWEEN 0 AND 1),
    -- The evidence; all offsets are in its content.
    chunk_id uuid NOT NULL,
    note_id uuid NOT NULL,
    -- The rule, as "porque"; the model of a language model's.
    marker text NOT NULL,
    marker_start integer NOT NULL CHECK (marker_start >= 0),
    marker_end integer NOT NULL,
    cause_start integer NOT NULL CHECK (cause_start >= 0),
    cause_end integer NOT NULL,
    effect_start integer NOT NULL CHECK (effect_start >= 0),
    effect_end integer NOT NULL,
    extractor text NOT NULL,
    version text NOT NULL,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, source_id) REFERENCES entities (tenant_id, id) ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, target_id) REFERENCES entities (tenant_id, id) ON DELETE CASCADE,
    CONSTRAINT relationships_bounds_check CHECK (
        marker_end >= marker_start AND cause_end > cause_start AND effect_end > effect_start
    ),
    CONSTRAINT relationships_chunk_id_fkey FOREIGN KEY (tenant_id, chunk_id)
    REFERENCES chunks (tenant_id, id) ON UPDATE CASCADE ON DELETE CASCADE
);
-- What the neighbours of an event are found by, in both directions.
CREATE INDEX relationships_source_idx ON relationships (tenant_id, source_id, target_id, id) INCLUDE (type, chunk_id);
CREATE INDEX relationships_target_idx ON relationships (tenant_id, target_id, source_id, id) INCLUDE (type, chunk_id);
-- What the statements of a chunk are found by, and deleted with it.
CREATE INDEX relationships_chunk_idx ON relationships (chunk_id);

-- Deletes the entities that only deleted notes named: their names are text of those notes. A chunk that is made anew
-- leaves its entities until it has been read again. An entity that somebody is using is locked, and stays.
CREATE FUNCTION forget_entities() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $forget_entities$
DECLARE
    named text := CASE tg_table_name
        WHEN 'mentions' THEN 'SELECT g.tenant_id, g.entity_id AS id, g.note_id FROM gone AS g'
        ELSE 'SELECT g.tenant_id, g.source_id AS id, g.note_id FROM gone AS g '
            'UNION ALL SELECT g.tenant_id, g.target_id, g.note_id FROM gone AS g' END;
    tenants text[];
    ids uuid[];
BEGIN
    EXECUTE format(
        'SELECT array_agg(l.tenant_id), array_agg(l.id) FROM (SELECT e.tenant_id, e.id FROM %1$I.entities AS e '
        'WHERE (e.tenant_id, e.id) IN (SELECT x.tenant_id, x.id FROM (%2$s) AS x '
        'WHERE NOT EXISTS (SELECT FROM %1$I.notes AS n WHERE n.id = x.note_id)) '
        'ORDER BY e.tenant_id, e.id FOR UPDATE SKIP LOCKED) AS l',
        tg_table_schema, named
    ) INTO tenants, ids;
    IF ids IS NOT NULL THEN
        EXECUTE format(
            'DELETE FROM %1$I.entities AS e USING unnest($1, $2) AS l (tenant_id, id) '
            'WHERE e.tenant_id = l.tenant_id AND e.id = l.id '
            'AND NOT EXISTS (SELECT FROM %1$I.mentions AS m WHERE m.tenant_id = e.tenant_id AND m.entity_id = e.id) '
            'AND NOT EXISTS '
            '(SELECT FROM %1$I.relationships AS r WHERE r.tenant_id = e.tenant_id AND r.source_id = e.id) '
            'AND NOT EXISTS '
            '(SELECT FROM %1$I.relationships AS r WHERE r.tenant_id = e.tenant_id AND r.target_id = e.id)',
            tg_table_schema
        ) USING tenants, ids;
    END IF;
    RETURN NULL;
END
$forget_entities$;

CREATE TRIGGER mentions_forgotten AFTER DELETE ON mentions REFERENCING OLD TABLE AS gone
FOR EACH STATEMENT EXECUTE FUNCTION forget_entities();
CREATE TRIGGER relationships_forgotten AFTER DELETE ON relationships REFERENCING OLD TABLE AS gone
FOR EACH STATEMENT EXECUTE FUNCTION forget_entities();

-- Tags are mentions too. As the owner: who may write notes need not know of the graph, nor of its schema.
CREATE FUNCTION note_tagged() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $note_tagged$
BEGIN
    EXECUTE format(
        'INSERT INTO %1$I.pending_graph (tenant_id, note_id, part) '
        'SELECT $1, $2, p.part FROM %1$I.graph_parts AS p WHERE p.part = ''mentions'' ON CONFLICT DO NOTHING',
        tg_table_schema
    ) USING new.tenant_id, new.id;
    RETURN NULL;
END
$note_tagged$;

CREATE TRIGGER notes_tagged AFTER UPDATE OF tags ON notes FOR EACH ROW
WHEN (new.tags IS DISTINCT FROM old.tags)
EXECUTE FUNCTION note_tagged();

-- Everything that search reads. A later table that it reads belongs here too.
DO $tracked$
DECLARE
    tracked text;
BEGIN
    FOREACH tracked IN ARRAY ARRAY['notes', 'chunks', 'vectors', 'lexeme_statistics',
                                   'corpus_statistics', 'document_pages', 'note_spans', 'mentions',
                                   'relationships'] LOOP
        CALL track(tracked, 'index_changed', 'tenant');
    END LOOP;
    CALL track('embedding_models', 'index_changed', 'everybody');
    CALL track('index_state', 'index_changed', 'everybody');
END
$tracked$;

-- What an evaluation measured: a fingerprint of each month's notes, chunks and vectors. Who writes only marks a month;
-- whoever asks counts the marked months anew (sql/queries/contents.sql).

-- Months with writes that month_contents does not show yet. Only added to by writers, under their own transaction: no
-- writer waits for another, and a rollback takes the mark along. A snapshot that shows a write shows its mark.
CREATE TABLE changed_months (
    transaction_id xid8 NOT NULL DEFAULT pg_current_xact_id(),
    -- The first day, in UTC; -infinity for what belongs to no month: the word statistics.
    month date NOT NULL,
    -- As in month_contents.
    part text NOT NULL,
    tenant_id text NOT NULL,
    PRIMARY KEY (transaction_id, tenant_id, month, part)
);

-- What is searched, by month. Rows that are not present any more stay while the latest evaluation of a configuration
-- names them: the difference tells which notes have changed since.
CREATE TABLE month_contents (
    month date NOT NULL,
    -- notes, chunks, words; of a model's vectors: chunk/e5_small, contextual/…, window/…, note/…
    part text NOT NULL,
    -- Of the two arrays.
    fingerprint text NOT NULL,
    is_present boolean NOT NULL DEFAULT TRUE,
    -- How often it was counted after being written to: what changed and changed back between two readings did change.
    revision bigint NOT NULL DEFAULT 0,
    -- Rows of the table concerned.
    row_count bigint NOT NULL,
    note_ids uuid[] NOT NULL,
    -- By the same index as note_ids; the part is all that the hashes stand for.
    note_hashes bigint[] NOT NULL,
    tenant_id text NOT NULL,
    PRIMARY KEY (tenant_id, month, part, fingerprint)
);

CREATE FUNCTION month_of(t timestamptz) RETURNS date
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN date_trunc('month', t AT TIME ZONE 'UTC')::date;

-- Marks the months of the rows that a statement changed, and the part of them that the table holds. tg_argv has the
-- part, and whether a row has its month by its own date, its note or what its vector is of. Rows whose note or chunk is
-- gone count
-- for nothing: what deleted it has marked the month. As the owner: who may write notes need not know of the marks, nor
-- of their schema.
CREATE FUNCTION mark_months() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $mark_months$
DECLARE
    part text := CASE tg_argv[0] WHEN '/' THEN 'c.kind || ''/'' || c.model' ELSE quote_literal(tg_argv[0]) END;
    changed text := CASE tg_op
        WHEN 'UPDATE' THEN '(SELECT * FROM changed UNION ALL SELECT * FROM replaced)' ELSE 'changed' END;
    source text := CASE tg_argv[1]
        WHEN 'own' THEN 'SELECT c.tenant_id, %1$I.month_of(c.created_at), p.part FROM %2$s AS c '
            'CROSS JOIN (VALUES (''notes''), (''chunks'')) AS p (part)'
        WHEN 'note' THEN 'SELECT c.tenant_id, %1$I.month_of(n.created_at), %3$s FROM %2$s AS c '
            'INNER JOIN %1$I.notes AS n ON n.id = c.note_id'
        WHEN 'vector' THEN 'SELECT c.tenant_id, %1$I.month_of(n.created_at), %3$s FROM %2$s AS c '
            'LEFT JOIN %1$I.chunks AS h ON h.id = c.chunk_id '
            'INNER JOIN %1$I.notes AS n ON n.id = coalesce(c.note_id, h.note_id)'
        ELSE 'SELECT c.tenant_id, ''-infinity''::date, %3$s FROM %2$s AS c' END;
BEGIN
    IF tg_op = 'TRUNCATE' THEN
        source := 'SELECT m.tenant_id, m.month, m.part FROM %1$I.month_contents AS m';
    END IF;
    EXECUTE format(
        'INSERT INTO %1$I.changed_months (tenant_id, month, part) SELECT DISTINCT x.tenant_id, x.month, x.part FROM ('
        || source || ') AS x (tenant_id, month, part) ON CONFLICT DO NOTHING',
        tg_table_schema, changed, part
    );
    RETURN NULL;
END
$mark_months$;

-- What a database holds of some months of tenants: of each part and month the notes, each with a hash of all that
-- search reads of it there. -infinity stands for the word statistics.
CREATE FUNCTION count_months(tenants text[], months date[]) RETURNS TABLE (
    tenant_id text, month date, part text, row_count bigint, note_ids uuid[], note_hashes bigint[]
) LANGUAGE sql STABLE AS $count_months$
    WITH wanted AS MATERIALIZED (
        SELECT DISTINCT w.tenant_id, w.month
        FROM unnest(count_months.tenants, count_months.months) AS w (tenant_id, month)
    ),

    noted AS MATERIALIZED (
        SELECT
            n.id, n.tenant_id, m.month, n.chunked_at IS NULL AS is_whole,
            hash_record_extended(
                ROW(
                    n.content_sha256, n.title, n.tenant_id, n.source, n.tags, n.metadata, n.created_at, n.expires_at
                ),
                0
            ) AS hash
        FROM (SELECT DISTINCT o.month FROM wanted AS o) AS m
        INNER JOIN notes AS n
            ON n.created_at >= m.month::timestamp AT TIME ZONE 'UTC'
            AND n.created_at <= (m.month + interval '1 month') AT TIME ZONE 'UTC'
        WHERE
            month_of(n.created_at) = m.month
            AND (n.tenant_id, m.month) IN (SELECT o.tenant_id, o.month FROM wanted AS o)
    ),

    parts AS (
        SELECT n.tenant_id, n.month, 'notes' AS part, n.id, 1 AS row_count, n.hash FROM noted AS n
        UNION ALL
        SELECT
            n.tenant_id, n.month, 'chunks', n.id, count(c.id),
            hash_record_extended(
                ROW(
                    n.is_whole,
                    array_agg(
                        hash_record_extended(
                            ROW(c.id, c.content, c.rendered, c.context, c.topics, c.start_char, c.end_char), 0
                        ) ORDER BY c.chunk_index
                    )
                ),
                0
            )
        FROM noted AS n LEFT JOIN chunks AS c ON c.note_id = n.id
        GROUP BY n.tenant_id, n.month, n.id, n.is_whole
        UNION ALL
        SELECT
            n.tenant_id, n.month, v.kind || '/' || v.model, n.id, count(*),
            hash_array_extended(
                array_agg(
                    hash_record_extended(
                        ROW(v.chunk_id, v.position, v.start_char, v.end_char, halfvec_send(v.embedding)), 0
                    ) ORDER BY v.chunk_id, v.position
                ),
                0
            )
        FROM noted AS n
        INNER JOIN chunks AS c ON c.note_id = n.id
        INNER JOIN vectors AS v ON v.chunk_id = c.id
        GROUP BY n.tenant_id, n.month, n.id, v.kind, v.model
        UNION ALL
        SELECT
            n.tenant_id, n.month, v.kind || '/' || v.model, n.id, 1,
            hash_record_extended(ROW(halfvec_send(v.embedding)), 0)
        FROM noted AS n INNER JOIN vectors AS v ON v.note_id = n.id
        UNION ALL
        SELECT
            n.tenant_id, n.month, 'mentions', n.id, count(*),
            hash_array_extended(
                array_agg(
                    hash_record_extended(ROW(m.chunk_id, m.entity_id, m.start_char, m.end_char), 0)
                    ORDER BY m.chunk_id, m.start_char, m.entity_id
                ),
                0
            )
        FROM noted AS n
        INNER JOIN chunks AS c ON c.note_id = n.id
        INNER JOIN mentions AS m ON m.chunk_id = c.id
        GROUP BY n.tenant_id, n.month, n.id
        UNION ALL
        SELECT
            n.tenant_id, n.month, 'statements', n.id, count(*),
            hash_array_extended(
                array_agg(
                    hash_record_extended(ROW(r.chunk_id, r.id, r.source_id, r.target_id, r.type, r.confidence), 0)
                    ORDER BY r.id
                ),
                0
            )
        FROM noted AS n
        INNER JOIN chunks AS c ON c.note_id = n.id
        INNER JOIN relationships AS r ON r.chunk_id = c.id
        GROUP BY n.tenant_id, n.month, n.id
    )

    SELECT
        p.tenant_id, p.month, p.part, sum(p.row_count)::bigint, array_agg(p.id ORDER BY p.id),
        array_agg(p.hash ORDER BY p.id)
    FROM parts AS p GROUP BY p.tenant_id, p.month, p.part
    UNION ALL
    SELECT
        o.tenant_id, '-infinity'::date, 'words', count(*), '{}',
        ARRAY[
            hash_record_extended(ROW(coalesce(i.chunk_count, 0), coalesce(i.average_lexeme_occurrences, 0)), 0),
            hash_record_extended(
                ROW(
                    array_agg(
                        hash_record_extended(ROW(l.lexeme, l.document_count), 0) ORDER BY l.lexeme COLLATE "C"
                    )
                ),
                0
            )
        ]
    FROM wanted AS o
    LEFT JOIN corpus_statistics AS i ON i.tenant_id = o.tenant_id
    LEFT JOIN lexeme_statistics AS l ON l.tenant_id = o.tenant_id
    WHERE o.month = '-infinity'
    GROUP BY o.tenant_id, i.chunk_count, i.average_lexeme_occurrences
$count_months$;

-- Everything of a month that search reads.
CALL track('notes', 'mark_months', '', 'own');
CALL track('chunks', 'mark_months', 'chunks', 'note');
CALL track('vectors', 'mark_months', '/', 'vector');
CALL track('lexeme_statistics', 'mark_months', 'words', 'corpus');
CALL track('corpus_statistics', 'mark_months', 'words', 'corpus');
CALL track('mentions', 'mark_months', 'mentions', 'note');
CALL track('relationships', 'mark_months', 'statements', 'note');
INSERT INTO changed_months (tenant_id, month, part) VALUES ('default', '-infinity', 'words');

-- What could not be chunked or embedded; a success removes the row.
CREATE TABLE indexing_failures (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    stage text NOT NULL CHECK (
        stage IN ('chunk', 'embed_note', 'embed_chunk', 'mentions', 'causal_statements')
    ),
    note_id uuid NOT NULL,
    chunk_id uuid,
    model text REFERENCES embedding_models (name),
    -- Code and values; {"text"} for words of no catalogue.
    error jsonb NOT NULL,
    occurred_at timestamptz NOT NULL DEFAULT now(),
    tenant_id text NOT NULL DEFAULT current_tenant(),
    UNIQUE NULLS NOT DISTINCT (stage, note_id, chunk_id, model),
    CONSTRAINT indexing_failures_note_id_fkey FOREIGN KEY (tenant_id, note_id)
    REFERENCES notes (tenant_id, id) ON UPDATE CASCADE ON DELETE CASCADE,
    CONSTRAINT indexing_failures_chunk_id_fkey FOREIGN KEY (tenant_id, chunk_id)
    REFERENCES chunks (tenant_id, id) ON UPDATE CASCADE ON DELETE CASCADE
);

-- Questions with known relevant notes. normalized_query is core.text.normalize_query of query.
CREATE TABLE golden_dataset (
    id uuid NOT NULL DEFAULT gen_random_uuid(),
    query text NOT NULL,
    -- Deferrable: a transaction may exchange the questions of two rows.
    normalized_query text NOT NULL,
    relevant_note_ids uuid[] NOT NULL CHECK (cardinality(relevant_note_ids) > 0),
    expected_answer text NOT NULL,
    category text NOT NULL CHECK (category IN ('factual', 'causal', 'temporal', 'comparative', 'multi-part')),
    difficulty smallint NOT NULL CHECK (difficulty BETWEEN 1 AND 5),
    tags text[] NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    -- Ranges of relevant notes that answer: [{"note": uuid, "start": 120, "end": 187, "text": the characters there}].
    places jsonb NOT NULL DEFAULT '[]' CHECK (jsonb_typeof(places) = 'array'),
    tenant_id text NOT NULL DEFAULT current_tenant(),
    PRIMARY KEY (tenant_id, id),
    -- Deferrable: a transaction may exchange the questions of two rows.
    UNIQUE (tenant_id, normalized_query) DEFERRABLE
);

-- What became of each question. Written by triggers of golden_dataset, and only added to.
CREATE TABLE golden_history (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- Of the tenant's whole dataset: every transaction that changes it makes the next one.
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
    origin text NOT NULL DEFAULT coalesce(current_setting('rag.golden_origin', TRUE), ''),
    -- The file that an import took a question from, with its folder; empty for what a person entered. An import deletes
    -- only what came from the same file.
    source text NOT NULL DEFAULT coalesce(current_setting('rag.golden_source', TRUE), ''),
    -- Why a question was removed or changed; without one it stays asked as it was until the next promotion.
    reason text NOT NULL DEFAULT coalesce(current_setting('rag.golden_reason', TRUE), ''),
    tenant_id text NOT NULL DEFAULT current_tenant()
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
                INSERT INTO %1$I.golden_history
                    (version, golden_id, operation, old_entry, new_entry, note_hashes, tenant_id)
                SELECT
                    coalesce(
                        (
                            SELECT h.version + CASE WHEN h.transaction_id = pg_current_xact_id() THEN 0 ELSE 1 END
                            FROM %1$I.golden_history AS h WHERE h.tenant_id = $6 ORDER BY h.id DESC LIMIT 1
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
                    ),
                    $6
            $insert$,
            tg_table_schema
        ) USING
            coalesce(new.id, old.id), lower(tg_op), to_jsonb(old), to_jsonb(new), new.relevant_note_ids,
            coalesce(new.tenant_id, old.tenant_id);
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

-- One row per evaluation of a configuration over the golden dataset.
CREATE TABLE evaluation_results (
    id uuid PRIMARY KEY,
    configuration text NOT NULL,
    config jsonb NOT NULL,
    config_hash text NOT NULL,
    golden_hash text NOT NULL,
    model text NOT NULL,
    model_digest text NOT NULL,
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
    -- Means over what was judged; null if nothing was.
    faithfulness double precision CHECK (faithfulness BETWEEN 0 AND 1),
    answer_relevance double precision CHECK (answer_relevance BETWEEN 0 AND 1),
    judge text,
    latency_p50_ms double precision NOT NULL,
    latency_p95_ms double precision NOT NULL,
    latency_p99_ms double precision NOT NULL,
    stage_latencies jsonb NOT NULL DEFAULT '{}',
    breakdown jsonb NOT NULL DEFAULT '{}',
    -- Disturbed: a question could not be asked in full, twice, so no gate uses the evaluation.
    gate text NOT NULL CHECK (gate IN ('pass', 'inconclusive', 'fail', 'disturbed')),
    created_at timestamptz NOT NULL DEFAULT now(),
    judge_model text,
    -- Of the judge's prompt or rules.
    judge_version text,
    -- What wrote the answers, with its version.
    answerer text,
    judged_queries integer,
    -- Answers that could not be made or judged; they take no part in the means.
    judge_failures integer,
    -- How the notes were chunked that it searched: one way, but for what was under way.
    chunking_hashes text[] NOT NULL DEFAULT '{}',
    -- The share of questions with a relevant note among the results that a user gets.
    served_hit_rate double precision NOT NULL CHECK (served_hit_rate BETWEEN 0 AND 1),
    latency_p95_low_ms double precision NOT NULL,
    latency_p95_high_ms double precision NOT NULL,
    -- {"2025-01-01": {"notes": fingerprint, …}, "-infinity": {what belongs to no month}}: what the configuration
    -- searched.
    contents jsonb NOT NULL,
    -- The database's clock as the evaluation began: notes expire without being written.
    measured_at timestamptz NOT NULL,
    -- The questions asked once more under the deadline of users, whose latencies are those above.
    latency_queries integer NOT NULL,
    -- Those of them that were not answered in full.
    late_queries integer NOT NULL,
    tenant_id text NOT NULL DEFAULT current_tenant(),
    -- Citations against golden places, the curve of silence, how well confidence tells; null if nothing was answered.
    answers jsonb,
    CONSTRAINT evaluation_results_tenant_key UNIQUE (tenant_id, id)
);
CREATE INDEX evaluation_results_latest_idx ON evaluation_results (tenant_id, configuration, created_at DESC, id);
-- Deleting is allowed: an evaluation that is gone promotes nothing.
CREATE TRIGGER evaluation_results_stay BEFORE UPDATE ON evaluation_results
FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- One row per question of an evaluation: significance tests and "which questions flipped?" need them.
CREATE TABLE evaluation_queries (
    evaluation_id uuid NOT NULL,
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
    -- Code and values; {"text"} for words of no catalogue.
    error jsonb,
    -- Null, with no notes, if the passages do not say.
    answer text,
    -- Of the notes that the answer comes from.
    answer_note_ids uuid[],
    faithfulness double precision CHECK (faithfulness BETWEEN 0 AND 1),
    answer_relevance double precision CHECK (answer_relevance BETWEEN 0 AND 1),
    unsupported_claims text[],
    -- Why there is no answer, or no judgement of it: code and values.
    judge_error jsonb,
    -- As the question named them, without their text; similarity says how well each was found again: null if it was
    -- not.
    places jsonb NOT NULL DEFAULT '[]',
    -- [[{note, start, end}, …], …]: what each sentence of the answer cites, without its text; empty if nothing was
    -- said, null if nothing was answered.
    citations jsonb,
    -- Null without citations.
    answer_metrics jsonb,
    tenant_id text NOT NULL DEFAULT current_tenant(),
    PRIMARY KEY (evaluation_id, golden_id),
    CONSTRAINT evaluation_queries_evaluation_id_fkey FOREIGN KEY (tenant_id, evaluation_id)
    REFERENCES evaluation_results (tenant_id, id) ON UPDATE CASCADE ON DELETE CASCADE
);
-- Answers that quote a purged note go with it; what was found stays.
CREATE TRIGGER evaluation_queries_stay BEFORE UPDATE OF evaluation_id, golden_id, relevant_note_ids, retrieved_note_ids,
first_relevant_rank, metrics, degraded
ON evaluation_queries FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- Questions leave with their evaluation alone: without them it could be compared with nothing, and so would pass.
CREATE FUNCTION refuse_partial_deletion() RETURNS trigger LANGUAGE plpgsql AS $refuse_partial_deletion$
BEGIN
    IF EXISTS (SELECT FROM evaluation_results AS e WHERE e.id = old.evaluation_id) THEN
        RAISE EXCEPTION 'questions are deleted with their evaluation alone';
    END IF;
    RETURN old;
END
$refuse_partial_deletion$;

CREATE TRIGGER evaluation_queries_kept BEFORE DELETE ON evaluation_queries
FOR EACH ROW EXECUTE FUNCTION refuse_partial_deletion();
CREATE TRIGGER evaluation_queries_not_emptied BEFORE TRUNCATE ON evaluation_queries
FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- The history of what serves; the newest row of a tenant is what serves it now.
CREATE TABLE promotions (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    configuration text NOT NULL,
    config jsonb NOT NULL,
    config_hash text NOT NULL,
    model text NOT NULL REFERENCES embedding_models (name),
    -- Null for what a rollback returned to without its ever having been evaluated.
    evaluation_id uuid,
    run_id text,
    promoted_at timestamptz NOT NULL DEFAULT now(),
    -- Of a rollback, which withdraws the row before it; null for what passed its gate.
    reason text,
    tenant_id text NOT NULL DEFAULT current_tenant(),
    CONSTRAINT promotions_evaluation_id_fkey FOREIGN KEY (tenant_id, evaluation_id)
    REFERENCES evaluation_results (tenant_id, id) ON UPDATE CASCADE ON DELETE NO ACTION
);
-- What a promotion was decided on may be forgotten, not what it says.
CREATE TRIGGER promotions_stay BEFORE UPDATE OF configuration, config, config_hash, model, reason, tenant_id
ON promotions FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- A row with a reason is a rollback by a person, which no gate judges.
CREATE FUNCTION check_promotion() RETURNS trigger LANGUAGE plpgsql AS $check_promotion$
BEGIN
    IF new.reason IS NULL AND NOT EXISTS (
        SELECT FROM evaluation_results AS e
        WHERE
            e.id = new.evaluation_id AND e.tenant_id = new.tenant_id AND e.configuration = new.configuration
            AND e.config_hash = new.config_hash AND e.model = new.model AND new.config @> e.config
            AND e.degraded_queries = 0 AND e.gate <> 'disturbed'
    ) THEN
        RAISE EXCEPTION 'promotion of % names no undisturbed evaluation of this configuration', new.configuration;
    END IF;
    RETURN new;
END
$check_promotion$;

CREATE TRIGGER promotions_measured BEFORE INSERT ON promotions
FOR EACH ROW EXECUTE FUNCTION check_promotion();

-- What becomes of a model, derived: as embedding_models.state it reads like a column.
CREATE FUNCTION state(m embedding_models) RETURNS text
LANGUAGE sql STABLE
RETURN CASE
    WHEN m.retired_at IS NOT NULL THEN 'retired'
    WHEN m.name IN (SELECT DISTINCT ON (p.tenant_id) p.model FROM promotions AS p ORDER BY p.tenant_id, p.id DESC)
        THEN 'serving'
    ELSE 'building'
END;

-- Whether the migration may go on, and why not: the newest row says. Only added to.
CREATE TABLE migration_holds (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- stopped: what is migrated stays; rolled_back: the chunks are dropped; resumed: neither holds any more.
    kind text NOT NULL CHECK (kind IN ('stopped', 'rolled_back', 'resumed')),
    reason text NOT NULL,
    run_id text,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- The quality after every batch of a migration, and whether the next one may start. A migration is of a model and a way
-- of chunking: another way of either starts with an open gate, and with the baseline of its own time.
CREATE TABLE migration_batches (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    model text NOT NULL,
    chunking_hash text NOT NULL,
    run_id text NOT NULL,
    -- As YYYY-MM; none when quality was only measured again.
    months text[] NOT NULL,
    finished_at timestamptz NOT NULL,
    config_hash text NOT NULL,
    golden_hash text NOT NULL,
    total_queries integer NOT NULL,
    hit_rate_at_10 double precision NOT NULL,
    mrr double precision NOT NULL,
    latency_p95_ms double precision NOT NULL,
    -- The golden questions with and without a relevant note among the first ten.
    found uuid[] NOT NULL,
    missed uuid[] NOT NULL,
    baseline_id uuid,
    -- Of the questions in common; null if there are none.
    baseline_hit_rate_at_10 double precision,
    p_value double precision,
    -- What this look spent of the level of all looks.
    level double precision NOT NULL CHECK (level >= 0),
    gate text NOT NULL CHECK (gate IN ('open', 'closed')),
    -- Code and values; {"text"} for words of no catalogue.
    reason jsonb NOT NULL,
    -- Somebody let the next batch start although this one closed the gate.
    override_reason text,
    overridden_at timestamptz,
    override_run_id text,
    -- If there are any, the quality after the batch is unknown.
    degraded_queries integer NOT NULL DEFAULT 0,
    -- Whose questions were asked.
    tenant_id text NOT NULL DEFAULT current_tenant(),
    -- Prevents two looks of one run: a repeated check replaces its row.
    UNIQUE (model, run_id),
    CONSTRAINT migration_batches_baseline_id_fkey FOREIGN KEY (tenant_id, baseline_id)
    REFERENCES evaluation_results (tenant_id, id) ON UPDATE CASCADE ON DELETE SET NULL (baseline_id)
);
CREATE INDEX migration_batches_latest_idx ON migration_batches (model, chunking_hash, finished_at DESC, id DESC);

-- Deleted notes: a source that still has one with the same content does not bring it back.
CREATE TABLE tombstones (
    note_id uuid NOT NULL,
    tenant_id text NOT NULL,
    source text NOT NULL,
    -- Null for a note that came from no source; nothing brings it back.
    external_id text,
    content_sha256 bytea NOT NULL,
    -- purged: it expired; deleted: a person deleted it; absent: its file was gone.
    kind text NOT NULL CHECK (kind IN ('purged', 'deleted', 'absent')),
    -- The person's reason; may be empty.
    reason text NOT NULL DEFAULT '',
    deleted_at timestamptz NOT NULL DEFAULT now(),
    -- Of the note; a deleted note expires too.
    expires_at timestamptz,
    -- The row of notes, for restoring it. Null for a purged note: of that nothing is kept.
    note jsonb,
    PRIMARY KEY (note_id, content_sha256),
    CONSTRAINT tombstones_note_check CHECK (kind <> 'purged' OR note IS NULL)
);
-- Prevents a scan of all tombstones for those of the records of a source.
CREATE INDEX tombstones_record_idx ON tombstones (tenant_id, source, external_id, content_sha256);
-- Prevents a scan of all tombstones for the few whose note expires.
CREATE INDEX tombstones_expiry_idx ON tombstones (expires_at) WHERE note IS NOT NULL AND expires_at IS NOT NULL;
-- Prevents a scan of all tombstones for the few whose note is still kept.
CREATE INDEX tombstones_kept_idx ON tombstones (deleted_at) WHERE note IS NOT NULL;

-- Puts a kept row back into notes; keys that are no column, and columns that the table has got since, do not matter.
CREATE FUNCTION restore_note(kept jsonb) RETURNS void LANGUAGE plpgsql AS $restore_note$
DECLARE
    columns text := (
        SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) FROM pg_attribute AS a
        WHERE
            a.attrelid = 'notes'::regclass AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
            AND kept ? a.attname
    );
BEGIN
    EXECUTE format('INSERT INTO notes (%1$s) SELECT %1$s FROM jsonb_populate_record(NULL::notes, $1)', columns)
    USING kept;
END
$restore_note$;

-- How sure the responses of a configuration are: measured on golden questions, one row by configuration.
CREATE TABLE calibrations (
    tenant_id text NOT NULL DEFAULT current_tenant(),
    config_hash text NOT NULL,
    -- The models of the claims and their bands.
    calibration jsonb NOT NULL,
    -- What was searched, by month and part, as in evaluation_results: it stands only for that.
    contents jsonb NOT NULL,
    measured_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, config_hash)
);

-- Records of a source that could not be read, as its last reading found them: so that they can be shown after the run.
CREATE TABLE rejected_records (
    tenant_id text NOT NULL DEFAULT current_tenant(),
    source text NOT NULL,
    -- The folder or file that was read.
    root text NOT NULL,
    -- Its order in the reading.
    position integer NOT NULL CHECK (position >= 0),
    -- File, or file and line.
    location text NOT NULL,
    -- The code of the message and its values.
    reason jsonb NOT NULL,
    rejected_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, source, root, position)
);

-- Keys of the HTTP API. A key names the tenant that it speaks for, so it is looked up without one.
CREATE TABLE api_keys (
    -- The part of the key that may be shown.
    id text PRIMARY KEY,
    tenant_id text NOT NULL DEFAULT current_tenant(),
    name text NOT NULL,
    role text NOT NULL CHECK (role IN ('owner', 'writer', 'reader', 'operator')),
    -- SHA-256 of the part of the key that only its holder has.
    secret_sha256 bytea NOT NULL CHECK (length(secret_sha256) = 32),
    created_at timestamptz NOT NULL DEFAULT now(),
    revoked_at timestamptz
);

-- Answers as they were given, and what their readers said of them.
CREATE TABLE answers (
    tenant_id text NOT NULL DEFAULT current_tenant(),
    id uuid NOT NULL,
    asked_at timestamptz NOT NULL,
    -- Null if texts are not kept, as are the two below.
    question text,
    -- What was searched instead of the question, in a conversation.
    searched text,
    -- The texts of the sentences, in reading order. Also null once a note that the answer was made from is gone.
    sentences text[],
    -- Conditions that the question named itself.
    filters jsonb NOT NULL DEFAULT '{}',
    language text NOT NULL,
    intent text,
    configuration text NOT NULL,
    config_hash text,
    embedding_model text NOT NULL,
    answerer text NOT NULL,
    language_model text,
    prompt_tokens integer,
    completion_tokens integer,
    -- answered; missed: nothing was found or said; withheld: something was found, but would probably be false;
    -- failed: nothing could be searched, or the answer was cut off.
    outcome text NOT NULL CHECK (outcome IN ('answered', 'missed', 'withheld', 'failed')),
    confidence jsonb,
    silence jsonb,
    -- Milliseconds by stage.
    stages jsonb NOT NULL,
    degraded text[] NOT NULL,
    -- [{number, sentence, noteId, start, end, contentSha256}]: ranges of notes, never their text.
    citations jsonb NOT NULL,
    -- [{noteId, chunkId, score}], best first.
    passages jsonb NOT NULL,
    -- The notes of passages and citations.
    note_ids uuid[] NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
-- Prevents a scan of all answers for those of a month, and for those too old to keep.
CREATE INDEX answers_asked_idx ON answers (tenant_id, asked_at);
-- Prevents a scan of all answers whenever a note is deleted.
CREATE INDEX answers_notes_idx ON answers USING gin (note_ids);

-- A reader's verdict on an answer, or on one of its citations: the last one counts.
CREATE TABLE feedback (
    tenant_id text NOT NULL DEFAULT current_tenant(),
    answer_id uuid NOT NULL,
    -- The number of a citation; 0 for the answer as a whole.
    citation integer NOT NULL CHECK (citation >= 0),
    verdict text NOT NULL CHECK (verdict IN ('up', 'down')),
    comment text,
    given_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, answer_id, citation),
    FOREIGN KEY (tenant_id, answer_id) REFERENCES answers (tenant_id, id) ON DELETE CASCADE
);

-- What quotes a note does not outlive it. An answer is written after it was given: its notes may be gone by then, and
-- the locks keep them from being deleted before the answer is there to be found.
CREATE FUNCTION answer_written() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $answer_written$
DECLARE
    present integer;
BEGIN
    IF new.sentences IS NULL AND new.searched IS NULL THEN
        RETURN new;
    END IF;
    EXECUTE format(
        'SELECT count(*) FROM (SELECT FROM %I.notes AS n WHERE n.id = ANY($1) ORDER BY n.id FOR KEY SHARE) AS k',
        tg_table_schema
    ) INTO present USING new.note_ids;
    IF present < cardinality(new.note_ids) THEN
        new.sentences := NULL;
        new.searched := NULL;
    END IF;
    RETURN new;
END
$answer_written$;
CREATE TRIGGER answers_written BEFORE INSERT ON answers FOR EACH ROW EXECUTE FUNCTION answer_written();

-- Comments may quote a note too.
CREATE FUNCTION forget_answers() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $forget_answers$
BEGIN
    EXECUTE format(
        $forget$
            WITH gone AS (SELECT array_agg(o.id) AS ids FROM old_notes AS o),
            forgotten AS (
                UPDATE %1$I.answers AS a SET sentences = NULL, searched = NULL FROM gone AS g
                WHERE a.note_ids && g.ids RETURNING a.tenant_id, a.id
            )
            UPDATE %1$I.feedback AS f SET comment = NULL FROM forgotten AS a
            WHERE f.tenant_id = a.tenant_id AND f.answer_id = a.id AND f.comment IS NOT NULL
        $forget$,
        tg_table_schema
    );
    RETURN NULL;
END
$forget_answers$;
CREATE TRIGGER notes_answers_by_delete AFTER DELETE ON notes REFERENCING OLD TABLE AS old_notes
FOR EACH STATEMENT EXECUTE FUNCTION forget_answers();

-- Evaluations that clients of the HTTP API asked for; a job works them off.
CREATE TABLE evaluation_requests (
    tenant_id text NOT NULL DEFAULT current_tenant(),
    id uuid NOT NULL DEFAULT gen_random_uuid(),
    configuration text NOT NULL,
    -- Who asked: the id of an API key; empty for this machine without a key.
    requested_by text NOT NULL DEFAULT '',
    state text NOT NULL DEFAULT 'queued' CHECK (state IN ('queued', 'running', 'done', 'failed')),
    requested_at timestamptz NOT NULL DEFAULT now(),
    started_at timestamptz,
    finished_at timestamptz,
    -- How often it was begun; a run that was killed is followed by another.
    attempts integer NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    -- What was measured; null until then. It is a copy: the evaluation may be deleted.
    evaluation_id uuid,
    -- Why it failed, as core.texts stores it.
    error jsonb,
    PRIMARY KEY (tenant_id, id)
);

-- Without it each tick of the sensor reads all requests that ever were.
CREATE INDEX evaluation_requests_open_idx ON evaluation_requests (requested_at, id)
WHERE state IN ('queued', 'running');

-- What a file is called in a question: the last part of its address, without the ending of its kind, in small letters
-- without accents and marks.
CREATE FUNCTION file_key(t text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN btrim(
    regexp_replace(
        fold_accents(lower(regexp_replace(regexp_replace(t, '^.*/', ''), '\.[[:alnum:]]{1,5}$', ''))),
        '[^[:alnum:]]+', ' ', 'g'
    )
);
-- Prevent a scan of all documents and notes for a file that a question names.
CREATE INDEX documents_file_key_idx ON documents (tenant_id, file_key(title));
CREATE INDEX document_addresses_file_key_idx ON document_addresses (tenant_id, file_key(address));
CREATE INDEX notes_file_key_idx ON notes (tenant_id, file_key(external_id)) WHERE document_id IS NULL;

-- Isolates the tables of these names that have tenants, with their partitions. The roles are made if who migrates may:
-- rag_reader and rag_writer never log in, a transaction takes one of them on; rag_api is both, and the login of the
-- HTTP API once it has a password. GIN under row-level security needs operators that are known not to leak: only a
-- superuser can say so (docs/tenants.md).
CREATE PROCEDURE isolate_tenants(names text[]) LANGUAGE plpgsql AS $isolate_tenants$
DECLARE
    may_create boolean := (
        SELECT r.rolcreaterole OR r.rolsuper FROM pg_roles AS r WHERE r.rolname = current_user
    );
    role_name text;
    nobodys text;
    isolated regclass;
BEGIN
    FOREACH role_name IN ARRAY ARRAY['rag_reader', 'rag_writer', 'rag_api'] LOOP
        IF may_create AND NOT EXISTS (SELECT FROM pg_roles AS r WHERE r.rolname = role_name) THEN
            BEGIN
                EXECUTE format('CREATE ROLE %I NOLOGIN', role_name);
                EXECUTE format('GRANT %I TO CURRENT_USER', role_name);
            EXCEPTION
                -- Another database of this server is migrated at the same moment.
                WHEN duplicate_object OR unique_violation THEN NULL;
            END;
        END IF;
    END LOOP;
    FOR isolated IN
        SELECT c.oid::regclass FROM pg_class AS c
        INNER JOIN pg_class AS named ON named.oid = coalesce(pg_partition_root(c.oid), c.oid)
        INNER JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = 'tenant_id' AND NOT a.attisdropped
        WHERE
            c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p')
            AND named.relname = ANY(isolate_tenants.names)
        ORDER BY c.oid
    LOOP
        CALL isolate_table(isolated);
    END LOOP;
    IF EXISTS (SELECT FROM pg_roles AS r WHERE r.rolname = 'rag_reader') THEN
        EXECUTE format('GRANT USAGE ON SCHEMA %I TO rag_reader, rag_writer', current_schema());
        FOREACH nobodys IN ARRAY ARRAY[
            'embedding_models', 'index_state', 'migration_holds', 'graph_parts', '_yoyo_migration'
        ] LOOP
            IF to_regclass(nobodys) IS NOT NULL THEN
                EXECUTE format('GRANT SELECT ON %I TO rag_reader, rag_writer', nobodys);
            END IF;
        END LOOP;
    END IF;
    IF EXISTS (SELECT FROM pg_roles AS r WHERE r.rolname = 'rag_api') THEN
        IF may_create AND NOT pg_has_role('rag_api', 'rag_writer', 'MEMBER') THEN
            BEGIN
                GRANT rag_reader, rag_writer TO rag_api;
            EXCEPTION
                -- The roles are somebody else's, who has to say so.
                WHEN insufficient_privilege THEN NULL;
            END;
        END IF;
        -- A key is looked up before its tenant is known. An evaluation records what the months of its tenant hold.
        GRANT SELECT ON api_keys TO rag_api;
        GRANT SELECT, INSERT, UPDATE, DELETE ON month_contents, changed_months TO rag_api;
        DROP POLICY IF EXISTS presented ON api_keys;
        CREATE POLICY presented ON api_keys FOR SELECT TO rag_api USING (TRUE);
        GRANT EXECUTE ON FUNCTION count_pending_notes TO rag_api;
    END IF;
    IF
        (SELECT r.rolsuper FROM pg_roles AS r WHERE r.rolname = current_user)
        AND NOT (SELECT p.proleakproof FROM pg_proc AS p WHERE p.oid = 'ts_match_vq(tsvector,tsquery)'::regprocedure)
    THEN
        ALTER FUNCTION pg_catalog.ts_match_vq(tsvector, tsquery) LEAKPROOF;
        ALTER FUNCTION pg_catalog.arraycontains(anyarray, anyarray) LEAKPROOF;
        ALTER FUNCTION pg_catalog.jsonb_contains(jsonb, jsonb) LEAKPROOF;
    END IF;
END
$isolate_tenants$;

-- Under row-level security an index serves an operator only if that is known not to leak, which a superuser alone can
-- declare. On a server without one, who searches sees the tables that have GIN indexes through views that show a tenant
-- its rows, with the rights of their owner: `notes` is then the view of this name.

-- The schema of these views.
CREATE FUNCTION tenant_views() RETURNS text LANGUAGE sql STABLE RETURN current_schema() || '_of_tenant';

-- A migration that changes a table drops the views first. Until they are back, who searches sees the tables themselves,
-- under row-level security: the same rows, more slowly.
CREATE PROCEDURE hide_tenant_views() LANGUAGE plpgsql AS $hide_tenant_views$
BEGIN
    IF to_regnamespace(quote_ident(tenant_views())) IS NOT NULL THEN
        EXECUTE format('DROP SCHEMA %I CASCADE', tenant_views());
    END IF;
END
$hide_tenant_views$;

-- Makes the views of the tables of these names where they are needed, and drops them where not. Idempotent.
CREATE PROCEDURE show_tenants_their_rows(names text[]) LANGUAGE plpgsql AS $show_tenants_their_rows$
DECLARE
    views text := tenant_views();
    shown regclass;
BEGIN
    IF (SELECT p.proleakproof FROM pg_proc AS p WHERE p.oid = 'ts_match_vq(tsvector,tsquery)'::regprocedure) THEN
        CALL hide_tenant_views();
        RETURN;
    END IF;
    IF
        NOT EXISTS (SELECT FROM pg_roles AS r WHERE r.rolname = 'rag_reader')
        OR NOT has_database_privilege(current_database(), 'CREATE') AND to_regnamespace(quote_ident(views)) IS NULL
    THEN
        RETURN;
    END IF;
    EXECUTE format('CREATE SCHEMA IF NOT EXISTS %I', views);
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO rag_reader', views);
    FOR shown IN
        SELECT c.oid::regclass FROM pg_class AS c
        INNER JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = 'tenant_id' AND NOT a.attisdropped
        WHERE
            c.relnamespace = current_schema()::regnamespace AND c.relname = ANY(show_tenants_their_rows.names)
            AND to_regclass(format('%I.%I', views, c.relname)) IS NULL
            AND EXISTS (
                SELECT FROM pg_index AS i
                INNER JOIN pg_class AS x ON x.oid = i.indexrelid
                INNER JOIN pg_am AS m ON m.oid = x.relam
                WHERE i.indrelid = c.oid AND m.amname = 'gin'
            )
    LOOP
        EXECUTE format(
            'CREATE VIEW %1$I.%2$I AS SELECT * FROM %2$I WHERE tenant_id = current_setting(''rag.tenant'', TRUE)',
            views, shown::text
        );
        EXECUTE format('GRANT SELECT ON %I.%I TO rag_reader', views, shown::text);
    END LOOP;
END
$show_tenants_their_rows$;

-- Whether anybody else has notes here: then no plan suits all, and the few of a tenant are searched exactly. As the
-- owner, and only that: who asks learns nothing of whom or how many.
CREATE FUNCTION has_other_tenants(tenant text) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER
RETURN (
    EXISTS (SELECT FROM notes AS n WHERE n.tenant_id < $1)
    OR EXISTS (SELECT FROM notes AS n WHERE n.tenant_id > $1)
);

-- How many chunked notes of all tenants wait for vectors, by model: as the owner, for operators.
CREATE FUNCTION count_pending_notes() RETURNS TABLE (model text, notes bigint)
LANGUAGE sql STABLE SECURITY DEFINER
BEGIN ATOMIC
    SELECT p.model, count(*) AS notes FROM pending_vectors AS p
    INNER JOIN notes AS n ON n.id = p.note_id AND n.chunked_at IS NOT NULL
    GROUP BY p.model ORDER BY p.model;
END;
REVOKE EXECUTE ON FUNCTION count_pending_notes FROM public;

-- Tenants that a person created, and how a tenant leaves. Null where nothing is said of what it may have.
CREATE TABLE tenants (
    tenant_id text PRIMARY KEY CHECK (tenant_id <> ''),
    created_at timestamptz NOT NULL DEFAULT now(),
    -- The lifetime of uploads that state none.
    upload_hours integer CHECK (upload_hours > 0),
    -- Whether it has vector indexes of its own: in those of all tenants too few of its vectors are found.
    has_own_indexes boolean NOT NULL DEFAULT FALSE
);

-- Deletes the rows of a tenant from the tables of these names, and says of each table how many there were and how many
-- there are now: more than none only if somebody wrote meanwhile.
CREATE FUNCTION delete_tenant(leaving text, names text[])
RETURNS TABLE (relation text, deleted bigint, remaining bigint) LANGUAGE plpgsql AS $delete_tenant$
DECLARE
    held text[] := (
        SELECT array_agg(
            c.relname::text
            -- A promotion holds its evaluation. What deleting other rows writes goes last.
            ORDER BY
                c.relname <> 'promotions',
                c.relname IN (
                    'golden_history', 'changed_months', 'month_contents', 'index_changes', 'chunk_word_changes',
                    'evaluation_queries'
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
