-- What a tenant's abbreviations stand for: a question with one is searched with both.
CREATE TABLE glossary (
    tenant_id text NOT NULL DEFAULT current_tenant(),
    -- As people write it, in upper and lower case.
    abbreviation text NOT NULL CHECK (abbreviation <> ''),
    expansion text NOT NULL CHECK (expansion <> ''),
    PRIMARY KEY (tenant_id, abbreviation)
);

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

-- A question without content is asked back, which is no miss.
ALTER TABLE answers
DROP CONSTRAINT answers_outcome_check,
ADD CONSTRAINT answers_outcome_check CHECK (
    outcome IN ('answered', 'missed', 'withheld', 'asked_back', 'failed')
);
