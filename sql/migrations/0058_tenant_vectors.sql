-- A tenant that has few vectors has all of them compared: they are found by these indexes.
CREATE INDEX chunk_embeddings_tenant_idx ON chunk_embeddings (tenant_id);
CREATE INDEX chunk_windows_tenant_idx ON chunk_windows (tenant_id);

-- Whether a tenant that has many has vector indexes of its own: in those of all tenants too few of its are found.
ALTER TABLE tenants ADD COLUMN has_own_indexes boolean NOT NULL DEFAULT FALSE;
