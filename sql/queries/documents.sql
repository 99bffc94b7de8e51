-- name: insert_document$
-- params:  tenant text, source text, title text, media_type text, metadata jsonb, file_sha256 bytea, file_url text or
--          null, file_bytes bigint or null, page_count int or null, arrived_at timestamptz or null (now)
-- returns: id uuid
INSERT INTO documents (
    tenant_id, source, title, media_type, metadata, file_sha256, file_url, file_bytes, page_count, arrived_at,
    expires_at
)
VALUES (
    :tenant, :source, :title, :media_type, :metadata, :file_sha256, :file_url, :file_bytes, :page_count,
    coalesce(:arrived_at, now()), (:metadata::jsonb ->> 'expiresAt')::timestamptz
)
RETURNING id;

-- name: upsert_document_address!
-- Store the file found at an address, and its document.
-- params:  tenant text, source text, address text, document_id uuid, etag text or null,
--          file_sha256 bytea
INSERT INTO document_addresses (tenant_id, source, address, document_id, etag, file_sha256)
VALUES (:tenant, :source, :address, :document_id, :etag, :file_sha256)
ON CONFLICT (tenant_id, source, address) DO UPDATE SET
    document_id = excluded.document_id, etag = excluded.etag,
    file_sha256 = excluded.file_sha256, checked_at = now(), missing_since = NULL;

-- name: lock_documents!
-- Until commit, allow no other transaction to register or delete documents of a tenant. Otherwise a file that is
-- registered while its document is being deleted would come back.
-- params:  tenant text
SELECT pg_advisory_xact_lock(hashtextextended('documents ' || :tenant, 0));

-- name: list_addresses
-- The files last found at the addresses of a source.
-- params:  tenant text, source text, address text or null (only this one)
-- returns: address text, document_id uuid, etag text or null, file_sha256 bytea or null,
--          missing_since timestamptz or null, title text, metadata jsonb (of the document)
SELECT
    a.address, a.document_id, a.etag, a.file_sha256, a.missing_since, d.title, d.metadata
FROM document_addresses AS a
INNER JOIN documents AS d ON d.id = a.document_id
WHERE a.tenant_id = :tenant AND a.source = :source AND (:address::text IS NULL OR a.address = :address)
ORDER BY a.address;

-- name: find_upload^
-- The document of an upload. The address of an upload is its id and the name of its file; its ETag is the hash of the
-- request.
-- params:  tenant text, source text, upload_id text
-- returns: document_id uuid, etag text; or nothing
-- index:   document_addresses_pkey
SELECT a.document_id, a.etag FROM document_addresses AS a
WHERE a.tenant_id = :tenant AND a.source = :source AND starts_with(a.address, :upload_id || '/')
ORDER BY a.address LIMIT 1;

-- name: list_waiting_uploads
-- Uploaded documents that nobody has read yet, of all tenants.
-- params:  source text
-- returns: id uuid, arrived_at timestamptz
SELECT d.id, d.arrived_at FROM documents AS d
WHERE d.source = :source AND d.status = 'pending'
ORDER BY d.id;

-- name: list_document_owners
-- The tenants with documents that arrived in a window.
-- params:  first timestamptz, after_last timestamptz
-- returns: tenant_id text
-- index:   documents_arrival_idx
SELECT DISTINCT d.tenant_id FROM documents AS d
WHERE d.arrived_at >= :first AND d.arrived_at < :after_last
ORDER BY d.tenant_id;

-- name: list_arrivals
-- When the documents at some addresses of a source arrived.
-- params:  tenant text, source text, addresses text[]
-- returns: arrived_at timestamptz
-- index:   document_addresses_pkey
SELECT DISTINCT d.arrived_at
FROM document_addresses AS a
INNER JOIN documents AS d ON d.id = a.document_id
WHERE a.tenant_id = :tenant AND a.source = :source AND a.address = ANY(:addresses)
ORDER BY d.arrived_at;

