-- What a tenant may have and ask, and how long its uploads live; null where nothing is said.
ALTER TABLE tenants
ADD COLUMN max_notes bigint CHECK (max_notes >= 0),
-- Of the texts of its notes and the files of its documents together.
ADD COLUMN max_bytes bigint CHECK (max_bytes >= 0),
ADD COLUMN questions_a_minute integer CHECK (questions_a_minute > 0),
ADD COLUMN upload_hours integer CHECK (upload_hours > 0);

-- Hidden from then on; the notes of its sections have the same time.
ALTER TABLE documents ADD COLUMN expires_at timestamptz;
-- Prevents a scan of all documents for those to purge.
CREATE INDEX documents_expiry_idx ON documents (expires_at) WHERE expires_at IS NOT NULL;
