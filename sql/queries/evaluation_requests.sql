-- name: insert_evaluation_request^
-- Store the begin of an evaluation that was asked for.
-- params:  tenant text, configuration text, requested_by text
-- returns: id uuid, configuration text, state text, requested_at timestamptz, finished_at timestamptz or null,
--          evaluation_id uuid or null, error jsonb or null
INSERT INTO evaluation_requests (tenant_id, configuration, requested_by, state, started_at, attempts)
VALUES (:tenant, :configuration, :requested_by, 'running', now(), 1)
RETURNING id, configuration, state, requested_at, finished_at, evaluation_id, error;

-- name: fetch_evaluation_request^
-- A request of a tenant. One that runs for a day was killed with its server.
-- params:  tenant text, id uuid
-- returns: as insert_evaluation_request; or nothing
-- index:   evaluation_requests_pkey
SELECT
    r.id, r.configuration, r.requested_at, r.finished_at, r.evaluation_id, r.error,
    CASE
        WHEN r.finished_at IS NULL AND r.requested_at < now() - interval '1 day' THEN 'failed' ELSE r.state
    END AS state
FROM evaluation_requests AS r
WHERE r.tenant_id = :tenant AND r.id = :id;

-- name: finish_evaluation_request!
-- End a request with its evaluation or with an error.
-- params:  tenant text, id uuid, evaluation_id uuid or null, error jsonb or null
-- index:   evaluation_requests_pkey
UPDATE evaluation_requests AS r
SET
    state = CASE WHEN :error::jsonb IS NULL THEN 'done' ELSE 'failed' END,
    finished_at = now(), evaluation_id = :evaluation_id, error = :error
WHERE r.tenant_id = :tenant AND r.id = :id;
