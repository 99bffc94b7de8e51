-- name: documents_to_extract
-- Documents of a month whose file the present readers have not read yet, newest first. A failed reading is only
-- repeated under other limits.
-- params:  tenant text, first timestamptz, after_last timestamptz, readers jsonb ({media type: hash of its reader}),
--          limits jsonb
-- returns: id uuid
-- index:   documents_arrival_idx, document_extractions_document_idx
SELECT d.id FROM documents AS d
WHERE
    d.tenant_id = :tenant AND d.arrived_at >= :first AND d.arrived_at < :after_last
    AND :readers::jsonb ? d.media_type
    AND NOT EXISTS (
        SELECT FROM document_extractions AS e
        WHERE
            e.document_id = d.id AND e.file_sha256 = d.file_sha256
            AND e.reader_hash = :readers::jsonb ->> d.media_type
            AND (e.state <> 'failed' OR e.limits = :limits::jsonb)
    )
ORDER BY d.arrived_at DESC, d.id;

-- name: claim_extraction$
-- Claim the reading of a document until commit. An advisory lock: the document can still be found and deleted.
-- params:  document_id uuid
-- returns: bool
SELECT pg_try_advisory_xact_lock(hashtextextended('extraction ' || :document_id::uuid::text, 0));

-- name: insert_extraction$
-- params:  document_id uuid, file_sha256 bytea, reader text, reader_hash text, limits jsonb
-- returns: bigint: its id
INSERT INTO document_extractions (document_id, file_sha256, reader, reader_hash, state, limits, tenant_id)
SELECT d.id, :file_sha256, :reader, :reader_hash, 'failed' AS state, :limits, d.tenant_id
FROM documents AS d WHERE d.id = :document_id
RETURNING document_extractions.id;

-- name: insert_extracted_pages*!
-- params:  extraction_id bigint, page_number int, content jsonb
INSERT INTO extracted_pages (extraction_id, page_number, content, tenant_id)
SELECT e.id, :page_number, :content, e.tenant_id
FROM document_extractions AS e WHERE e.id = :extraction_id;

-- name: drop_waiting_extractions!
-- Drop the readings that still wait, because a later one replaces them.
-- params:  document_id uuid, extraction_id bigint (the later one)
WITH dropped AS (
    UPDATE document_extractions AS e SET state = 'dropped'
    WHERE e.document_id = :document_id AND e.id < :extraction_id AND e.state IN ('read', 'held')
    RETURNING e.id
)

DELETE FROM extracted_pages AS p USING dropped AS d WHERE p.extraction_id = d.id;

-- name: finish_extraction!
-- params:  extraction_id bigint, state text, page_count int, word_count int, diff jsonb or null, failure jsonb or null,
--          seconds double precision
UPDATE document_extractions SET
    state = :state, page_count = :page_count, word_count = :word_count, diff = :diff, failure = :failure,
    seconds = :seconds
WHERE id = :extraction_id;

-- name: set_extraction_state!
-- params:  extraction_id bigint, state text
UPDATE document_extractions SET state = :state WHERE id = :extraction_id;

-- name: delete_extracted_pages!
-- params:  extraction_id bigint
DELETE FROM extracted_pages AS p WHERE p.extraction_id = :extraction_id;

-- name: documents_to_apply
-- Documents of a month with a reading that waits to replace their pages, oldest first, so that if two have the same
-- text, the first to arrive stays.
-- params:  tenant text, first timestamptz, after_last timestamptz
-- returns: id uuid
-- index:   documents_arrival_idx
SELECT d.id FROM documents AS d
WHERE
    d.tenant_id = :tenant AND d.arrived_at >= :first AND d.arrived_at < :after_last
    AND EXISTS (SELECT FROM document_extractions AS e WHERE e.document_id = d.id AND e.state = 'read')
ORDER BY d.arrived_at, d.id;

-- name: list_extracted_pages
-- params:  extraction_id bigint
-- returns: content jsonb
-- index:   extracted_pages_pkey
SELECT p.content FROM extracted_pages AS p WHERE p.extraction_id = :extraction_id ORDER BY p.page_number;

-- name: list_extractions
-- The readings of a document, latest first.
-- params:  document_id uuid
-- returns: the columns of document_extractions
-- index:   document_extractions_document_idx
SELECT e.* FROM document_extractions AS e WHERE e.document_id = :document_id ORDER BY e.id DESC;

-- name: held_extractions
-- Readings that wait for a person.
-- params:  tenant text, first timestamptz, after_last timestamptz
-- returns: document_id uuid, title text, diff jsonb, extracted_at timestamptz
SELECT e.document_id, d.title, e.diff, e.extracted_at FROM document_extractions AS e
INNER JOIN documents AS d ON d.id = e.document_id
WHERE
    e.state = 'held' AND d.tenant_id = :tenant AND d.arrived_at >= :first AND d.arrived_at < :after_last
ORDER BY d.arrived_at DESC, d.id;

-- name: document_passages
-- The passages of a document: its chunks, each with its place.
-- params:  document_id uuid
-- returns: id uuid, note_id uuid, start_char int, end_char int, content text
-- index:   notes_document_idx
SELECT c.id, c.note_id, c.start_char, c.end_char, c.content FROM notes AS n
INNER JOIN chunks AS c ON c.note_id = n.id
WHERE n.document_id = :document_id ORDER BY n.section_index, c.chunk_index;
