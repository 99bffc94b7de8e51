-- name: insert_api_key^
-- Store a new key of the tenant.
-- params:  id text, name text, role text, secret_sha256 bytea
-- returns: created_at timestamptz
INSERT INTO api_keys (id, name, role, secret_sha256) VALUES (:id, :name, :role, :secret_sha256)
RETURNING created_at;

-- name: list_api_keys
-- The keys of the tenant, oldest first, ties by id.
-- returns: id text, name text, role text, created_at timestamptz, revoked_at timestamptz
SELECT k.id, k.name, k.role, k.created_at, k.revoked_at
FROM api_keys AS k WHERE k.tenant_id = current_tenant() ORDER BY k.created_at, k.id;

-- name: revoke_api_key!
-- Revoke a key of the tenant that is not revoked yet.
-- params:  id text
UPDATE api_keys AS k SET revoked_at = now()
WHERE k.tenant_id = current_tenant() AND k.id = :id AND k.revoked_at IS NULL;

-- name: fetch_api_key^
-- The key with an id, of any tenant, unless it is revoked.
-- params:  id text
-- returns: tenant_id text, role text, secret_sha256 bytea
-- index:   api_keys_pkey
SELECT k.tenant_id, k.role, k.secret_sha256
FROM api_keys AS k WHERE k.id = :id AND k.revoked_at IS NULL;

-- name: any_api_key$
-- Whether any tenant has ever had a key. Revoked keys count, so that revoking the last one does not open the API.
-- returns: boolean
SELECT exists(SELECT 1 FROM api_keys);
