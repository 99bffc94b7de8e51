-- name: select_changed_notes
-- The given notes that are new or differ from what is stored. Contents are compared by hash, so they are neither sent
-- nor read. A new change time of a file is not a difference: only a date that a person stated counts.
-- params:  tenant text, source text, given jsonb: of each note [external id, title, SHA-256 of its content in
--          hexadecimal digits, [tags], {metadata}, creation time, date source]
-- returns: external_id text
-- index:   notes_external_key
SELECT g.note ->> 0 AS external_id
FROM jsonb_array_elements(:given::jsonb) AS g (note)
WHERE NOT EXISTS (
    SELECT FROM notes AS n
    WHERE
        n.tenant_id = :tenant AND n.source = :source AND n.external_id = g.note ->> 0
        AND n.title = g.note ->> 1 AND encode(n.content_sha256, 'hex') = g.note ->> 2
        AND to_jsonb(n.tags) = g.note -> 3 AND n.metadata = g.note -> 4
        AND (
            n.created_at = (g.note ->> 5)::timestamptz
            OR g.note ->> 6 = 'file_modified'
        )
        AND n.date_source = g.note ->> 6
);

-- name: upsert_notes
-- Insert or update notes. The creation time changes if the source states another one, but not if a file without a date
-- was changed later. The expiry changes only if the source states another one than before (expiresAt in its metadata).
-- params:  tenant text, source text, of each note: ids uuid[], external_ids text[] (no two the same), titles text[],
--          contents text[], tags jsonb[] (arrays of text), metadata jsonb[], created_at timestamptz[],
--          date_sources text[]
-- returns: external_id text, inserted bool (false: updated); no row for what is unchanged
-- index:   notes_external_key
INSERT INTO notes AS n (
    id, tenant_id, source, external_id, title, content, tags, metadata, created_at, expires_at, date_source
)
SELECT
    -- A renamed note keeps its id, so the note that has its former name gets another one.
    CASE
        WHEN EXISTS (SELECT FROM notes AS k WHERE k.id = u.id AND k.external_id <> u.external_id)
            THEN gen_random_uuid()
        ELSE u.id
    END AS id,
    :tenant, :source, u.external_id, u.title, u.content,
    (
        SELECT coalesce(array_agg(t.tag ORDER BY t.place), '{}')
        FROM jsonb_array_elements_text(u.tags) WITH ORDINALITY AS t (tag, place)
    ) AS tags,
    u.metadata, u.created_at, (u.metadata ->> 'expiresAt')::timestamptz AS expires_at, u.date_source
FROM
    unnest(
        :ids::uuid[], :external_ids::text[], :titles::text[], :contents::text[], :tags::jsonb[], :metadata::jsonb[],
        :created_at::timestamptz[], :date_sources::text[]
    ) WITH ORDINALITY AS u (id, external_id, title, content, tags, metadata, created_at, date_source, place)
ORDER BY u.place
ON CONFLICT (tenant_id, source, external_id) DO UPDATE
    SET
        title = excluded.title, content = excluded.content, tags = excluded.tags,
        metadata = with_edits(excluded.metadata, n.edited),
        date_source = excluded.date_source,
        created_at = CASE
            WHEN excluded.date_source = 'file_modified' THEN n.created_at ELSE excluded.created_at
        END,
        expires_at = CASE
            WHEN n.metadata ->> 'expiresAt' IS DISTINCT FROM with_edits(excluded.metadata, n.edited) ->> 'expiresAt'
                THEN (with_edits(excluded.metadata, n.edited) ->> 'expiresAt')::timestamptz
            ELSE n.expires_at
        END,
        updated_at = now()
    WHERE
    (n.title, n.content, n.tags, n.metadata, n.date_source)
    IS DISTINCT FROM (
        excluded.title, excluded.content, excluded.tags, with_edits(excluded.metadata, n.edited), excluded.date_source
    )
    OR (
        n.created_at <> excluded.created_at AND excluded.date_source <> 'file_modified'
    )
RETURNING n.external_id, n.xmax = 0 AS inserted;

