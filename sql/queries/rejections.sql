-- name: list_rejection_roots
-- The folders and files of a source whose last reading had rejected records.
-- params:  tenant text, source text
-- returns: root text
-- index:   rejected_records_pkey
SELECT DISTINCT r.root FROM rejected_records AS r WHERE r.tenant_id = :tenant AND r.source = :source;

-- name: replace_rejections!
-- Store the rejected records of one reading, in place of those of the previous reading.
-- params:  tenant text, source text, root text, locations text[], reasons jsonb[] (one per location), covered text[]
--          (other roots, which this reading has read again)
-- index:   rejected_records_pkey
WITH former AS (
    DELETE FROM rejected_records AS r
    WHERE
        r.tenant_id = :tenant AND r.source = :source
        AND (r.root = ANY(:covered) OR (r.root = :root AND r.position >= cardinality(:locations::text[])))
)

INSERT INTO rejected_records AS r (tenant_id, source, root, position, location, reason)
SELECT :tenant, :source, :root, g.place - 1 AS position, g.location, g.reason
FROM unnest(:locations::text[], :reasons::jsonb[]) WITH ORDINALITY AS g (location, reason, place)
ON CONFLICT (tenant_id, source, root, position) DO UPDATE
    SET location = excluded.location, reason = excluded.reason, rejected_at = now()
    WHERE (r.location, r.reason) IS DISTINCT FROM (excluded.location, excluded.reason);

-- name: forget_rejections!
-- Delete the rejected records of a reading that are in a part of it, which was read again.
-- params:  tenant text, source text, root text, part text (relative path of a file or folder in the root)
-- index:   rejected_records_pkey
DELETE FROM rejected_records AS r
WHERE
    r.tenant_id = :tenant AND r.source = :source AND r.root = :root
    AND (
        r.location = :part OR starts_with(r.location, :part || ':') OR starts_with(r.location, :part || '/')
    );

-- name: list_rejections
-- The rejected records of the tenant, in the order of their readings.
-- params:  row_limit int or null
-- returns: source text, root text, location text, reason jsonb, rejected_at timestamptz, total bigint (without the
--          limit)
-- index:   rejected_records_pkey
SELECT r.source, r.root, r.location, r.reason, r.rejected_at, count(*) OVER () AS total
FROM rejected_records AS r
WHERE r.tenant_id = current_tenant()
ORDER BY r.source, r.root, r.position LIMIT :row_limit;

-- name: list_undated
-- The notes whose source states no date, not even in the name, with the date of their file, newest first.
-- params:  row_limit int
-- returns: external_id text, created_at timestamptz, total bigint (without the limit)
SELECT
    coalesce(n.external_id, n.id::text) AS external_id, n.created_at, count(*) OVER () AS total
FROM notes AS n
WHERE n.tenant_id = current_tenant() AND n.date_source = 'file_modified'
ORDER BY n.created_at DESC, n.id LIMIT :row_limit;
