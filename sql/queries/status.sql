-- name: has_schema_log$
-- Whether any of our migrations was ever applied.
-- returns: bool
SELECT to_regclass('_yoyo_migration') IS NOT NULL;

-- name: list_applied_migrations
-- returns: migration_id text
SELECT y.migration_id FROM _yoyo_migration AS y;

-- name: count_contents^
-- How many notes, chunks, golden questions of the tenant, failures and documents there are.
-- returns: notes bigint, chunked bigint, chunks bigint, golden bigint, failures bigint, documents bigint,
--          unread_documents bigint
SELECT
    (SELECT count(*) FROM notes) AS notes,
    (SELECT count(*) FROM notes AS n WHERE n.chunked_at IS NOT NULL) AS chunked,
    (SELECT count(*) FROM chunks) AS chunks,
    (SELECT count(*) FROM golden_dataset AS g WHERE g.tenant_id = current_tenant()) AS golden,
    (SELECT count(*) FROM indexing_failures) AS failures,
    (SELECT count(*) FROM documents) AS documents,
    (SELECT count(*) FROM documents AS d WHERE d.status = 'failed') AS unread_documents;
