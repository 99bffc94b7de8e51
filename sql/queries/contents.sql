-- name: is_read_only$
-- Whether this server is read-only, as a standby is.
-- returns: bool
SELECT current_setting('transaction_read_only') = 'on';

-- name: lock_contents!
-- Let one transaction at a time count changed months; readers and writers of notes never wait.
LOCK TABLE month_contents IN SHARE ROW EXCLUSIVE MODE;

-- name: count_changed_months!
-- Compute the fingerprints of the marked months anew. It is one statement, so that marks and contents are read in one
-- snapshot: the mark of a writer that commits later stays.
WITH marks AS (
    DELETE FROM changed_months AS m RETURNING m.tenant_id, m.month, m.part
),

wanted AS MATERIALIZED (
    SELECT
        array_agg(d.tenant_id ORDER BY d.tenant_id, d.month) AS tenants,
        array_agg(d.month ORDER BY d.tenant_id, d.month) AS months
    FROM (SELECT DISTINCT m.tenant_id, m.month FROM marks AS m) AS d
),

counted AS MATERIALIZED (
    SELECT
        c.*, left(encode(text_sha256(c.note_ids::text || c.note_hashes::text), 'hex'), 16) AS fingerprint,
        (
            SELECT count(*) FROM marks AS m
            WHERE (m.tenant_id, m.month, m.part) = (c.tenant_id, c.month, c.part)
        ) AS writes
    FROM count_months((SELECT w.tenants FROM wanted AS w), (SELECT w.months FROM wanted AS w)) AS c
),

past AS (
    UPDATE month_contents AS p SET is_present = FALSE
    WHERE
        p.is_present AND (p.tenant_id, p.month) IN (SELECT m.tenant_id, m.month FROM marks AS m)
        AND NOT EXISTS (
            SELECT FROM counted AS c
            WHERE (c.tenant_id, c.month, c.part, c.fingerprint) = (p.tenant_id, p.month, p.part, p.fingerprint)
        )
)

INSERT INTO month_contents AS p (
    tenant_id, month, part, fingerprint, revision, row_count, note_ids, note_hashes
)
SELECT c.tenant_id, c.month, c.part, c.fingerprint, c.writes, c.row_count, c.note_ids, c.note_hashes
FROM counted AS c
ON CONFLICT (tenant_id, month, part, fingerprint) DO UPDATE
    SET is_present = TRUE, revision = p.revision + excluded.revision;

-- name: forget_contents!
-- Delete past contents that neither the latest evaluation of a configuration nor a calibration names.
DELETE FROM month_contents AS c
WHERE
    NOT c.is_present
    AND NOT EXISTS (
        SELECT FROM (
            SELECT DISTINCT ON (e.tenant_id, e.configuration) e.tenant_id, e.contents FROM evaluation_results AS e
            ORDER BY e.tenant_id, e.configuration, e.created_at DESC, e.id
        ) AS l
        WHERE
            l.tenant_id = c.tenant_id
            AND ltrim(l.contents -> c.month::text ->> c.part, '~') = c.fingerprint
    )
    AND NOT EXISTS (
        SELECT FROM calibrations AS k
        WHERE k.tenant_id = c.tenant_id AND ltrim(k.contents -> c.month::text ->> c.part, '~') = c.fingerprint
    );

-- name: read_contents
-- The fingerprints of what a configuration of the tenant searches now. The word statistics, the models and the
-- approximate indexes of their vectors belong to no month: a model that was registered again, or whose tables were made
-- anew, counts as another one; so does an index. A month that was written to after the last count is returned as
-- uncounted.
-- params:  tenant text, parts text[] (model/e5_small for a model itself; chunk_index/e5_small and so on for the indexes
--          of its vectors)
-- returns: month text, part text, fingerprint text, revision bigint
SELECT c.month::text AS month, c.part, c.fingerprint, c.revision
FROM month_contents AS c
WHERE c.tenant_id = :tenant AND c.is_present AND c.part = ANY(:parts)
UNION ALL
SELECT m.month::text AS month, 'uncounted' AS part, 'uncounted' AS fingerprint, 0 AS revision
FROM changed_months AS m
WHERE m.tenant_id = :tenant GROUP BY m.month
UNION ALL
SELECT
    '-infinity' AS month, 'model/' || m.name AS part,
    left(
        encode(
            text_sha256(
                row(
                    m.digest, m.dimension, m.similarity_threshold, m.cosine_low, m.cosine_high,
                    m.created_at,
                    to_regclass('vectors_' || m.name)::oid
                )::text
            ),
            'hex'
        ),
        16
    ) AS fingerprint,
    0 AS revision
