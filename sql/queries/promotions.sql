-- name: insert_promotion!
-- params:  configuration text, config jsonb, config_hash text, model text, evaluation_id uuid or null,
--          run_id text or null, reason text or null
INSERT INTO promotions (configuration, config, config_hash, model, evaluation_id, run_id, reason)
VALUES (:configuration, :config, :config_hash, :model, :evaluation_id, :run_id, :reason);

-- name: lock_promotions!
-- Allow one promotion at a time.
LOCK TABLE promotions IN SHARE ROW EXCLUSIVE MODE;

-- name: serves_other_tenants$
-- Whether a model serves a tenant other than this one.
-- params:  model text
-- returns: bool
SELECT coalesce(bool_or(l.model = :model), FALSE) AS serves FROM (
    SELECT DISTINCT ON (p.tenant_id) p.model FROM promotions AS p
    WHERE p.tenant_id <> current_tenant() ORDER BY p.tenant_id, p.id DESC
) AS l;

-- name: list_promotions
-- The promotions of this tenant, newest first.
-- params:  row_limit int or null
-- returns: configuration text, config jsonb, config_hash text, model text, evaluation_id uuid or null,
--          promoted_at timestamptz, reason text or null
-- index:   promotions_pkey
SELECT p.configuration, p.config, p.config_hash, p.model, p.evaluation_id, p.promoted_at, p.reason
FROM promotions AS p WHERE p.tenant_id = current_tenant() ORDER BY p.id DESC LIMIT :row_limit;

-- name: promotions_outside_runs
-- The oldest promotions after a given one that no Dagster run made, and all rollbacks, ties by id.
-- params:  after_at timestamptz, after_id bigint, until timestamptz (as settled_until returns it), row_limit int
-- returns: id bigint, then as list_promotions
SELECT p.id, p.configuration, p.config, p.config_hash, p.model, p.evaluation_id, p.promoted_at, p.reason
FROM promotions AS p
WHERE
    p.tenant_id = current_tenant() AND (p.run_id IS NULL OR p.reason IS NOT NULL)
    AND (p.promoted_at, p.id) > (:after_at, :after_id) AND p.promoted_at < :until
ORDER BY p.promoted_at, p.id LIMIT :row_limit;

-- name: is_withdrawn$
-- Whether a person withdrew a configuration, under any name, and it was not promoted since. A rollback to whole notes,
-- which withdraws whatever served, ends when the migration is resumed, and does not count. Nor does one to the same
-- configuration under another name.
-- params:  config_hash text
-- returns: bool
WITH history AS (
    SELECT
        p.config_hash,
        lead(p.id) OVER newer AS id, lead(p.reason) OVER newer AS reason, lead(p.run_id) OVER newer AS run_id,
        lead(p.promoted_at) OVER newer AS withdrawn_at, lead(p.config_hash) OVER newer AS next_hash
    FROM promotions AS p WHERE p.tenant_id = current_tenant()
    WINDOW newer AS (ORDER BY p.id)
)

SELECT count(*) > 0 AS is_withdrawn FROM history AS w
WHERE
    w.config_hash = :config_hash AND w.reason IS NOT NULL AND w.next_hash <> w.config_hash
    AND NOT EXISTS (
        SELECT FROM promotions AS p
        WHERE p.tenant_id = current_tenant() AND p.id > w.id AND p.config_hash = w.config_hash AND p.reason IS NULL
    )
    AND NOT EXISTS (
        SELECT FROM migration_holds AS h
        WHERE
            h.kind = 'rolled_back' AND h.created_at >= w.withdrawn_at AND h.reason = w.reason
            AND h.run_id IS NOT DISTINCT FROM w.run_id
    );

-- name: rolled_back_at$
-- When everything was last rolled back to whole notes.
-- returns: timestamptz; null if it never was
SELECT max(h.created_at) AS rolled_back_at FROM migration_holds AS h WHERE h.kind = 'rolled_back';

-- name: evaluation_of_serving^
-- The undisturbed evaluation that represents what serves. It is the first that it was promoted on since it serves, on
-- the golden dataset of the latest promotion, so that repeated promotions do not let its quality drift down. Another
-- configuration is compared with the newest evaluation of what serves, so with the same index if both are new. Before
-- the first promotion, it is the latest evaluation of the default configuration.
-- params:  default_configuration text, compared_hash text or null (of the configuration that is compared with it)
-- returns: the columns of evaluation_results
-- index:   evaluation_results_latest_idx, evaluation_results_pkey
WITH latest AS (
    SELECT p.configuration, p.config_hash, e.golden_hash
    FROM promotions AS p LEFT JOIN evaluation_results AS e ON e.id = p.evaluation_id
    WHERE p.tenant_id = current_tenant()
    ORDER BY p.id DESC LIMIT 1
),

references_found AS (
    SELECT 1 AS preference, p.id AS place, p.evaluation_id
    FROM latest AS l
    INNER JOIN promotions AS p ON p.config_hash = l.config_hash
    INNER JOIN evaluation_results AS e ON e.id = p.evaluation_id AND e.golden_hash = l.golden_hash
    WHERE
        p.tenant_id = current_tenant()
        AND NOT EXISTS (
            SELECT FROM promotions AS o
            WHERE o.tenant_id = current_tenant() AND o.id > p.id AND o.config_hash <> l.config_hash
        )
    UNION ALL
    SELECT 0 AS preference, row_number() OVER (ORDER BY e.created_at DESC, e.id) AS place, e.id
    FROM evaluation_results AS e LEFT JOIN latest AS l ON TRUE
    WHERE
        e.tenant_id = current_tenant()
        AND CASE
            WHEN l.configuration IS NULL THEN e.configuration = :default_configuration
            ELSE (e.configuration, e.config_hash) = (l.configuration, l.config_hash) AND l.config_hash <> :compared_hash
        END
)

SELECT e.* FROM references_found AS r INNER JOIN evaluation_results AS e ON e.id = r.evaluation_id
WHERE e.degraded_queries = 0
ORDER BY r.preference, r.place LIMIT 1;
