-- name: insert_evaluation_request^
-- Request an evaluation for the connection's tenant; if the same request waits already, return that one.
-- params:  tenant text, configuration text, requested_by text
-- returns: id uuid, configuration text, state text, requested_at timestamptz, started_at timestamptz or null,
--          finished_at timestamptz or null, attempts int, evaluation_id uuid or null, error jsonb or null
-- index:   evaluation_requests_open_idx
WITH waiting AS (
    SELECT r.id FROM evaluation_requests AS r
    WHERE r.tenant_id = :tenant AND r.configuration = :configuration AND r.state = 'queued'
    ORDER BY r.requested_at, r.id LIMIT 1
),

inserted AS (
    INSERT INTO evaluation_requests (tenant_id, configuration, requested_by)
    SELECT :tenant, :configuration, :requested_by
    WHERE NOT EXISTS (SELECT FROM waiting)
    RETURNING
        id, configuration, state, requested_at, started_at, finished_at, attempts, evaluation_id, error
)

SELECT
    i.id, i.configuration, i.state, i.requested_at, i.started_at, i.finished_at, i.attempts, i.evaluation_id, i.error
FROM inserted AS i
UNION ALL
SELECT
    r.id, r.configuration, r.state, r.requested_at, r.started_at, r.finished_at, r.attempts, r.evaluation_id, r.error
FROM evaluation_requests AS r INNER JOIN waiting AS w ON w.id = r.id
WHERE r.tenant_id = :tenant;

-- name: fetch_evaluation_request^
-- A request of a tenant.
-- params:  tenant text, id uuid
-- returns: as insert_evaluation_request; or nothing
-- index:   evaluation_requests_pkey
SELECT
    r.id, r.configuration, r.state, r.requested_at, r.started_at, r.finished_at, r.attempts, r.evaluation_id, r.error
FROM evaluation_requests AS r
WHERE r.tenant_id = :tenant AND r.id = :id;

-- name: list_open_evaluation_requests
-- The requests of all tenants that are not finished, oldest first.
-- returns: tenant_id text, id uuid, configuration text, state text
-- index:   evaluation_requests_open_idx
SELECT r.tenant_id, r.id, r.configuration, r.state FROM evaluation_requests AS r
WHERE r.state IN ('queued', 'running') ORDER BY r.requested_at, r.id;

-- name: begin_evaluation_request$
-- Begin an unfinished request, also one whose run was killed; return how often it was begun.
-- params:  tenant text, id uuid
-- returns: int, or nothing if it is finished
-- index:   evaluation_requests_pkey
UPDATE evaluation_requests AS r
SET state = 'running', started_at = now(), attempts = r.attempts + 1
WHERE r.tenant_id = :tenant AND r.id = :id AND r.state IN ('queued', 'running')
RETURNING r.attempts;

-- name: finish_evaluation_request!
-- End a request with its evaluation or with an error.
-- params:  tenant text, id uuid, evaluation_id uuid or null, error jsonb or null
-- index:   evaluation_requests_pkey
UPDATE evaluation_requests AS r
SET
    state = CASE WHEN :error::jsonb IS NULL THEN 'done' ELSE 'failed' END,
    finished_at = now(), evaluation_id = :evaluation_id, error = :error
WHERE r.tenant_id = :tenant AND r.id = :id;

-- name: count_evaluation_requests$
-- How many requests of a tenant are not finished.
-- params:  tenant text
-- returns: bigint
-- index:   evaluation_requests_open_idx
SELECT count(*) FROM evaluation_requests AS r WHERE r.tenant_id = :tenant AND r.state IN ('queued', 'running');
