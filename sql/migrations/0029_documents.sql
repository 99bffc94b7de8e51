-- Documents are read: what a reader made of a file waits until it replaces the older pages, and each reading leaves a
-- record of what it changed. Deleted documents do not come back.

-- Of the file last found there, read or not: the same file is not read again.
ALTER TABLE document_addresses
ADD COLUMN file_sha256 bytea,
-- Since when the source lacks it; its document stays.
ADD COLUMN missing_since timestamptz;
-- Prevents a scan of all addresses for the document of a file.
CREATE INDEX document_addresses_file_idx ON document_addresses (tenant_id, file_sha256);

ALTER TABLE document_pages
-- Headings, paragraphs, lists and tables: [[kind, start, end, level, [[start, end, box or cells], …]], …].
ADD COLUMN blocks jsonb NOT NULL DEFAULT '[]',
-- Codes of messages about the page, as that it needs OCR.
ADD COLUMN notices text[] NOT NULL DEFAULT '{}',
-- Characters that nobody sees on the page, by reason: {"hidden": 12}.
ADD COLUMN left_out jsonb NOT NULL DEFAULT '{}',
-- What the file says about itself, on its first page: {"title": "Plan"}.
ADD COLUMN metadata jsonb NOT NULL DEFAULT '{}',
-- What a person decided about a page of low quality.
ADD COLUMN review text CHECK (review IN ('accepted', 'dropped'));

-- Every reading of a file by a reader, good or not.
CREATE TABLE document_extractions (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    document_id uuid NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
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
    extracted_at timestamptz NOT NULL DEFAULT now()
);
-- What a document's readings are looked up by, the latest first.
CREATE INDEX document_extractions_document_idx ON document_extractions (document_id, id DESC);

-- Pages of readings that have not replaced others yet.
CREATE TABLE extracted_pages (
    extraction_id bigint NOT NULL REFERENCES document_extractions (id) ON DELETE CASCADE,
    page_number integer NOT NULL CHECK (page_number >= 1),
    -- A page or the failure of one, as core.page_json writes them, without the words.
    content jsonb NOT NULL,
    words bytea,
    PRIMARY KEY (extraction_id, page_number)
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