-- name: mark_missing_addresses
-- Record which addresses a source has lost, and which it has again.
-- params:  tenant text, source text, addresses text[] (those that it has)
-- returns: address text: of those that it has lost; their documents are kept
WITH marked AS (
    UPDATE document_addresses AS a
    SET missing_since = CASE WHEN a.address = ANY(:addresses) THEN NULL ELSE now() END
    WHERE
        a.tenant_id = :tenant AND a.source = :source AND (a.address = ANY(:addresses)) = (a.missing_since IS NOT NULL)
)

SELECT a.address FROM document_addresses AS a
WHERE a.tenant_id = :tenant AND a.source = :source AND a.address <> ALL(:addresses)
ORDER BY a.address;

-- name: count_missing_documents$
-- The number of the tenant's documents whose file is at none of their addresses any more.
-- returns: bigint
SELECT count(*) FROM documents AS d
WHERE
    d.tenant_id = current_tenant()
    AND EXISTS (SELECT FROM document_addresses AS a WHERE a.document_id = d.id)
    AND NOT EXISTS (SELECT FROM document_addresses AS a WHERE a.document_id = d.id AND a.missing_since IS NULL);

-- name: find_document_of_file$
-- The document of a file that was found before, at any address.
-- params:  tenant text, file_sha256 bytea
-- returns: uuid or nothing
-- index:   document_addresses_file_idx
SELECT a.document_id FROM document_addresses AS a
WHERE a.tenant_id = :tenant AND a.file_sha256 = :file_sha256
ORDER BY a.address LIMIT 1;

-- name: count_addresses$
-- params:  document_id uuid
-- returns: bigint
-- index:   document_addresses_document_idx
SELECT count(*) FROM document_addresses AS a WHERE a.document_id = :document_id;

-- name: replace_document_file!
-- Store that the file of a document has changed, so that it is read anew. Its pages and notes stay until then.
-- params:  document_id uuid, title text, media_type text, metadata jsonb, file_sha256 bytea, file_url text,
--          file_bytes bigint
UPDATE documents SET
    title = :title, media_type = :media_type, metadata = :metadata, file_sha256 = :file_sha256, file_url = :file_url,
    file_bytes = :file_bytes, expires_at = (:metadata::jsonb ->> 'expiresAt')::timestamptz, status = 'pending',
    updated_at = now()
WHERE id = :document_id;

-- name: update_document_metadata!
-- Store other metadata of a document, and of its notes, which are filtered by them.
-- params:  document_id uuid, title text, metadata jsonb
WITH changed AS (
    UPDATE documents AS d
    SET
        title = :title, metadata = :metadata, expires_at = (:metadata::jsonb ->> 'expiresAt')::timestamptz,
        updated_at = now()
    WHERE d.id = :document_id
)

UPDATE notes AS n
SET
    metadata = :metadata || jsonb_build_object('file', n.metadata -> 'file', 'section', n.metadata -> 'section'),
    expires_at = (:metadata::jsonb ->> 'expiresAt')::timestamptz
WHERE n.document_id = :document_id;

-- name: set_document_status!
-- params:  document_id uuid, status text
UPDATE documents SET status = :status, updated_at = now() WHERE id = :document_id AND status <> :status;

-- name: fetch_document
-- A document; optionally locked until commit.
-- params:  document_id uuid
-- returns: the columns of documents
SELECT d.* FROM documents AS d WHERE d.id = :document_id;

-- name: lock_document
-- A document, locked until commit; no row if another transaction works on it.
-- params:  document_id uuid
-- returns: the columns of documents
SELECT d.* FROM documents AS d WHERE d.id = :document_id FOR UPDATE SKIP LOCKED;

-- name: first_address$
-- params:  document_id uuid
-- returns: text: its alphabetically first address that still has it, else any
-- index:   document_addresses_document_idx
SELECT a.address FROM document_addresses AS a
WHERE a.document_id = :document_id
ORDER BY a.missing_since IS NOT NULL, a.address LIMIT 1;

-- name: find_document_of_text$
-- Another document of the tenant with the same text, already read and not expired.
-- params:  tenant text, text_sha256 bytea, document_id uuid
-- returns: uuid or nothing
-- index:   documents_text_idx
SELECT d.id FROM documents AS d
WHERE
    d.tenant_id = :tenant AND d.text_sha256 = :text_sha256 AND d.id <> :document_id
    AND (d.expires_at IS NULL OR d.expires_at > now())
