-- name: read_index_version^
-- The cache key of a tenant's results: these values together identify one state of the searched data. The number alone
-- is not enough, since a crash may lose the last numbers and a restored database counts on from an old one. So the
-- lineage identifies the database, the server, its last start or crash (which resets the server's statistics), and the
-- sequence.
-- params:  tenant text
-- returns: number bigint, lineage text, next_expiry timestamptz or null, settled bool (whether to keep an answer)
-- index:   notes_expiry_idx
SELECT
    v.number,
    concat_ws(
        '/', s.database_id, d.oid, 'index_version'::regclass::oid,
        extract(EPOCH FROM pg_postmaster_start_time()), extract(EPOCH FROM b.stats_reset)
    ) AS lineage,
    v.next_expiry, v.settled
FROM read_index_version(:tenant) AS v
CROSS JOIN index_state AS s
CROSS JOIN pg_stat_bgwriter AS b
CROSS JOIN pg_database AS d
WHERE d.datname = current_database();

-- name: index_version$
-- The number alone, which evaluations store as the version they measured.
-- returns: bigint
SELECT v.last_value FROM index_version AS v;

-- name: bump_index_version!
-- Raise the version after a change that no trigger sees: the triggers do see the write of this row.
UPDATE index_state SET only_row = TRUE;
