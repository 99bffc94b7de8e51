-- The vectors of chunks and whole notes, of all kinds, and the notes whose chunks wait for some.

-- name: claim_queued_notes
-- The newest queued notes of a month, locked until commit so that two runs never share one.
-- params:  model text, month_start timestamptz, month_end timestamptz, skipped uuid[], batch_size int
-- returns: note_id uuid, created_at timestamptz, newest first
SELECT p.note_id, n.created_at FROM pending_vectors AS p
INNER JOIN notes AS n ON n.id = p.note_id
WHERE
    p.model = :model AND n.created_at >= :month_start AND n.created_at < :month_end
    AND p.note_id <> ALL(:skipped)
    AND (n.chunked_at IS NOT NULL OR n.expires_at IS NULL OR n.expires_at > now())
ORDER BY n.created_at DESC, n.id LIMIT :batch_size
FOR UPDATE OF p SKIP LOCKED;

-- name: count_queued_notes$
-- How many notes of a month claim_queued_notes would find, locked or not.
-- params:  model text, month_start timestamptz, month_end timestamptz, skipped uuid[]
-- returns: bigint
SELECT count(*) AS notes FROM pending_vectors AS p
INNER JOIN notes AS n ON n.id = p.note_id
WHERE
    p.model = :model AND n.created_at >= :month_start AND n.created_at < :month_end
    AND p.note_id <> ALL(:skipped)
    AND (n.chunked_at IS NOT NULL OR n.expires_at IS NULL OR n.expires_at > now());

-- name: queue_is_empty$
-- Whether no note of a range of months is queued.
-- params:  model text, month_start timestamptz, month_end timestamptz
-- returns: bool
SELECT
    NOT EXISTS (
        SELECT FROM pending_vectors AS p INNER JOIN notes AS n ON n.id = p.note_id
        WHERE p.model = :model AND n.created_at >= :month_start AND n.created_at < :month_end
    ) AS is_empty;

-- name: count_pending_notes
-- How many chunked notes wait for vectors of their chunks, by model.
-- returns: model text, notes bigint
-- index:   pending_vectors_pkey
SELECT p.model, p.notes FROM count_pending_notes() AS p;

-- name: claim_notes_to_embed
-- Claim notes of a month without a current whole-note vector. Notes that Python considers blank have no vector. The
-- claim lasts until commit, so that two runs never share a note. It is an advisory lock: a row lock would keep the note
-- from being edited or chunked while the model works. OFFSET 0, and no ORDER BY after the lock, keep PostgreSQL from
-- locking more notes than it returns.
-- params:  model text, month_start timestamptz, month_end timestamptz, skipped uuid[], batch_size int
-- returns: note_id uuid, created_at timestamptz, newest first; another run may just have embedded one
-- noqa: disable=AM09
SELECT c.id AS note_id, c.created_at FROM (
    SELECT n.id, n.created_at FROM notes AS n
    LEFT JOIN vectors AS v ON v.model = :model AND v.kind = 'note' AND v.note_id = n.id
    WHERE
        n.created_at >= :month_start AND n.created_at < :month_end
        AND v.text_sha256 IS DISTINCT FROM n.content_sha256
        AND (n.expires_at IS NULL OR n.expires_at > now())
        AND n.id <> ALL(:skipped) AND n.content ~ '[^\s\x1c-\x1f]'
    ORDER BY n.created_at DESC, n.id OFFSET 0
) AS c
WHERE pg_try_advisory_xact_lock(hashtextextended(:model || ' ' || c.id::text, 0))
LIMIT :batch_size;
-- noqa: enable=AM09

-- name: count_notes_to_embed$
-- How many notes of a month lack a current whole-note vector, claimed or not.
-- params:  model text, month_start timestamptz, month_end timestamptz, skipped uuid[]
-- returns: bigint
SELECT count(*) FROM notes AS n
LEFT JOIN vectors AS v ON v.model = :model AND v.kind = 'note' AND v.note_id = n.id
WHERE
    n.created_at >= :month_start AND n.created_at < :month_end
    AND v.text_sha256 IS DISTINCT FROM n.content_sha256
    AND (n.expires_at IS NULL OR n.expires_at > now())
    AND n.id <> ALL(:skipped) AND n.content ~ '[^\s\x1c-\x1f]';

-- name: select_chunks_to_embed
-- The chunks of the given notes that are searched: of an edited note only the provisional one, for the others will be
-- replaced.
-- params:  note_ids uuid[]
-- returns: owner uuid, note_id uuid, title text, tags text[], content text, shown text (rendered), context text
-- index:   chunks_position_key
SELECT c.id AS owner, c.note_id, n.title, n.tags, c.content, coalesce(c.rendered, c.content) AS shown, c.context
FROM chunks AS c INNER JOIN notes AS n ON n.id = c.note_id
WHERE c.note_id = ANY(:note_ids) AND (n.chunked_at IS NULL) = (c.id = c.note_id)
ORDER BY c.note_id, c.chunk_index;

