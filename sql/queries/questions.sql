-- name: named_files
-- The files that a question may name, each with its notes.
-- params:  phrases text[] (of the question), most int (notes of a file; one more says that there are more)
-- returns: key text, phrase text, name text, note_ids uuid[]
-- index:   documents_file_key_idx, document_addresses_file_key_idx, notes_file_key_idx
WITH asked AS (
    SELECT file_key(p.phrase) AS key, min(p.phrase) AS phrase FROM unnest(:phrases::text[]) AS p (phrase)
    WHERE file_key(p.phrase) <> '' GROUP BY file_key(p.phrase)
),

found AS (
    SELECT q.key, q.phrase, d.title AS name, n.id
    FROM asked AS q
    INNER JOIN documents AS d ON d.tenant_id = current_tenant() AND file_key(d.title) = q.key
    INNER JOIN notes AS n ON n.document_id = d.id AND n.tenant_id = current_tenant()
    WHERE d.expires_at IS NULL OR d.expires_at > now()
    UNION
    SELECT q.key, q.phrase, regexp_replace(a.address, '^.*/', '') AS name, n.id
    FROM asked AS q
    INNER JOIN document_addresses AS a ON a.tenant_id = current_tenant() AND file_key(a.address) = q.key
    INNER JOIN notes AS n ON n.document_id = a.document_id AND n.tenant_id = current_tenant()
    WHERE n.expires_at IS NULL OR n.expires_at > now()
    UNION
    SELECT q.key, q.phrase, regexp_replace(n.external_id, '^.*/', '') AS name, n.id
    FROM asked AS q
    INNER JOIN notes AS n
        ON n.tenant_id = current_tenant() AND n.document_id IS NULL AND file_key(n.external_id) = q.key
    WHERE n.expires_at IS NULL OR n.expires_at > now()
)

SELECT
    f.key, min(f.phrase) AS phrase, max(f.name) AS name,
    (array_agg(DISTINCT f.id))[:(:most::integer + 1)] AS note_ids
FROM found AS f GROUP BY f.key ORDER BY f.key;

-- name: named_values
-- The names of a question that are values of the metadata of documents, such as an author.
-- params:  names text[]
-- returns: name text, key text, value text
SELECT DISTINCT q.name, m.key, m.value #>> '{}' AS value
FROM documents AS d
CROSS JOIN LATERAL jsonb_each(d.metadata) AS m
INNER JOIN unnest(:names::text[]) AS q (name)
    ON fold_accents(lower(m.value #>> '{}')) = fold_accents(lower(q.name))
WHERE
    d.tenant_id = current_tenant() AND jsonb_typeof(m.value) = 'string'
    AND (d.expires_at IS NULL OR d.expires_at > now())
ORDER BY q.name, m.key, value;
