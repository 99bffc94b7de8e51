-- name: lock_holds!
-- Allow one change at a time, because whether there is anything to write depends on the last hold.
LOCK TABLE migration_holds IN SHARE ROW EXCLUSIVE MODE;

-- name: current_hold^
-- The hold that keeps the migration from continuing; no row if there is none.
-- returns: kind text ('stopped', 'rolled_back'), reason text, run_id text or null, created_at timestamptz
SELECT h.kind, h.reason, h.run_id, h.created_at
FROM (SELECT l.* FROM migration_holds AS l ORDER BY l.id DESC LIMIT 1) AS h
WHERE h.kind <> 'resumed';

-- name: insert_hold!
-- params:  kind text, reason text, run_id text or null
INSERT INTO migration_holds (kind, reason, run_id) VALUES (:kind, :reason, :run_id);