-- name: read_creation_times
-- When notes of a source were created.
-- params:  tenant text, source text, external_ids text[]
-- returns: external_id text, created_at timestamptz
-- index:   notes_external_key
SELECT n.external_id, n.created_at FROM notes AS n
WHERE n.tenant_id = :tenant AND n.source = :source AND n.external_id = ANY(:external_ids);

-- name: find_note$
-- The id of a note given by id, by external id or by another name of its file; the oldest if several sources use it.
-- params:  tenant text, name text, id uuid or null
-- returns: uuid or nothing
-- index:   notes_pkey, notes_external_key, notes_addresses_idx
SELECT n.id FROM notes AS n
WHERE n.tenant_id = :tenant AND (n.id = :id OR n.external_id = :name OR n.addresses @> ARRAY[:name::text])
ORDER BY n.id = :id DESC NULLS LAST, n.external_id = :name DESC, n.created_at, n.id LIMIT 1;

-- name: list_notes
-- The notes of a tenant, newest first, expired ones included.
-- params:  tenant text, name text or null (only those with this id or external id), id uuid or null (that name as an
--          id), row_limit int or null
-- returns: id uuid, source text, external_id text (else the id), title text, created_at timestamptz,
--          updated_at timestamptz, expires_at timestamptz or null, chunked bool, tags text[], metadata jsonb,
--          date_source text or null, total bigint (without the limit)
-- index:   notes_newest_idx; for one note notes_pkey, notes_external_key
SELECT
    n.id, n.source, coalesce(n.external_id, n.id::text) AS external_id, n.title, n.created_at, n.updated_at,
    n.expires_at, n.chunked_at IS NOT NULL AS chunked, n.tags, n.metadata, n.date_source,
    count(*) OVER () AS total
FROM notes AS n
WHERE n.tenant_id = :tenant AND (:name::text IS NULL OR n.id = :id OR n.external_id = :name)
ORDER BY n.created_at DESC, n.id LIMIT :row_limit;

-- name: count_notes$
-- How many notes a month has that have not expired.
-- params:  month_start timestamptz, month_end timestamptz
-- returns: bigint
-- index:   notes_newest_idx
SELECT count(*) FROM notes AS n
WHERE
    n.created_at >= :month_start AND n.created_at < :month_end
    AND (n.expires_at IS NULL OR n.expires_at > now());

-- name: select_external_ids
-- External ids of the given notes; deleted ones are left out.
-- params:  note_ids uuid[]
-- returns: id uuid, external_id text
SELECT n.id, coalesce(n.external_id, n.id::text) AS external_id FROM notes AS n WHERE n.id = ANY(:note_ids);

-- name: fetch_notes
-- Titles and contents of the given notes.
-- params:  note_ids uuid[]
-- returns: id uuid, title text, content text, created_at timestamptz, tags text[], external_id text (else the id)
SELECT n.id, n.title, n.content, n.created_at, n.tags, coalesce(n.external_id, n.id::text) AS external_id
FROM notes AS n WHERE n.id = ANY(:note_ids);

-- name: select_notes_to_chunk
-- The newest notes of a month that need chunking; chunking them claims them one by one.
-- params:  month_start timestamptz, month_end timestamptz, chunking_hash text, skipped uuid[], batch_size int or null
-- returns: id uuid, size_bytes int (of the text), newest first
-- index:   notes_unchunked_idx, notes_newest_idx
SELECT n.id, octet_length(n.content) AS size_bytes FROM notes AS n
WHERE
    n.created_at >= :month_start AND n.created_at < :month_end
    AND (n.chunked_at IS NULL OR n.chunking_hash IS DISTINCT FROM :chunking_hash)
    AND (n.expires_at IS NULL OR n.expires_at > now())
    AND n.id <> ALL(:skipped)
ORDER BY n.created_at DESC, n.id LIMIT :batch_size;

-- name: claim_notes_to_chunk
-- Lock the given notes that need chunking and are unclaimed, until commit. Their keys stay unlocked, so that rows that
-- refer to a note (a failure, a vector) can still be written.
-- params:  note_ids uuid[], chunking_hash text
-- returns: id uuid, title text, content text, created_at timestamptz, tags text[], rolled_back bool (of the migration)
SELECT
    n.id, n.title, n.content, n.created_at, n.tags,
    coalesce((SELECT h.kind = 'rolled_back' FROM migration_holds AS h ORDER BY h.id DESC LIMIT 1), FALSE) AS rolled_back
