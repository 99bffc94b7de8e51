-- name: read_index_version^
-- What answers to a tenant are cached under: these values together name one state of what is searched. The lineage is
-- this database, on this server, since its last start or crash (which restarts the statistics of the server), and this
-- sequence: a crash may take back the last numbers, and a restored database counts from an old one.
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
-- The number alone: what an evaluation is of.
-- returns: bigint
SELECT v.last_value FROM index_version AS v;

-- name: bump_index_version!
-- For a change that no trigger sees; writing the row is one that they do.
UPDATE index_state SET only_row = TRUE;
