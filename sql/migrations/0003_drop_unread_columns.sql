ALTER TABLE document_pages DROP COLUMN words;
ALTER TABLE extracted_pages DROP COLUMN words;
ALTER TABLE document_addresses DROP COLUMN last_modified;