FROM notes AS n
WHERE n.id = ANY(:note_ids) AND (n.chunked_at IS NULL OR n.chunking_hash IS DISTINCT FROM :chunking_hash)
FOR NO KEY UPDATE OF n SKIP LOCKED;

-- name: mark_chunked!
-- Record that all chunks of the given notes are stored.
-- params:  note_ids uuid[], chunking_hash text
UPDATE notes SET chunked_at = now(), chunking_hash = :chunking_hash WHERE id = ANY(:note_ids);

-- name: select_notes_outside
-- Notes dated outside all monthly partitions: they are searchable, but no monthly run covers them.
-- params:  first timestamptz, after_last timestamptz, row_limit int
-- returns: external_id text, total bigint, earliest timestamptz, latest timestamptz (these three over all such notes)
SELECT
    coalesce(n.external_id, n.id::text) AS external_id,
    count(*) OVER () AS total, min(n.created_at) OVER () AS earliest, max(n.created_at) OVER () AS latest
FROM notes AS n
WHERE n.created_at < :first OR n.created_at >= :after_last
ORDER BY n.created_at, n.id LIMIT :row_limit;

-- name: list_file_dated_months
-- The months of a tenant in which more than half of the notes have the date of their file, most of these first.
-- params:  tenant text
-- returns: month text (YYYY-MM), notes bigint, file_dated bigint
-- index:   notes_newest_idx
SELECT
    to_char(n.created_at AT TIME ZONE 'UTC', 'YYYY-MM') AS month,
    count(*) AS notes, count(*) FILTER (WHERE n.date_source = 'file_modified') AS file_dated
FROM notes AS n WHERE n.tenant_id = :tenant
GROUP BY month
HAVING count(*) FILTER (WHERE n.date_source = 'file_modified') * 2 > count(*)
ORDER BY file_dated DESC, month;

-- name: list_names_in_source
-- The identifiers of a source's notes, not of documents, in order: those after one of them.
-- params:  tenant text, source text, after text ('' from the start), row_limit int
-- returns: external_id text
-- index:   notes_external_key
SELECT n.external_id
FROM notes AS n
WHERE
    n.tenant_id = :tenant AND n.source = :source AND n.external_id > :after AND n.document_id IS NULL
    AND (n.expires_at IS NULL OR n.expires_at > now())
ORDER BY n.external_id LIMIT :row_limit;

-- name: claim_expired_notes
-- Lock notes whose grace period after expiry is over until commit, earliest expiry first. Notes that another run has
-- claimed, or whose expiry is being changed, are left for the next purge.
-- params:  grace_hours int (>= 0), batch_size int (>= 1)
-- returns: id uuid
-- index:   notes_expiry_idx
SELECT n.id FROM notes AS n
WHERE n.expires_at <= now() - make_interval(hours => :grace_hours)
ORDER BY n.expires_at, n.id LIMIT :batch_size
FOR UPDATE SKIP LOCKED;

-- name: count_expired_notes$
-- How many notes are due for purging, claimed or not.
-- params:  grace_hours int (>= 0)
-- returns: bigint
SELECT count(*) FROM notes AS n WHERE n.expires_at <= now() - make_interval(hours => :grace_hours);

-- name: has_legacy_vectors$
-- Whether the notes table holds vectors made by the application that used it before this product.
-- returns: bool
SELECT count(*) > 0 AS found FROM pg_attribute AS a
WHERE a.attrelid = 'notes'::regclass AND a.attname = 'embedding' AND NOT a.attisdropped;

-- name: sample_legacy_vectors
-- Some short notes of a month whose legacy vector has not been adopted yet.
-- params:  model text, dimension int, month_start timestamptz, month_end timestamptz, max_chars int, row_limit int
-- returns: content text, embedding halfvec
SELECT n.content, l2_normalize(n.embedding::vector)::halfvec AS embedding
FROM notes AS n
WHERE
    n.created_at >= :month_start AND n.created_at < :month_end
    AND vector_dims(n.embedding) = :dimension AND vector_norm(n.embedding::vector) > 0
    AND n.content ~ '[^\s\x1c-\x1f]' AND char_length(n.content) <= :max_chars
    AND NOT EXISTS (SELECT FROM vectors AS v WHERE v.model = :model AND v.kind = 'note' AND v.note_id = n.id)
