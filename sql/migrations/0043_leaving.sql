-- Tenants that a person created, and how a tenant leaves.
CREATE TABLE tenants (
    tenant_id text PRIMARY KEY CHECK (tenant_id <> ''),
    created_at timestamptz NOT NULL DEFAULT now()
);

-- Deletes the rows of a tenant from the tables of these names, and says of each table how many there were and how many
-- there are now: more than none only if somebody wrote meanwhile.
CREATE FUNCTION delete_tenant(leaving text, names text[])
RETURNS TABLE (relation text, deleted bigint, remaining bigint) LANGUAGE plpgsql AS $delete_tenant$
DECLARE
    held text[] := (
        SELECT array_agg(
            c.relname::text
            -- A promotion holds its evaluation. What deleting other rows writes goes last.
            ORDER BY
                c.relname <> 'promotions',
                c.relname IN ('golden_history', 'changed_months', 'month_contents', 'index_changes'),
                c.relname
        )
        FROM pg_class AS c
        INNER JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = 'tenant_id' AND NOT a.attisdropped
        WHERE
            c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p')
            AND c.relname = ANY(delete_tenant.names)
    );
    counts bigint[];
    counted bigint;
BEGIN
    FOREACH relation IN ARRAY held LOOP
        EXECUTE format('SELECT count(*) FROM %I WHERE tenant_id = $1', relation) INTO counted USING leaving;
        counts := counts || counted;
    END LOOP;
    -- Nobody's version of the index may fall, or a tenant of the same name would be shown cached answers of this one.
    INSERT INTO index_changes AS i (tenant_id, changes)
    SELECT '' AS tenant_id, sum(c.changes) + 1 AS changes
    FROM index_changes AS c WHERE c.tenant_id = leaving HAVING count(*) > 0
    ON CONFLICT (tenant_id, transaction_id) DO UPDATE SET changes = i.changes + excluded.changes;
    ALTER TABLE golden_history DISABLE TRIGGER golden_history_only_grows;
    FOREACH relation IN ARRAY held LOOP
        EXECUTE format('DELETE FROM %I WHERE tenant_id = $1', relation) USING leaving;
    END LOOP;
    ALTER TABLE golden_history ENABLE TRIGGER golden_history_only_grows;
    FOR number IN 1 .. cardinality(held) LOOP
        relation := held[number];
        deleted := counts[number];
        EXECUTE format('SELECT count(*) FROM %I WHERE tenant_id = $1', relation) INTO remaining USING leaving;
        RETURN NEXT;
    END LOOP;
END
$delete_tenant$;
