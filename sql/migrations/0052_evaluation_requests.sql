-- Evaluations that clients of the HTTP API asked for; a job works them off.
CREATE TABLE evaluation_requests (
    tenant_id text NOT NULL DEFAULT current_tenant(),
    id uuid NOT NULL DEFAULT gen_random_uuid(),
    configuration text NOT NULL,
    -- Who asked: the id of an API key; empty for this machine without a key.
    requested_by text NOT NULL DEFAULT '',
    state text NOT NULL DEFAULT 'queued' CHECK (state IN ('queued', 'running', 'done', 'failed')),
    requested_at timestamptz NOT NULL DEFAULT now(),
    started_at timestamptz,
    finished_at timestamptz,
    -- How often it was begun; a run that was killed is followed by another.
    attempts integer NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    -- What was measured; null until then. It is a copy: the evaluation may be deleted.
    evaluation_id uuid,
    -- Why it failed, as core.texts stores it.
    error jsonb,
    PRIMARY KEY (tenant_id, id)
);

-- Without it each tick of the sensor reads all requests that ever were.
CREATE INDEX evaluation_requests_open_idx ON evaluation_requests (requested_at, id)
WHERE state IN ('queued', 'running');