ORDER BY n.id LIMIT :row_limit;

-- name: adopt_legacy_vectors
-- Adopt, normalised, the whole-note vectors of the previous application. For an edited note the vector must have been
-- made again after the edit. Notes being deleted are skipped, as in keep_notes.
-- params:  month_start timestamptz, month_end timestamptz, batch_size int; {table}: whole-note vectors of {model}, of
--          {dimension}
-- returns: note_id uuid
-- index:   notes_newest_idx
INSERT INTO {table} (note_id, model, kind, embedding, text_sha256, tenant_id)
SELECT
    n.id, {model}, 'note' AS kind, l2_normalize(n.embedding::vector)::halfvec AS embedding, n.content_sha256,
    n.tenant_id
FROM notes AS n
LEFT JOIN {table} AS v ON v.note_id = n.id
WHERE
    n.created_at >= :month_start AND n.created_at < :month_end
    AND vector_dims(n.embedding) = {dimension} AND vector_norm(n.embedding::vector) > 0
    AND (
        v.note_id IS NULL
        OR (
            v.text_sha256 <> n.content_sha256
            AND v.embedding <> l2_normalize(n.embedding::vector)::halfvec
        )
    )
    AND (n.expires_at IS NULL OR n.expires_at > now()) AND n.content ~ '[^\s\x1c-\x1f]'
ORDER BY n.id LIMIT :batch_size
FOR KEY SHARE OF n SKIP LOCKED
ON CONFLICT (note_id, position) DO UPDATE
    SET embedding = excluded.embedding, text_sha256 = excluded.text_sha256
RETURNING note_id;

-- name: select_unusable_vectors
-- Notes of a month whose legacy vector a model cannot have made: it has another dimension or is zero.
-- params:  dimension int, month_start timestamptz, month_end timestamptz
-- returns: id uuid, dimension int
SELECT n.id, vector_dims(n.embedding) AS dimension FROM notes AS n
WHERE
    n.created_at >= :month_start AND n.created_at < :month_end
    AND (vector_dims(n.embedding) <> :dimension OR vector_norm(n.embedding::vector) = 0)
ORDER BY n.created_at DESC, n.id;

-- name: fetch_cited
-- The characters of ranges of notes as they are now; an expired note is gone.
-- params:  note_ids uuid[], starts int[], ends int[] (one range for each position)
--          before int, after int (characters read around each)
-- returns: number int (of the range, from 1), text, around text, content_sha256 bytea
-- index:   notes_pkey
SELECT
    f.number, substr(n.content, f.first + 1, f.last - f.first) AS text,
    substr(
        n.content, greatest(f.first - :before, 0) + 1, least(f.first, :before) + f.last - f.first + :after
    ) AS around,
    n.content_sha256
FROM unnest(:note_ids::uuid[], :starts::integer[], :ends::integer[]) WITH ORDINALITY AS f (note_id, first, last, number)
INNER JOIN notes AS n ON n.id = f.note_id
WHERE n.expires_at IS NULL OR n.expires_at > now();

-- name: open_note^
-- A note with its content, for a reader.
-- params:  note_id uuid, tenant text
-- returns: id uuid, source text, external_id text (else the id), title text, content text, created_at timestamptz,
--          updated_at timestamptz, tags text[], metadata jsonb, content_sha256 text, document_id uuid or null,
--          headings text[]; or nothing
-- index:   notes_pkey
SELECT
    n.id, n.source, coalesce(n.external_id, n.id::text) AS external_id, n.title, n.content, n.created_at, n.updated_at,
    n.tags, n.metadata, encode(n.content_sha256, 'hex') AS content_sha256, n.document_id, n.heading_path AS headings
FROM notes AS n
WHERE n.id = :note_id AND n.tenant_id = :tenant AND (n.expires_at IS NULL OR n.expires_at > now());

