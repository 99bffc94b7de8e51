-- name: write_position$
-- The present position in the write-ahead log of the primary; a standby refuses this.
-- returns: numeric, bytes
SELECT pg_current_wal_lsn() - '0/0'::pg_lsn;

-- name: reached_position$
-- The present position of the server that is read as the primary.
-- returns: numeric, bytes
SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END - '0/0'::pg_lsn;

-- name: replay_position$
-- The position up to which a standby has replayed the write-ahead log; null for a server that is not a standby.
-- returns: numeric, bytes, or null
SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() - '0/0'::pg_lsn END;
