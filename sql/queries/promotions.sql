-- name: insert_promotion!
-- params:  configuration text, config jsonb, config_hash text, model text, evaluation_id uuid or null,
--          run_id text or null, reason text or null
INSERT INTO promotions (configuration, config, config_hash, model, evaluation_id, run_id, reason)
VALUES (:configuration, :config, :config_hash, :model, :evaluation_id, :run_id, :reason);

-- name: lock_promotions!
-- Allow one promotion at a time.
LOCK TABLE promotions IN SHARE ROW EXCLUSIVE MODE;

-- name: current_promotion^
-- The promotion that serves now.
-- returns: configuration text, config jsonb, config_hash text, model text, evaluation_id uuid or null,
--          promoted_at timestamptz, reason text or null
SELECT p.configuration, p.config, p.config_hash, p.model, p.evaluation_id, p.promoted_at, p.reason
FROM promotions AS p ORDER BY p.id DESC LIMIT 1;

-- name: list_promotions
-- The newest row_limit promotions, oldest first.
-- params:  row_limit int
-- returns: configuration text, config jsonb, config_hash text, model text, evaluation_id uuid or null,
--          promoted_at timestamptz, reason text or null
-- index:   promotions_pkey
SELECT h.configuration, h.config, h.config_hash, h.model, h.evaluation_id, h.promoted_at, h.reason FROM (
    SELECT p.* FROM promotions AS p ORDER BY p.id DESC LIMIT :row_limit
) AS h ORDER BY h.id;

-- name: last_withdrawn$
-- The configuration withdrawn by the rollback that serves now.
-- returns: text; nothing if no rollback serves
SELECT w.configuration FROM (
    SELECT p.reason, lead(p.configuration) OVER (ORDER BY p.id DESC) AS configuration
    FROM promotions AS p ORDER BY p.id DESC LIMIT 1
) AS w WHERE w.reason IS NOT NULL;

-- name: was_promoted$
-- params:  configuration text
-- returns: bool
SELECT count(*) > 0 AS was_promoted FROM promotions AS p WHERE p.configuration = :configuration;

-- name: previous_promotion^
-- The last promotion of a configuration other than the serving one that has not been withdrawn since.
-- returns: as current_promotion
WITH history AS (
    SELECT
        p.*, lead(p.reason) OVER newer IS NOT NULL AS withdrawn,
        p.id = max(p.id) OVER () AS serves
    FROM promotions AS p
    WINDOW newer AS (ORDER BY p.id)
)

SELECT p.configuration, p.config, p.config_hash, p.model, p.evaluation_id, p.promoted_at, p.reason
FROM history AS p
WHERE
    NOT EXISTS (
        SELECT FROM history AS w
        WHERE
            (w.serves OR (w.withdrawn AND w.id >= p.id))
            AND (w.configuration, w.config_hash) = (p.configuration, p.config_hash)
    )
ORDER BY p.id DESC LIMIT 1;

-- name: withdrawn_at$
-- The time after which a configuration must have been evaluated to be promoted automatically: when it was withdrawn, or
-- when the chunks that evaluations used were dropped.
-- params:  configuration text, config_hash text
-- returns: timestamptz; null if neither happened
SELECT
    greatest(
        (
            SELECT max(h.withdrawn_at) FROM (
                SELECT
                    p.configuration, p.config_hash,
                    lead(p.reason) OVER newer AS reason, lead(p.promoted_at) OVER newer AS withdrawn_at
                FROM promotions AS p
                WINDOW newer AS (ORDER BY p.id)
            ) AS h
            WHERE h.reason IS NOT NULL AND (h.configuration, h.config_hash) = (:configuration, :config_hash)
        ),
        (SELECT max(h.created_at) FROM migration_holds AS h WHERE h.kind = 'rolled_back')
    ) AS withdrawn_at;
