-- Documents, their pages, and the way from a note's characters back to page and box, or to sheet and cells. Golden
-- questions may name places; evaluations keep metrics per passage beside those per note.

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
    updated_at timestamptz NOT NULL DEFAULT now()
);
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
    document_id uuid NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
    etag text,
    last_modified text,
    checked_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, source, address)
);
-- What a document's addresses are read and deleted by.
CREATE INDEX document_addresses_document_idx ON document_addresses (document_id);

-- What a reader made of a page, or of a sheet of a workbook.
CREATE TABLE document_pages (
    document_id uuid NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
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
    -- Words with their boxes, compressed by the reader; null if there are none.
    words bytea,
    -- Under 0.3 the page stays out of search.
    quality double precision CHECK (quality BETWEEN 0 AND 1),
    has_images boolean NOT NULL DEFAULT FALSE,
    has_tables boolean NOT NULL DEFAULT FALSE,
    has_multiple_columns boolean NOT NULL DEFAULT FALSE,
    word_count integer NOT NULL DEFAULT 0 CHECK (word_count >= 0),
    character_count integer GENERATED ALWAYS AS (char_length(text)) STORED,
    extracted_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (document_id, page_number)
);

-- What could not be done; a success removes the row. The sentence is made from code and details where it is shown.
CREATE TABLE document_failures (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    document_id uuid NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
    -- Null if the whole document failed.
    page_number integer CHECK (page_number >= 1),
    stage text NOT NULL CHECK (stage IN ('downloading', 'extracting', 'chunking', 'embedding')),
    code text NOT NULL,
    details jsonb NOT NULL DEFAULT '{}',
    occurred_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE NULLS NOT DISTINCT (document_id, page_number, stage)
);

-- A note that is a section of a document: which one, and under which headings, outermost first.
ALTER TABLE notes
ADD COLUMN document_id uuid REFERENCES documents (id) ON DELETE CASCADE,
ADD COLUMN section_index integer CHECK (section_index >= 0),
ADD COLUMN heading_path text[] NOT NULL DEFAULT '{}',
ADD CONSTRAINT notes_section_check CHECK ((document_id IS NULL) = (section_index IS NULL));
-- What a document's notes are read and deleted by.
CREATE UNIQUE INDEX notes_document_idx ON notes (document_id, section_index) WHERE document_id IS NOT NULL;

-- Runs of a note's characters that stand in a page: the same characters, from page_start on. White space that joins two
-- runs belongs to none.
CREATE TABLE note_spans (
    note_id uuid NOT NULL REFERENCES notes (id) ON DELETE CASCADE,
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
    PRIMARY KEY (note_id, start_char),
    FOREIGN KEY (document_id, page_number) REFERENCES document_pages (document_id, page_number) ON DELETE CASCADE,
    CONSTRAINT note_spans_bounds_check CHECK (end_char > start_char)
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

-- A result shows the places of its passage: these tables are part of what is searched.
DO $triggers$
DECLARE
    tracked text;
BEGIN
    FOREACH tracked IN ARRAY ARRAY['document_pages', 'note_spans'] LOOP
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

-- Ranges of relevant notes that answer: [{"note": uuid, "start": 120, "end": 187, "text": the characters there}].
ALTER TABLE golden_dataset
ADD COLUMN places jsonb NOT NULL DEFAULT '[]' CHECK (jsonb_typeof(places) = 'array');

-- The metrics per passage, over the questions that name places; null if there is none.
ALTER TABLE evaluation_results
ADD COLUMN passage_queries integer NOT NULL DEFAULT 0,
ADD COLUMN passage_hit_rate_at_1 double precision,
ADD COLUMN passage_hit_rate_at_3 double precision,
ADD COLUMN passage_hit_rate_at_5 double precision,
ADD COLUMN passage_hit_rate_at_10 double precision,
ADD COLUMN passage_mrr double precision,
ADD COLUMN passage_precision_at_10 double precision,
ADD COLUMN passage_recall_at_10 double precision,
ADD COLUMN passage_ndcg_at_10 double precision;

ALTER TABLE evaluation_queries
-- As the question named them, without their text; similarity says how well each was found again: null if it was not.
ADD COLUMN places jsonb NOT NULL DEFAULT '[]',
ADD COLUMN first_relevant_passage_rank integer CHECK (first_relevant_passage_rank >= 1),
-- Null for a question that is not judged by passages.
ADD COLUMN passage_metrics jsonb;
