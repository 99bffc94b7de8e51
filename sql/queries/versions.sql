-- name: read_versions^
-- The versions that retrieval results depend on, besides the configuration and the golden dataset.
-- returns: model_digests jsonb (by name, of the models not retired), chunking_hashes text[], index_version bigint
SELECT
    (
        SELECT coalesce(jsonb_object_agg(m.name, m.digest), '{}'::jsonb)
        FROM embedding_models AS m WHERE m.retired_at IS NULL
    ) AS model_digests,
    array(
        SELECT DISTINCT n.chunking_hash FROM notes AS n
        WHERE n.chunked_at IS NOT NULL AND n.chunking_hash IS NOT NULL ORDER BY n.chunking_hash
    ) AS chunking_hashes,
    (
        SELECT coalesce(sum(v.changes), 0)::bigint FROM index_changes AS v
        WHERE v.tenant_id = '' OR v.tenant_id = current_tenant()
    ) AS index_version;
