-- How sure the responses of a configuration are: measured on golden questions, one row by configuration.
CREATE TABLE calibrations (
    tenant_id text NOT NULL DEFAULT current_tenant(),
    config_hash text NOT NULL,
    -- The models of the claims and their bands.
    calibration jsonb NOT NULL,
    -- What was searched, by month and part, as in evaluation_results: it stands only for that.
    contents jsonb NOT NULL,
    measured_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, config_hash)
);
