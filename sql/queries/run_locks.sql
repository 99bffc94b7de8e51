-- name: hold_run_lock!
-- Take the lock of a run for this session. PostgreSQL releases it when the session ends for any reason.
-- params: run_id text
SELECT pg_advisory_lock(hashtextextended('brain-sync-rag run ' || :run_id, 0));

-- name: list_held_run_locks
-- The given runs whose lock some session holds. pg_locks shows a bigint key as two halves, with objsubid 1.
-- params:  run_ids text[]
-- returns: run_id text
SELECT wanted.run_id
FROM unnest(:run_ids::text[]) AS wanted (run_id)
WHERE EXISTS (
    SELECT FROM pg_locks AS l
    WHERE
        l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
        AND l.database = (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database())
        AND (l.classid::bigint << 32) | l.objid::bigint
        = hashtextextended('brain-sync-rag run ' || wanted.run_id, 0)
);