FROM embedding_models AS m WHERE m.retired_at IS NULL AND 'model/' || m.name = ANY(:parts)
UNION ALL
SELECT
    '-infinity' AS month, t.part || '/' || m.name AS part,
    string_agg(pg_relation_filenode(i.indexrelid)::text, ' ' ORDER BY i.indexrelid) AS fingerprint, 0 AS revision
FROM embedding_models AS m
CROSS JOIN
    LATERAL (
        SELECT k.kind || '_index' AS part, to_regclass('vectors_' || m.name || '_' || k.kind) AS of_table
        FROM unnest(m.kinds) AS k (kind)
    ) AS t
INNER JOIN pg_index AS i ON i.indrelid = t.of_table
INNER JOIN pg_class AS x ON x.oid = i.indexrelid
INNER JOIN pg_am AS a ON a.oid = x.relam
WHERE m.retired_at IS NULL AND a.amname = 'hnsw' AND i.indisvalid AND t.part || '/' || m.name = ANY(:parts)
GROUP BY t.part, m.name;

-- name: read_clock$
-- The database's clock.
-- returns: timestamptz
SELECT clock_timestamp();

-- name: read_changes^
-- How many notes a tenant has, how many of them changed or expired since an evaluation, and how many of these are
-- relevant to some questions.
-- params:  tenant text, moved jsonb (an array of {month, part, before, after}; the last two are fingerprints or null,
--          and before may follow a ~), measured_at timestamptz, relevant uuid[]
-- returns: notes bigint, changed bigint, relevant bigint, expired bigint, is_known bool (false if what was there is not
--          kept any more, so that it cannot be compared note by note)
WITH moved AS MATERIALIZED (
    SELECT
        b.note_ids AS old_ids, b.note_hashes AS old_hashes, a.note_ids AS new_ids, a.note_hashes AS new_hashes,
        m.before IS NULL OR b.part IS NOT NULL AS is_known
    FROM jsonb_to_recordset(:moved) AS m (month date, part text, before text, after text)
    LEFT JOIN month_contents AS b
        ON (b.tenant_id, b.month, b.part, b.fingerprint) = (:tenant, m.month, m.part, ltrim(m.before, '~'))
    LEFT JOIN month_contents AS a
        ON (a.tenant_id, a.month, a.part, a.fingerprint) = (:tenant, m.month, m.part, m.after)
),

expired AS MATERIALIZED (
    SELECT n.id FROM notes AS n CROSS JOIN clock_timestamp() AS c (now)
    WHERE
        n.tenant_id = :tenant
        AND n.expires_at > least(:measured_at, c.now) AND n.expires_at <= greatest(:measured_at, c.now)
),

changed AS MATERIALIZED (
    SELECT d.id
    FROM moved AS m
    CROSS JOIN
        LATERAL (
            SELECT coalesce(o.id, n.id) AS id
            FROM unnest(m.old_ids, m.old_hashes) AS o (id, hash)
            FULL JOIN unnest(m.new_ids, m.new_hashes) AS n (id, hash) ON n.id = o.id
            WHERE o.hash IS DISTINCT FROM n.hash
        ) AS d
    UNION
    SELECT e.id FROM expired AS e
)

SELECT
    (SELECT count(*) FROM notes AS n WHERE n.tenant_id = :tenant) AS notes,
    (SELECT count(*) FROM changed) AS changed,
    (SELECT count(*) FROM changed AS c WHERE c.id = ANY(:relevant)) AS relevant,
    (SELECT count(*) FROM expired) AS expired,
    (SELECT coalesce(bool_and(m.is_known), TRUE) FROM moved AS m) AS is_known;