ORDER BY d.arrived_at, d.id LIMIT 1;

-- name: move_addresses!
-- params:  document_id uuid, to_document_id uuid
UPDATE document_addresses SET document_id = :to_document_id WHERE document_id = :document_id;

-- name: finish_document!
-- Store the page count, text hash and status of a document after its pages were replaced.
-- params:  document_id uuid, page_count int, text_sha256 bytea or null, status text
UPDATE documents SET
    page_count = :page_count, text_sha256 = :text_sha256, status = :status, updated_at = now()
WHERE id = :document_id;

-- name: delete_other_pages!
-- Delete the pages of a document except the given ones.
-- params:  document_id uuid, numbers int[]
DELETE FROM document_pages AS p WHERE p.document_id = :document_id AND p.page_number <> ALL(:numbers);

-- name: delete_document_failures!
-- params:  document_id uuid, stage text
DELETE FROM document_failures AS f WHERE f.document_id = :document_id AND f.stage = :stage;

-- name: list_pages
-- params:  document_id uuid
-- returns: the columns of document_pages
-- index:   document_pages_pkey
SELECT p.* FROM document_pages AS p WHERE p.document_id = :document_id ORDER BY p.page_number;

-- name: review_page!
-- params:  document_id uuid, page_number int, review text
UPDATE document_pages SET review = :review WHERE document_id = :document_id AND page_number = :page_number;

-- name: list_section_notes
-- The notes of a document, in its order.
-- params:  document_id uuid
-- returns: id uuid, external_id text, heading_path text[], content_sha256 bytea
-- index:   notes_document_idx
SELECT n.id, n.external_id, n.heading_path, n.content_sha256 FROM notes AS n
WHERE n.document_id = :document_id ORDER BY n.section_index;

-- name: unlink_sections!
-- Unlink the notes of a document from its sections until they are linked again, in the same transaction, because their
-- numbers may be exchanged.
-- params:  document_id uuid
-- index:   notes_document_idx
UPDATE notes SET document_id = NULL, section_index = NULL WHERE document_id = :document_id;

-- name: delete_notes!
-- Delete notes whose section is gone, with everything derived from them.
-- params:  note_ids uuid[]
DELETE FROM notes AS n WHERE n.id = ANY(:note_ids);

-- name: refresh_document_statuses!
-- Bring the status of read documents up to date: whether their notes are chunked and embedded, whether pages are
-- missing, and whether a new reading waits for a person.
-- params:  first timestamptz, after_last timestamptz
-- index:   documents_arrival_idx
UPDATE documents AS d SET status = s.status, updated_at = now()
FROM (
    SELECT
        c.id,
        CASE
            WHEN EXISTS (SELECT FROM notes AS n WHERE n.document_id = c.id AND n.chunked_at IS NULL) THEN 'chunking'
            WHEN EXISTS (
                SELECT FROM notes AS n INNER JOIN pending_vectors AS p ON p.note_id = n.id
                WHERE n.document_id = c.id
            ) THEN 'embedding'
            WHEN EXISTS (SELECT FROM document_failures AS f WHERE f.document_id = c.id) THEN 'partial'
            WHEN EXISTS (
                SELECT FROM document_extractions AS e WHERE e.document_id = c.id AND e.state = 'held'
            ) THEN 'partial'
            WHEN EXISTS (
                SELECT FROM document_pages AS p
                WHERE
                    p.document_id = c.id AND p.review IS NULL
                    -- A page without text that shows nothing is blank, and does not count as missing.
                    AND ((p.route = 'none' AND p.notices <> '{}') OR p.quality < :min_quality)
            ) THEN 'partial'
            ELSE 'completed'
        END AS status
    FROM documents AS c
    WHERE
        c.arrived_at >= :first AND c.arrived_at < :after_last
        AND c.status IN ('chunking', 'embedding', 'completed', 'partial')
) AS s
WHERE s.id = d.id AND s.status <> d.status;

