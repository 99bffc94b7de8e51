-- Keys of the HTTP API. A key names the tenant that it speaks for, so it is looked up without one.
CREATE TABLE api_keys (
    -- The part of the key that may be shown.
    id text PRIMARY KEY,
    tenant_id text NOT NULL DEFAULT current_tenant(),
    name text NOT NULL,
    role text NOT NULL CHECK (role IN ('owner', 'writer', 'reader')),
    -- SHA-256 of the part of the key that only its holder has.
    secret_sha256 bytea NOT NULL CHECK (length(secret_sha256) = 32),
    created_at timestamptz NOT NULL DEFAULT now(),
    revoked_at timestamptz
);