-- name: select_notes_to_embed
-- The given notes as a whole.
-- params:  note_ids uuid[]
-- returns: as select_chunks_to_embed
SELECT n.id AS owner, n.id AS note_id, n.title, n.tags, n.content, n.content AS shown, '' AS context
FROM notes AS n WHERE n.id = ANY(:note_ids) ORDER BY n.created_at DESC, n.id;

-- name: list_stored_vectors
-- Which vectors some chunks or notes have, without the vectors.
-- params:  owners uuid[]; {table}: of a model and kind; {owner}: its column
-- returns: owner_id uuid, position int, start_char int, end_char int, text_sha256 bytea
-- index:   the primary key of the partition
SELECT v.{owner} AS owner_id, v.position, v.start_char, v.end_char, v.text_sha256
FROM {table} AS v WHERE v.{owner} = ANY(:owners) ORDER BY v.{owner}, v.position;

-- name: find_reusable_vectors
-- Vectors that a model already has for the given texts, of any kind.
-- params:  model text, hashes bytea[]
-- returns: sha256 bytea, embedding halfvec
-- index:   vectors_text_idx
SELECT DISTINCT ON (v.text_sha256) v.text_sha256 AS sha256, v.embedding FROM vectors AS v
WHERE v.model = :model AND v.text_sha256 = ANY(:hashes)
ORDER BY v.text_sha256, v.embedding;

-- name: keep_chunks
-- The given chunks that still exist; the lock keeps them until commit. Chunks that are locked already are skipped:
-- their note is being deleted, and that deletion waits for this run to release the queue, so waiting for it would
-- deadlock.
-- params:  owners uuid[]
-- returns: owner uuid, tenant_id text
SELECT c.id AS owner, c.tenant_id FROM chunks AS c WHERE c.id = ANY(:owners) ORDER BY c.id
FOR KEY SHARE OF c SKIP LOCKED;

-- name: keep_notes
-- The same for notes. A deletion of several may hold one and wait for another that this run holds.
-- params:  owners uuid[]
-- returns: owner uuid, tenant_id text
SELECT n.id AS owner, n.tenant_id FROM notes AS n WHERE n.id = ANY(:owners) ORDER BY n.id
FOR KEY SHARE OF n SKIP LOCKED;

-- name: delete_vectors!
-- params:  owners uuid[]; {table}: of a model and kind; {owner}: its column
-- index:   the primary key of the partition
DELETE FROM {table} WHERE {owner} = ANY(:owners);

-- name: copy_vectors!
-- params:  {table}: of a model and kind; {owner}: its column
COPY {table} ({owner}, position, start_char, end_char, model, kind, tenant_id, text_sha256, embedding)
FROM STDIN (FORMAT "binary");

-- name: complete_pending_notes
-- Remove notes from a model's queue, unless the text of a chunk has changed since, and store when the transaction began
-- and ended.
-- params:  model text, note_ids uuid[], vectors int; for each of their chunks owners uuid[], contents bytea[],
--          contexts bytea[] (SHA-256)
-- returns: note_id uuid
WITH done AS (
    DELETE FROM pending_vectors AS p
    WHERE
        p.model = :model AND p.note_id = ANY(:note_ids)
        AND NOT EXISTS (
            SELECT FROM chunks AS c
            INNER JOIN notes AS n ON n.id = c.note_id
            LEFT JOIN
                unnest(:owners::uuid[], :contents::bytea[], :contexts::bytea[]) AS e (id, content, context)
                ON e.id = c.id
            WHERE
                c.note_id = p.note_id AND (n.chunked_at IS NULL) = (c.id = c.note_id) AND (
                    e.content IS DISTINCT FROM text_sha256(coalesce(c.rendered, c.content))
                    OR e.context IS DISTINCT FROM text_sha256(c.context)
                )
        )
    RETURNING p.note_id
),

work AS (
    INSERT INTO embedding_work (model, notes, vectors, started_at, finished_at)
    SELECT :model, count(*) AS notes, :vectors, now() AS started_at, clock_timestamp() AS finished_at
    FROM done HAVING count(*) > 0
)

SELECT d.note_id FROM done AS d;

-- name: count_vector_gaps
-- How many vectors of a model are missing or faulty in a range of months, by kind. Of notes that wait for chunks only
-- faults count.
-- params:  model text, dimension int, month_start timestamptz, month_end timestamptz
-- returns: kind text, owners bigint (chunks or notes), vectors bigint, missing bigint (owners without any),
--          stale bigint (of another text, outside their chunk, or of a chunk that waits for new ones),
--          wrong_dimension bigint, wrong_norms bigint (whose length is not 1, apart from the rounding of halfvec)
WITH months AS MATERIALIZED (
    SELECT n.id, n.content_sha256, n.chunked_at, n.content ~ '[^\s\x1c-\x1f]' AS has_text FROM notes AS n
    WHERE n.created_at >= :month_start AND n.created_at < :month_end
),

