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

-- name: named_people
-- The names of a question that are in the graph, each with the notes that have it in their words, title or tags.
-- Words count besides mentions, because the rules miss a name that only opens a sentence.
-- params:  names text[], keys text[] (folded, in the same order), most int (notes of a name, as of named_files)
-- returns: asked text, name text, note_ids uuid[]
-- index:   entities_key_idx, entities_pkey, mentions_pkey, note_words_tsv_idx
WITH known AS (
    SELECT q.asked, e.id, e.name, e.key
    FROM unnest(:names::text[], :keys::text[]) AS q (asked, key)
    INNER JOIN entities AS e ON e.tenant_id = current_tenant() AND e.key = q.key AND e.kind = 'name'
),

same AS (
    SELECT k.asked, k.id, k.key FROM known AS k
    UNION
    SELECT k.asked, e.id, e.key
    FROM known AS k
    INNER JOIN entities AS e ON e.tenant_id = current_tenant() AND e.key = k.key AND e.kind = 'tag'
),

found AS (
    SELECT s.asked, m.note_id
    FROM same AS s INNER JOIN mentions AS m ON m.tenant_id = current_tenant() AND m.entity_id = s.id
    UNION
    SELECT s.asked, w.note_id
    FROM same AS s
    INNER JOIN note_words AS w
        ON w.tenant_id = current_tenant() AND w.tsv @@ phraseto_tsquery('pg_catalog.spanish', s.key)
)

SELECT
    k.asked, min(k.name) AS name, (array_agg(DISTINCT n.id))[:(:most::integer + 1)] AS note_ids
FROM known AS k
INNER JOIN found AS f ON f.asked = k.asked
INNER JOIN notes AS n
    ON n.id = f.note_id AND n.tenant_id = current_tenant() AND (n.expires_at IS NULL OR n.expires_at > now())
GROUP BY k.asked ORDER BY k.asked;

-- name: titled_in_month
-- Notes of a month, of one year or of any, whose title or tags have a word, or its plural in -s.
-- params:  word text, month int (1 to 12), year int or null, most int
-- returns: id uuid
SELECT n.id FROM notes AS n
WHERE
    n.tenant_id = current_tenant() AND (n.expires_at IS NULL OR n.expires_at > now())
    AND extract(MONTH FROM n.created_at AT TIME ZONE 'UTC') = :month
    AND (:year::integer IS NULL OR extract(YEAR FROM n.created_at AT TIME ZONE 'UTC') = :year)
    AND fold_accents(lower(n.title || ' ' || array_to_string(n.tags, ' '))) ~ ('\m' || :word || 's?\M')
ORDER BY n.id LIMIT :most;

-- name: expand_abbreviations
-- params:  words text[]
-- returns: abbreviation text, expansion text
-- index:   glossary_pkey
SELECT g.abbreviation, g.expansion FROM glossary AS g
WHERE g.tenant_id = current_tenant() AND g.abbreviation = ANY(:words) ORDER BY g.abbreviation;

-- name: list_glossary
-- returns: abbreviation text, expansion text
-- index:   glossary_pkey
SELECT g.abbreviation, g.expansion FROM glossary AS g
WHERE g.tenant_id = current_tenant() ORDER BY g.abbreviation;

-- name: write_abbreviation!
-- params:  abbreviation text, expansion text
INSERT INTO glossary (abbreviation, expansion) VALUES (:abbreviation, :expansion)
ON CONFLICT (tenant_id, abbreviation) DO UPDATE SET expansion = excluded.expansion;

-- name: delete_abbreviation
-- params:  abbreviation text
-- returns: abbreviation text (none if it was not there)
-- index:   glossary_pkey
DELETE FROM glossary AS g WHERE g.tenant_id = current_tenant() AND g.abbreviation = :abbreviation
RETURNING g.abbreviation;