-- name: list_documents
-- The documents of a tenant that have not expired, latest arrival first.
-- params:  tenant text or null (that of the session), name text or null (only those with this id, address or title),
--          id uuid or null (that name as an id), status text or null, row_limit int or null
-- returns: the columns of documents, addresses jsonb, pages bigint (read), words bigint, needs_ocr bigint (pages),
--          low_quality bigint (pages nobody has reviewed), failures bigint, failed_stages text[] (without
--          order), notes bigint, chunks bigint, quality double precision or null, held bool, total bigint (without the
--          limit); of its first failure: failed_page int or null, stage text or null, reason jsonb or null
SELECT
    d.*, a.addresses, p.pages, p.words, p.needs_ocr, p.low_quality, p.quality,
    r.page_number AS failed_page, r.stage, r.reason,
    (SELECT count(*) FROM document_failures AS f WHERE f.document_id = d.id) AS failures,
    array(SELECT DISTINCT f.stage FROM document_failures AS f WHERE f.document_id = d.id) AS failed_stages,
    (SELECT count(*) FROM notes AS n WHERE n.document_id = d.id) AS notes,
    (SELECT count(*) FROM notes AS n INNER JOIN chunks AS c ON c.note_id = n.id WHERE n.document_id = d.id) AS chunks,
    (SELECT count(*) FROM document_extractions AS e WHERE e.document_id = d.id AND e.state = 'held') > 0 AS held,
    count(*) OVER () AS total
FROM documents AS d
LEFT JOIN LATERAL (
    SELECT
        jsonb_agg(
            jsonb_build_object('source', x.source, 'address', x.address, 'missingSince', x.missing_since)
            ORDER BY x.source <> d.source, x.address
        ) AS addresses
    FROM document_addresses AS x WHERE x.document_id = d.id
) AS a ON TRUE
LEFT JOIN LATERAL (
    SELECT
        count(*) AS pages, coalesce(sum(x.word_count), 0) AS words,
        count(*) FILTER (WHERE x.route = 'none' AND x.notices <> '{}' AND x.review IS NULL) AS needs_ocr,
        count(*) FILTER (WHERE x.quality < :min_quality AND x.review IS NULL) AS low_quality,
        avg(x.quality) AS quality
    FROM document_pages AS x WHERE x.document_id = d.id
) AS p ON TRUE
LEFT JOIN LATERAL (
    SELECT x.page_number, x.stage, x.reason FROM document_failures AS x
    WHERE x.document_id = d.id
    ORDER BY x.page_number NULLS FIRST, x.stage LIMIT 1
) AS r ON TRUE
WHERE
    d.tenant_id = coalesce(:tenant, current_tenant()) AND (d.expires_at IS NULL OR d.expires_at > now())
    AND (:status::text IS NULL OR d.status = :status)
    AND (
        :name::text IS NULL OR d.id = :id OR d.title = :name
        OR EXISTS (SELECT FROM document_addresses AS x WHERE x.document_id = d.id AND x.address = :name)
    )
ORDER BY d.arrived_at DESC, d.id LIMIT :row_limit;

-- name: list_document_failures
-- params:  document_id uuid
-- returns: page_number int or null, stage text, reason jsonb, occurred_at timestamptz
SELECT f.page_number, f.stage, f.reason, f.occurred_at FROM document_failures AS f
WHERE f.document_id = :document_id ORDER BY f.page_number NULLS FIRST, f.stage;

-- name: count_documents
-- The number of documents of a month, by status.
-- params:  tenant text, first timestamptz, after_last timestamptz
-- returns: status text, documents bigint, pages bigint (of the files), failed_pages bigint
-- index:   documents_arrival_idx
SELECT
    d.status, count(*) AS documents, coalesce(sum(d.page_count), 0) AS pages, coalesce(sum(f.pages), 0) AS failed_pages
FROM documents AS d
LEFT JOIN LATERAL (
    SELECT count(*) AS pages FROM document_failures AS x WHERE x.document_id = d.id AND x.page_number IS NOT NULL
) AS f ON TRUE
WHERE d.tenant_id = :tenant AND d.arrived_at >= :first AND d.arrived_at < :after_last
GROUP BY d.status ORDER BY d.status;