found AS (
    SELECT
        k.kind, c.id AS owner, v.chunk_id IS NOT NULL AS is_there, n.chunked_at IS NOT NULL AS is_due, v.embedding,
        CASE k.kind
            WHEN 'chunk' THEN v.text_sha256 <> text_sha256(coalesce(c.rendered, c.content))
            WHEN 'contextual' THEN v.text_sha256 <> text_sha256(c.context || E'\n' || coalesce(c.rendered, c.content))
            ELSE p.note_id IS NOT NULL OR v.end_char > char_length(c.content)
        END AS is_stale
    FROM months AS n
    INNER JOIN chunks AS c ON c.note_id = n.id
    INNER JOIN embedding_models AS m ON m.name = :model
    CROSS JOIN LATERAL unnest(m.kinds) AS k (kind)
    LEFT JOIN vectors AS v ON v.model = :model AND v.kind = k.kind AND v.chunk_id = c.id
    LEFT JOIN pending_vectors AS p ON p.model = :model AND p.note_id = n.id
    WHERE k.kind <> 'note'
    UNION ALL
    SELECT
        'note' AS kind, n.id, v.note_id IS NOT NULL AS is_there, n.has_text AS is_due, v.embedding,
        v.text_sha256 <> n.content_sha256 AS is_stale
    FROM months AS n
    INNER JOIN embedding_models AS m ON m.name = :model AND 'note' = ANY(m.kinds)
    LEFT JOIN vectors AS v ON v.model = m.name AND v.kind = 'note' AND v.note_id = n.id
)

SELECT
    f.kind, count(DISTINCT f.owner) FILTER (WHERE f.is_due) AS owners, count(*) FILTER (WHERE f.is_there) AS vectors,
    count(*) FILTER (WHERE f.is_due AND NOT f.is_there) AS missing,
    count(*) FILTER (WHERE f.is_due AND f.is_there AND f.is_stale) AS stale,
    count(*) FILTER (WHERE vector_dims(f.embedding) <> :dimension) AS wrong_dimension,
    count(*) FILTER (WHERE l2_norm(f.embedding) NOT BETWEEN 0.99 AND 1.01) AS wrong_norms
FROM found AS f GROUP BY f.kind ORDER BY f.kind;

-- name: sample_vectors
-- Some vectors of chunks of each kind and of each of a range of months, with what their texts are made of, chosen by
-- the hash of their chunk and their number: always the same ones. Those of notes that wait for new ones are left out.
-- params:  model text, month_start timestamptz, month_end timestamptz, per_month int
-- returns: kind text, title text, tags text[], content text, shown text (rendered) and context text (of the chunk),
--          start_char int and end_char int (of a window), text_sha256 bytea (of the text that was embedded),
--          embedding halfvec
WITH numbered AS (
    SELECT
        v.kind, v.chunk_id, v.position,
        row_number() OVER (
            PARTITION BY v.kind, date_trunc('month', n.created_at, 'UTC')
            ORDER BY sha256(uuid_send(v.chunk_id) || int4send(v.position)), v.chunk_id, v.position
        ) AS place
    FROM notes AS n
    INNER JOIN chunks AS c ON c.note_id = n.id
    INNER JOIN vectors AS v ON v.model = :model AND v.chunk_id = c.id
    LEFT JOIN pending_vectors AS p ON p.model = :model AND p.note_id = n.id
    WHERE n.created_at >= :month_start AND n.created_at < :month_end AND p.note_id IS NULL
)

SELECT
    v.kind, n.title, n.tags, c.content, coalesce(c.rendered, c.content) AS shown, c.context, v.start_char, v.end_char,
    v.text_sha256, v.embedding
FROM numbered AS s
INNER JOIN chunks AS c ON c.id = s.chunk_id
INNER JOIN notes AS n ON n.id = c.note_id
INNER JOIN vectors AS v
    ON v.model = :model AND v.kind = s.kind AND v.chunk_id = s.chunk_id AND v.position = s.position
WHERE s.place <= :per_month
ORDER BY s.kind, s.chunk_id, s.position;

-- name: queue_owners_of_texts!
-- Queue the notes whose chunks have vectors of the given texts.
-- params:  model text, hashes bytea[]
-- index:   vectors_text_idx
INSERT INTO pending_vectors (model, note_id, tenant_id)
SELECT DISTINCT :model, c.note_id, c.tenant_id
FROM vectors AS v INNER JOIN chunks AS c ON c.id = v.chunk_id
WHERE v.model = :model AND v.text_sha256 = ANY(:hashes) ORDER BY c.note_id
ON CONFLICT (model, note_id) DO UPDATE SET requested_at = now();

-- name: discard_vectors^
-- Delete the vectors of the given texts, wherever they are, so that none is found by its text.
-- params:  model text, hashes bytea[]
-- returns: vectors bigint, notes bigint (that had some)
-- index:   vectors_text_idx
WITH gone AS (
    DELETE FROM vectors AS v WHERE v.model = :model AND v.text_sha256 = ANY(:hashes) RETURNING v.chunk_id, v.note_id
)

SELECT count(*) AS vectors, count(DISTINCT coalesce(g.note_id, c.note_id)) AS notes
FROM gone AS g LEFT JOIN chunks AS c ON c.id = g.chunk_id;