-- name: edit_note_metadata$
-- Change metadata of a note for good; null takes a field away. Not of a section, whose metadata are its document's.
-- params:  note_id uuid, tenant text, edits jsonb (an object)
-- returns: bool, whether it was changed
-- index:   notes_pkey
WITH changed AS (
    UPDATE notes AS n
    SET
        metadata = with_edits(n.metadata, :edits), edited = n.edited || :edits, updated_at = now(),
        expires_at = CASE
            WHEN :edits::jsonb ? 'expiresAt' THEN (:edits::jsonb ->> 'expiresAt')::timestamptz ELSE n.expires_at
        END
    WHERE n.id = :note_id AND n.tenant_id = :tenant AND n.document_id IS NULL
    RETURNING n.id
)

SELECT count(*) > 0 AS done FROM changed;

-- name: list_note_origins
-- Where notes come from.
-- params:  note_ids uuid[], tenant text
-- returns: id uuid, document_id uuid or null, source text, tags text[]
-- index:   notes_pkey
SELECT n.id, n.document_id, n.source, n.tags FROM notes AS n
WHERE n.id = any(:note_ids) AND n.tenant_id = :tenant ORDER BY n.id;

-- name: list_section_ids
-- The first sections of a document; a filter takes a thousand.
-- params:  document_id uuid, tenant text
-- returns: id uuid
-- index:   notes_document_idx
SELECT n.id FROM notes AS n
WHERE n.document_id = :document_id AND n.tenant_id = :tenant ORDER BY n.section_index LIMIT 1000;

-- name: list_tags
-- The tags of a tenant's notes, the most used first.
-- params:  tenant text, row_limit int
-- returns: tag text, notes bigint
-- index:   notes_newest_idx
SELECT t.tag, count(*) AS notes
FROM notes AS n CROSS JOIN unnest(n.tags) AS t (tag)
WHERE n.tenant_id = :tenant AND (n.expires_at IS NULL OR n.expires_at > now())
GROUP BY t.tag ORDER BY notes DESC, t.tag LIMIT :row_limit;

-- name: filter_values^
-- The values that the tenant's notes can be filtered by, for somebody whose filter no note meets.
-- returns: tags text[], sources text[], keys text[] (of the metadata), lists text[] (those whose value is a list or an
--          object in some note), first timestamptz, last timestamptz (null: none)
-- index:   notes_newest_idx
WITH visible AS MATERIALIZED (
    SELECT n.source, n.tags, n.metadata, n.created_at FROM notes AS n
    WHERE n.tenant_id = current_tenant() AND (n.expires_at IS NULL OR n.expires_at > now())
)

SELECT
    array(SELECT DISTINCT t.tag FROM visible AS v CROSS JOIN unnest(v.tags) AS t (tag) ORDER BY t.tag) AS tags,
    array(SELECT DISTINCT v.source FROM visible AS v WHERE v.source IS NOT NULL ORDER BY v.source) AS sources,
    array(
        SELECT DISTINCT k.name FROM visible AS v CROSS JOIN jsonb_object_keys(v.metadata) AS k (name) ORDER BY k.name
    ) AS keys,
    array(
        SELECT DISTINCT e.name FROM visible AS v CROSS JOIN jsonb_each(v.metadata) AS e (name, value)
        WHERE jsonb_typeof(e.value) IN ('array', 'object') ORDER BY e.name
    ) AS lists,
    (SELECT min(v.created_at) FROM visible AS v) AS first,
    (SELECT max(v.created_at) FROM visible AS v) AS last;

-- name: held_content^
-- The kinds of content in the database.
-- params:  tenant text, source text
-- returns: own bool (the tenant has notes of the source), others bool (and notes of other sources, not counting
--          documents), golden bool (and golden questions), notes bool (anybody has a note)
-- index:   notes_external_key
SELECT
    exists(SELECT FROM notes AS n WHERE n.tenant_id = :tenant AND n.source = :source) AS own,
    exists(
        SELECT FROM notes AS n WHERE n.tenant_id = :tenant AND n.source <> :source AND n.document_id IS NULL
    ) AS others,
    exists(SELECT FROM golden_dataset AS g WHERE g.tenant_id = :tenant) AS golden,
    exists(SELECT FROM notes) AS notes;