-- name: list_month_documents
-- The documents of a month; those not read, or only in part, come first.
-- params:  tenant text, first timestamptz, after_last timestamptz, row_limit int
-- returns: address text or null, status text, page_count int or null, pages bigint (read, also if they wait), reason
--          jsonb or null (of one of its failures)
-- index:   documents_arrival_idx
SELECT
    a.address, d.status, d.page_count, f.reason,
    greatest((SELECT count(*) FROM document_pages AS p WHERE p.document_id = d.id), e.page_count) AS pages
FROM documents AS d
LEFT JOIN LATERAL (
    SELECT x.address FROM document_addresses AS x WHERE x.document_id = d.id
    ORDER BY x.source <> d.source, x.address LIMIT 1
) AS a ON TRUE
LEFT JOIN LATERAL (
    SELECT x.reason FROM document_failures AS x
    WHERE x.document_id = d.id
    ORDER BY x.page_number NULLS FIRST LIMIT 1
) AS f ON TRUE
LEFT JOIN LATERAL (
    SELECT x.page_count FROM document_extractions AS x
    WHERE x.document_id = d.id AND x.state = 'read'
    ORDER BY x.id DESC LIMIT 1
) AS e ON TRUE
WHERE d.tenant_id = :tenant AND d.arrived_at >= :first AND d.arrived_at < :after_last
ORDER BY d.status = 'failed' DESC, d.status = 'partial' DESC, d.arrived_at DESC, d.id
LIMIT :row_limit;

-- name: count_document_failures
-- The failures in the documents of a month, by stage. A document whose status is not failed has earlier pages, or some.
-- params:  tenant text, first timestamptz, after_last timestamptz
-- returns: stage text, documents bigint (none of whose pages could be read), pages bigint
-- index:   documents_arrival_idx
SELECT
    f.stage,
    count(DISTINCT d.id) FILTER (WHERE f.page_number IS NULL AND d.status = 'failed') AS documents,
    count(*) FILTER (WHERE f.page_number IS NOT NULL) AS pages
FROM documents AS d
INNER JOIN document_failures AS f ON f.document_id = d.id
WHERE d.tenant_id = :tenant AND d.arrived_at >= :first AND d.arrived_at < :after_last
GROUP BY f.stage ORDER BY f.stage;

-- name: page_quality
-- The quality of the stored pages of a month; no row if none was assessed.
-- params:  tenant text, first timestamptz, after_last timestamptz, min_quality double precision
-- returns: mean double precision, quantiles double precision[] (.1, .5 and .9), low bigint (pages under min_quality)
-- index:   documents_arrival_idx
SELECT
    avg(p.quality) AS mean,
    percentile_cont(ARRAY[0.1, 0.5, 0.9]) WITHIN GROUP (ORDER BY p.quality) AS quantiles,
    count(*) FILTER (WHERE p.quality < :min_quality) AS low
FROM documents AS d
INNER JOIN document_pages AS p ON p.document_id = d.id
WHERE
    d.tenant_id = :tenant AND d.arrived_at >= :first AND d.arrived_at < :after_last
    AND p.quality IS NOT NULL
HAVING count(*) > 0;

-- name: list_document_ids
-- The read documents of a window.
-- params:  tenant text, first timestamptz, after_last timestamptz
-- returns: id uuid
-- index:   documents_arrival_idx
SELECT d.id FROM documents AS d
WHERE
    d.tenant_id = :tenant AND d.arrived_at >= :first AND d.arrived_at < :after_last
    AND EXISTS (SELECT FROM document_pages AS p WHERE p.document_id = d.id)
ORDER BY d.arrived_at DESC, d.id;

-- name: list_expired_documents
-- The documents that expired some hours ago or earlier, or one of them.
-- params:  grace_hours int, document_id uuid or null
-- returns: id uuid, tenant_id text; earliest expiry first
-- index:   documents_expiry_idx
SELECT d.id, d.tenant_id FROM documents AS d
WHERE
    d.expires_at <= now() - make_interval(hours => :grace_hours)
    AND (:document_id::uuid IS NULL OR d.id = :document_id)
