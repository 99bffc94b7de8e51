-- name: insert_tenant$
-- Create a tenant.
-- params:  tenant text
-- returns: tenant text; no row if it was created before
INSERT INTO tenants (tenant_id) VALUES (:tenant) ON CONFLICT (tenant_id) DO NOTHING RETURNING tenant_id;

-- name: list_tenants
-- The tenants that were created or have rows, by name.
-- returns: tenant text, notes bigint, documents bigint, questions bigint, keys bigint (not revoked),
--          created_at timestamptz or null
WITH held AS (
    SELECT t.tenant_id, 'tenant' AS kind FROM tenants AS t
    UNION ALL
    SELECT n.tenant_id, 'note' AS kind FROM notes AS n
    UNION ALL
    SELECT d.tenant_id, 'document' AS kind FROM documents AS d
    UNION ALL
    SELECT g.tenant_id, 'question' AS kind FROM golden_dataset AS g
    UNION ALL
    SELECT k.tenant_id, CASE WHEN k.revoked_at IS NULL THEN 'key' ELSE 'revoked key' END AS kind FROM api_keys AS k
    UNION ALL
    SELECT e.tenant_id, 'evaluation' AS kind FROM evaluation_results AS e
    UNION ALL
    SELECT a.tenant_id, 'answer' AS kind FROM answers AS a
    UNION ALL
    SELECT i.tenant_id, 'change' AS kind FROM index_changes AS i WHERE i.tenant_id <> ''
)

SELECT
    h.tenant_id AS tenant,
    count(*) FILTER (WHERE h.kind = 'note') AS notes,
    count(*) FILTER (WHERE h.kind = 'document') AS documents,
    count(*) FILTER (WHERE h.kind = 'question') AS questions,
    count(*) FILTER (WHERE h.kind = 'key') AS keys,
    max(t.created_at) AS created_at
FROM held AS h LEFT JOIN tenants AS t ON t.tenant_id = h.tenant_id
GROUP BY h.tenant_id ORDER BY h.tenant_id;

-- name: delete_tenant
-- Delete a tenant's rows from all tables.
-- params:  tenant text, names text[] (of the product's tables)
-- returns: relation text, deleted bigint, remaining bigint; only tables that had rows or have some
SELECT d.relation, d.deleted, d.remaining
FROM delete_tenant(:tenant, :names) AS d
WHERE d.deleted > 0 OR d.remaining > 0
ORDER BY d.relation;

-- name: fetch_upload_lifetime^
-- The lifetime of a tenant's uploads that state none.
-- params:  tenant text
-- returns: upload_hours int or null; no row if nobody created the tenant
SELECT t.upload_hours FROM tenants AS t WHERE t.tenant_id = :tenant;

-- name: set_upload_lifetime!
-- Store it.
-- params:  tenant text, hours int or null
UPDATE tenants SET upload_hours = :hours WHERE tenant_id = :tenant;

-- name: list_tenants_with_own_indexes
-- Tenants that have vector indexes of their own.
-- returns: tenant text
SELECT t.tenant_id AS tenant FROM tenants AS t WHERE t.has_own_indexes ORDER BY t.tenant_id;

-- name: want_own_indexes!
-- Request separate vector indexes for a tenant, to be built whenever those of a model are.
-- params:  tenant text
INSERT INTO tenants (tenant_id, has_own_indexes) VALUES (:tenant, TRUE)
ON CONFLICT (tenant_id) DO UPDATE SET has_own_indexes = excluded.has_own_indexes;

-- name: want_no_own_indexes^
-- Withdraw that request.
-- params:  tenant text
-- returns: tenant text; no row if there were to be none
UPDATE tenants SET has_own_indexes = FALSE WHERE tenant_id = :tenant AND has_own_indexes RETURNING tenant_id AS tenant;
