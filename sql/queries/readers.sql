-- name: write_position$
-- How far the write-ahead log of the primary is; refused by a standby.
-- returns: numeric, bytes
SELECT pg_current_wal_lsn() - '0/0'::pg_lsn;

-- name: reached_position$
-- How far a server is that is read as the primary.
-- returns: numeric, bytes
SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END - '0/0'::pg_lsn;

-- name: replay_position$
-- How far a standby has replayed the write-ahead log; null for a server that is none, or not any more.
-- returns: numeric, bytes, or null
SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() - '0/0'::pg_lsn END;