ORDER BY d.expires_at, d.id;

-- name: delete_expired_of_file!
-- Delete the documents of a file that have expired: the file may arrive again before they are purged.
-- params:  tenant text, file_sha256 bytea
-- index:   document_addresses_file_idx
DELETE FROM documents AS d
USING document_addresses AS a
WHERE
    a.tenant_id = :tenant AND a.file_sha256 = :file_sha256 AND d.id = a.document_id AND d.tenant_id = :tenant
    AND d.expires_at <= now();

-- name: list_files
-- The files that a document has had, read or not, and no other document has now.
-- params:  document_id uuid, file_sha256 bytea or null (another one that it had)
-- returns: file_sha256 bytea, is_needed bool (its present file, or one at its addresses)
-- index:   document_extractions_document_idx, document_addresses_document_idx, document_addresses_file_idx
SELECT f.file_sha256, bool_or(f.is_needed) AS is_needed
FROM documents AS d
CROSS JOIN
    LATERAL (
        SELECT a.file_sha256, TRUE AS is_needed FROM document_addresses AS a WHERE a.document_id = d.id
        UNION ALL
        SELECT e.file_sha256, FALSE AS is_needed FROM document_extractions AS e WHERE e.document_id = d.id
        UNION ALL
        VALUES (d.file_sha256, TRUE), (:file_sha256::bytea, FALSE)
    ) AS f
WHERE
    d.id = :document_id AND f.file_sha256 IS NOT NULL
    AND NOT EXISTS (
        SELECT FROM document_addresses AS a
        WHERE a.tenant_id = d.tenant_id AND a.file_sha256 = f.file_sha256 AND a.document_id <> d.id
    )
    AND NOT EXISTS (
        SELECT FROM documents AS o WHERE o.tenant_id = d.tenant_id AND o.file_sha256 = f.file_sha256 AND o.id <> d.id
    )
GROUP BY f.file_sha256;

