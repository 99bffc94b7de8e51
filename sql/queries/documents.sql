-- name: insert_document$
-- params:  tenant text, source text, title text, media_type text, metadata jsonb, file_sha256 bytea, page_count int,
--          arrived_at timestamptz
-- returns: id uuid
INSERT INTO documents (tenant_id, source, title, media_type, metadata, file_sha256, page_count, arrived_at)
VALUES (:tenant, :source, :title, :media_type, :metadata, :file_sha256, :page_count, :arrived_at)
RETURNING id;

-- name: insert_document_address!
-- params:  tenant text, source text, address text, document_id uuid
INSERT INTO document_addresses (tenant_id, source, address, document_id)
VALUES (:tenant, :source, :address, :document_id);

-- name: upsert_document_page*!
-- Insert or update a page; an update keeps the spans that refer to it.
-- params:  document_id uuid and the columns of document_pages
INSERT INTO document_pages AS p (
    document_id, page_number, sheet, reader, reader_hash, route, text, removed, words, quality, has_images, has_tables,
    has_multiple_columns, word_count
)
VALUES (
    :document_id, :page_number, :sheet, :reader, :reader_hash, :route, :text, :removed, :words, :quality, :has_images,
    :has_tables, :has_multiple_columns, :word_count
)
ON CONFLICT (document_id, page_number) DO UPDATE SET
    sheet = excluded.sheet, reader = excluded.reader, reader_hash = excluded.reader_hash, route = excluded.route,
    text = excluded.text, removed = excluded.removed, words = excluded.words, quality = excluded.quality,
    has_images = excluded.has_images, has_tables = excluded.has_tables,
    has_multiple_columns = excluded.has_multiple_columns, word_count = excluded.word_count, extracted_at = now();

-- name: upsert_document_failure*!
-- params:  document_id uuid, page_number int or null, stage text, code text, details jsonb
INSERT INTO document_failures (document_id, page_number, stage, code, details)
VALUES (:document_id, :page_number, :stage, :code, :details)
ON CONFLICT (document_id, page_number, stage) DO UPDATE SET
    code = excluded.code, details = excluded.details, occurred_at = now();

-- name: link_section*!
-- Store which section of a document a note is.
-- params:  note_id uuid, document_id uuid, section_index int, heading_path text[]
UPDATE notes SET document_id = :document_id, section_index = :section_index, heading_path = :heading_path
WHERE id = :note_id;

-- name: delete_note_spans!
-- params:  note_ids uuid[]
-- index:   note_spans_pkey
DELETE FROM note_spans AS s WHERE s.note_id = ANY(:note_ids);

-- name: insert_note_span*!
-- params:  note_id uuid, start_char int, end_char int, document_id uuid, page_number int, page_start int,
--          box real[] or null, cells text or null
INSERT INTO note_spans (note_id, start_char, end_char, document_id, page_number, page_start, box, cells)
VALUES (:note_id, :start_char, :end_char, :document_id, :page_number, :page_start, :box, :cells);

-- name: fetch_spans
-- The spans that overlap the given ranges of notes, in order.
-- params:  note_ids uuid[], starts int[], ends int[] (one range for each position)
-- returns: number int (of the range, from 1), the columns of note_spans, sheet text or null
-- index:   note_spans_pkey
SELECT f.number, s.start_char, s.end_char, s.page_number, s.page_start, s.box, s.cells, p.sheet
FROM unnest(:note_ids::uuid[], :starts::integer[], :ends::integer[]) WITH ORDINALITY AS f (note_id, first, last, number)
INNER JOIN note_spans AS s ON s.note_id = f.note_id AND s.start_char < f.last AND s.end_char > f.first
INNER JOIN document_pages AS p ON p.document_id = s.document_id AND p.page_number = s.page_number
ORDER BY f.number, s.start_char;

-- name: delete_document!
-- Delete a document with its pages, addresses, failures and notes, and everything derived from the notes.
-- params:  document_id uuid
DELETE FROM documents AS d WHERE d.id = :document_id;
