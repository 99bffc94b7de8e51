-- name: write_calibration!
-- Replace the calibration of a configuration.
-- params:  config_hash text, calibration jsonb, contents jsonb, measured_at timestamptz
INSERT INTO calibrations (config_hash, calibration, contents, measured_at)
VALUES (:config_hash, :calibration, :contents, :measured_at)
ON CONFLICT (tenant_id, config_hash) DO UPDATE SET
    calibration = excluded.calibration, contents = excluded.contents, measured_at = excluded.measured_at;

-- name: delete_calibration!
-- Delete the calibration of a configuration.
-- params:  config_hash text
DELETE FROM calibrations AS c WHERE c.tenant_id = current_tenant() AND c.config_hash = :config_hash;

-- name: fetch_calibration^
-- The calibration of a configuration, and what it was measured on.
-- params:  config_hash text
-- returns: calibration jsonb, contents jsonb, measured_at timestamptz
-- index:   calibrations_pkey
SELECT c.calibration, c.contents, c.measured_at
FROM calibrations AS c WHERE c.tenant_id = current_tenant() AND c.config_hash = :config_hash;