-- name: bury_document!
-- Record that a person deleted a document, by hashes only.
-- params:  document_id uuid, reason text, text_sha256 bytea or null (null: the hash of the document's stored text)
INSERT INTO deleted_documents (tenant_id, file_sha256, text_sha256, source, address, reason)
SELECT DISTINCT ON (a.tenant_id, a.file_sha256)
    a.tenant_id, a.file_sha256, coalesce(:text_sha256::bytea, d.text_sha256) AS text_sha256, a.source, a.address,
    :reason AS words
FROM document_addresses AS a
INNER JOIN documents AS d ON d.id = a.document_id
WHERE a.document_id = :document_id AND a.file_sha256 IS NOT NULL
ORDER BY a.tenant_id, a.file_sha256, a.address
ON CONFLICT (tenant_id, file_sha256) DO UPDATE SET
    text_sha256 = excluded.text_sha256, source = excluded.source, address = excluded.address,
    reason = excluded.reason, deleted_at = now();

-- name: forget_section_tombstones!
-- Delete the tombstones of a document's sections, new and earlier ones, because the document itself is recorded.
-- params:  document_id uuid, note_ids uuid[]
DELETE FROM tombstones AS t
WHERE t.note_id = ANY(:note_ids) OR t.note ->> 'document_id' = :document_id::uuid::text;

-- name: find_deleted_document
-- The deletion of a document with this file or text.
-- params:  tenant text, file_sha256 bytea or null, text_sha256 bytea or null
-- returns: address text, reason text, deleted_at timestamptz
SELECT x.address, x.reason, x.deleted_at FROM deleted_documents AS x
WHERE x.tenant_id = :tenant AND (x.file_sha256 = :file_sha256 OR x.text_sha256 = :text_sha256)
ORDER BY x.deleted_at DESC LIMIT 1;

-- name: forget_deleted_document
-- Let the source bring a deleted document back. All files with its text are one document, and come back together.
-- params:  tenant text, address text
-- returns: address text
DELETE FROM deleted_documents AS x
WHERE
    x.tenant_id = :tenant
    AND (
        x.address = :address
        OR x.text_sha256 IN (
            SELECT y.text_sha256 FROM deleted_documents AS y
            WHERE y.tenant_id = :tenant AND y.address = :address
        )
    )
RETURNING x.address;

-- name: upsert_document_page*!
-- Insert or update a page; an update keeps the spans that refer to it.
-- params:  document_id uuid and the columns of document_pages
INSERT INTO document_pages AS p (
    document_id, page_number, sheet, reader, reader_hash, route, text, removed, quality, has_images, has_tables,
    has_multiple_columns, word_count, blocks, notices, left_out, metadata, tenant_id
)
SELECT
    d.id, :page_number, :sheet, :reader, :reader_hash, :route, :text, :removed, :quality, :has_images,
    :has_tables, :has_multiple_columns, :word_count, :blocks, :notices, :left_out, :metadata, d.tenant_id
FROM documents AS d WHERE d.id = :document_id
ON CONFLICT (document_id, page_number) DO UPDATE SET
    sheet = excluded.sheet, reader = excluded.reader, reader_hash = excluded.reader_hash, route = excluded.route,
    text = excluded.text, removed = excluded.removed, quality = excluded.quality,
    has_images = excluded.has_images, has_tables = excluded.has_tables,
    has_multiple_columns = excluded.has_multiple_columns, word_count = excluded.word_count, blocks = excluded.blocks,
    notices = excluded.notices, left_out = excluded.left_out, metadata = excluded.metadata,
    review = CASE WHEN p.text = excluded.text THEN p.review END, extracted_at = now();

-- name: upsert_document_failure*!
-- params:  document_id uuid, page_number int or null, stage text, reason jsonb
INSERT INTO document_failures (document_id, page_number, stage, reason, tenant_id)
SELECT d.id, :page_number, :stage, :reason, d.tenant_id FROM documents AS d WHERE d.id = :document_id
ON CONFLICT (document_id, page_number, stage) DO UPDATE SET
    reason = excluded.reason, occurred_at = now();

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
INSERT INTO note_spans (note_id, start_char, end_char, document_id, page_number, page_start, box, cells, tenant_id)
SELECT n.id, :start_char, :end_char, :document_id, :page_number, :page_start, :box, :cells, n.tenant_id
FROM notes AS n WHERE n.id = :note_id;

-- name: fetch_spans
-- The spans that overlap the given ranges of notes, in order.
-- params:  note_ids uuid[], starts int[], ends int[] (one range for each position)
-- returns: number int (of the range, from 1), the columns of note_spans, sheet text or null
-- index:   note_spans_pkey
SELECT f.number, s.document_id, s.start_char, s.end_char, s.page_number, s.page_start, s.box, s.cells, p.sheet
FROM unnest(:note_ids::uuid[], :starts::integer[], :ends::integer[]) WITH ORDINALITY AS f (note_id, first, last, number)
INNER JOIN note_spans AS s ON s.note_id = f.note_id AND s.start_char < f.last AND s.end_char > f.first
INNER JOIN document_pages AS p ON p.document_id = s.document_id AND p.page_number = s.page_number
ORDER BY f.number, s.start_char;

-- name: find_page_runs
-- The ranges of notes that a page became, in the order of the page; none if the document has expired.
-- params:  tenant text, name text (id, address or title of the document), id uuid or null (that name as an id),
--          page int
-- returns: note_id uuid, content text, start_char int, end_char int, page_start int
-- index:   note_spans_page_idx
SELECT s.note_id, n.content, s.start_char, s.end_char, s.page_start
FROM documents AS d
INNER JOIN note_spans AS s ON s.document_id = d.id AND s.page_number = :page
INNER JOIN notes AS n ON n.id = s.note_id
WHERE
    d.tenant_id = :tenant AND (d.expires_at IS NULL OR d.expires_at > now())
    AND (
        d.id = :id OR d.title = :name
        OR EXISTS (SELECT FROM document_addresses AS a WHERE a.document_id = d.id AND a.address = :name)
    )
ORDER BY s.page_start, s.note_id;

-- name: delete_document!
-- Delete a document with its pages, addresses, failures and notes, and everything derived from the notes.
-- params:  document_id uuid
DELETE FROM documents AS d WHERE d.id = :document_id;
