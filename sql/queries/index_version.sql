-- name: read_index_version^
-- The cache key of a tenant's results: these values together identify one state of the searched data. The number alone
-- is not enough, since a crash may lose the last changes and a restored database counts on from an old number. So the
-- lineage identifies the database, the server, its last start or crash (which resets the server's statistics), and the
-- table of changes. Between two expiries the same notes are found, so the next one is part of the version; as searches
-- do, it counts from the beginning of the transaction.
-- params:  tenant text
-- returns: number bigint, lineage text, next_expiry timestamptz or null
-- index:   index_changes_pkey, notes_expiry_idx
SELECT
    (
        SELECT coalesce(sum(c.changes), 0)::bigint FROM index_changes AS c
        WHERE c.tenant_id = '' OR c.tenant_id = :tenant
    ) AS number,
    concat_ws(
        '/', s.database_id, d.oid, 'index_changes'::regclass::oid,
        extract(EPOCH FROM pg_postmaster_start_time()), extract(EPOCH FROM b.stats_reset)
    ) AS lineage,
    (
        SELECT min(n.expires_at) FROM notes AS n
        WHERE n.tenant_id = :tenant AND n.expires_at > now()
    ) AS next_expiry
FROM index_state AS s
CROSS JOIN pg_stat_bgwriter AS b
CROSS JOIN pg_database AS d
WHERE d.datname = current_database();

-- name: bump_index_version!
-- Raise the version after a change that no trigger sees, by writing a row that the triggers do see.
UPDATE index_state SET only_row = TRUE;