-- name: list_sources
-- The sources of a tenant's notes.
-- params:  tenant text
-- returns: source text, notes bigint, most notes first
SELECT n.source, count(*) AS notes FROM notes AS n WHERE n.tenant_id = :tenant
GROUP BY n.source ORDER BY notes DESC, n.source;

-- name: lock_mirror!
-- Let one process at a time mirror a source; the lock is released with the transaction.
-- params:  tenant text, source text
SELECT pg_advisory_xact_lock(hashtext('mirror ' || :tenant), hashtext(:source));

-- name: list_mirrored_notes
-- The notes of a source, not of documents, as a mirror of it sees them.
-- params:  tenant text, source text
-- returns: id uuid, external_id text, content_sha256 bytea, missing_since timestamptz or null, is_golden bool
-- index:   notes_external_key
SELECT
    n.id, n.external_id, n.content_sha256, n.missing_since,
    n.id IN (
        SELECT r.note_id FROM golden_dataset AS g CROSS JOIN unnest(g.relevant_note_ids) AS r (note_id)
        WHERE g.tenant_id = :tenant
    ) AS is_golden
FROM notes AS n
WHERE
    n.tenant_id = :tenant AND n.source = :source AND n.external_id IS NOT NULL AND n.document_id IS NULL
ORDER BY n.external_id;

-- name: drop_mirrored_notes!
-- Delete notes that another note with the same content stands for; the words index follows by itself.
-- params:  note_ids uuid[]
-- index:   notes_pkey
DELETE FROM notes WHERE id = ANY(:note_ids);

-- name: rename_notes!
-- Give notes the names of their files; no other note has these.
-- params:  note_ids uuid[], former text[], names text[] (one each)
-- index:   notes_pkey
UPDATE notes AS n SET external_id = g.name, addresses = array_append(n.addresses, g.former)
FROM unnest(:note_ids::uuid[], :former::text[], :names::text[]) AS g (id, former, name) WHERE n.id = g.id;

-- name: write_addresses!
-- Store the names of identical copies with their note, and forget the further names that are notes by now.
-- params:  tenant text, source text, mains text[], copies text[] (the copies, one each)
-- index:   notes_external_key
WITH named AS (
    SELECT g.main, array_agg(g.name) AS copies FROM unnest(:mains::text[], :copies::text[]) AS g (main, name)
    GROUP BY g.main
),

wanted AS (
    SELECT
        n.id,
        array(
            SELECT DISTINCT a.name FROM unnest(n.addresses || coalesce(m.copies, '{}')) AS a (name)
            WHERE
                NOT EXISTS (
                    SELECT FROM notes AS o
                    WHERE o.tenant_id = :tenant AND o.source = :source AND o.external_id = a.name
                )
            ORDER BY a.name
        ) AS addresses
    FROM notes AS n LEFT JOIN named AS m ON m.main = n.external_id
    WHERE n.tenant_id = :tenant AND n.source = :source AND (n.addresses <> '{}' OR m.main IS NOT NULL)
)

UPDATE notes AS n SET addresses = w.addresses FROM wanted AS w
WHERE n.id = w.id AND n.addresses <> w.addresses;

-- name: mark_missing$
-- Record which notes of a source have no file any more, and which have one again.
-- params:  tenant text, source text, note_ids uuid[] (all without a file)
-- returns: timestamptz (now)
-- index:   notes_external_key
WITH marked AS (
    UPDATE notes AS n SET missing_since = CASE WHEN n.id = ANY(:note_ids) THEN now() END
    WHERE
        n.tenant_id = :tenant AND n.source = :source AND n.document_id IS NULL
        AND (n.missing_since IS NULL) = (n.id = ANY(:note_ids))
)

SELECT now();

-- name: count_missing_due$
-- How many notes of a source have been without a file for long enough.
-- params:  tenant text, source text, grace_days int
-- returns: bigint
-- index:   notes_external_key
SELECT count(*) FROM notes AS n
WHERE
    n.tenant_id = :tenant AND n.source = :source
    AND n.missing_since <= now() - make_interval(days => :grace_days);
