-- Under row-level security an index serves an operator only if that is known not to leak, which a superuser alone can
-- declare. On a server without one, who searches sees the tables that have GIN indexes through views that show a tenant
-- its rows, with the rights of their owner: `notes` is then the view of this name.

-- The schema of these views.
CREATE FUNCTION tenant_views() RETURNS text LANGUAGE sql STABLE RETURN current_schema() || '_of_tenant';

-- A migration that changes a table drops the views first. Until they are back, who searches sees the tables themselves,
-- under row-level security: the same rows, more slowly.
CREATE PROCEDURE hide_tenant_views() LANGUAGE plpgsql AS $hide_tenant_views$
BEGIN
    IF to_regnamespace(quote_ident(tenant_views())) IS NOT NULL THEN
        EXECUTE format('DROP SCHEMA %I CASCADE', tenant_views());
    END IF;
END
$hide_tenant_views$;

-- Makes the views of the tables of these names where they are needed, and drops them where not. Idempotent.
CREATE PROCEDURE show_tenants_their_rows(names text[]) LANGUAGE plpgsql AS $show_tenants_their_rows$
DECLARE
    views text := tenant_views();
    shown regclass;
BEGIN
    IF (SELECT p.proleakproof FROM pg_proc AS p WHERE p.oid = 'ts_match_vq(tsvector,tsquery)'::regprocedure) THEN
        CALL hide_tenant_views();
        RETURN;
    END IF;
    IF
        NOT EXISTS (SELECT FROM pg_roles AS r WHERE r.rolname = 'rag_reader')
        OR NOT has_database_privilege(current_database(), 'CREATE') AND to_regnamespace(quote_ident(views)) IS NULL
    THEN
        RETURN;
    END IF;
    EXECUTE format('CREATE SCHEMA IF NOT EXISTS %I', views);
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO rag_reader', views);
    FOR shown IN
        SELECT c.oid::regclass FROM pg_class AS c
        INNER JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = 'tenant_id' AND NOT a.attisdropped
        WHERE
            c.relnamespace = current_schema()::regnamespace AND c.relname = ANY(show_tenants_their_rows.names)
            AND to_regclass(format('%I.%I', views, c.relname)) IS NULL
            AND EXISTS (
                SELECT FROM pg_index AS i
                INNER JOIN pg_class AS x ON x.oid = i.indexrelid
                INNER JOIN pg_am AS m ON m.oid = x.relam
                WHERE i.indrelid = c.oid AND m.amname = 'gin'
            )
    LOOP
        EXECUTE format(
            'CREATE VIEW %1$I.%2$I AS SELECT * FROM %2$I WHERE tenant_id = current_setting(''rag.tenant'', TRUE)',
            views, shown::text
        );
        EXECUTE format('GRANT SELECT ON %I.%I TO rag_reader', views, shown::text);
    END LOOP;
END
$show_tenants_their_rows$;

-- Puts the owner of a table under its policies, too, unless that costs something: who is neither a superuser nor has
-- BYPASSRLS could not COPY into it any more. The policy of the owner lets everything through in any case.
CREATE PROCEDURE bind_owner(bound regclass) LANGUAGE plpgsql AS $bind_owner$
BEGIN
    EXECUTE format(
        'ALTER TABLE %s %s ROW LEVEL SECURITY', bound,
        (
            SELECT CASE WHEN r.rolsuper OR r.rolbypassrls THEN 'FORCE' ELSE 'NO FORCE' END
            FROM pg_class AS c INNER JOIN pg_roles AS r ON r.oid = c.relowner WHERE c.oid = bound
        )
    );
END
$bind_owner$;

-- Isolates one table. The rows of no tenant in particular ('') are everybody's to read.
CREATE OR REPLACE PROCEDURE isolate_table(isolated regclass) LANGUAGE plpgsql AS $isolate_table$
DECLARE
    -- Rows of these are for the machinery: whose they are is nobody's business.
    is_private boolean := isolated::text IN ('api_keys', 'month_contents', 'changed_months');
    has_shared boolean := isolated::text IN ('content_settings', 'index_changes');
    owner_name text := (SELECT pg_get_userbyid(c.relowner) FROM pg_class AS c WHERE c.oid = isolated);
    own text := 'tenant_id = current_setting(''rag.tenant'', TRUE)';
    grantee text;
BEGIN
    IF
        NOT is_private AND EXISTS (SELECT FROM pg_roles AS r WHERE r.rolname = 'rag_reader')
        AND NOT has_table_privilege('rag_writer', isolated, 'INSERT')
    THEN
        EXECUTE format('GRANT SELECT ON %s TO rag_reader', isolated);
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %s TO rag_writer', isolated);
    END IF;
    IF EXISTS (SELECT FROM pg_policy AS p WHERE p.polrelid = isolated AND p.polname = 'tenant') THEN
        RETURN;
    END IF;
    -- Who could use the table before it was isolated still can: an application of one's own goes on working.
    FOR grantee IN
        SELECT DISTINCT CASE WHEN a.grantee = 0 THEN 'public' ELSE pg_get_userbyid(a.grantee) END
        FROM pg_class AS c CROSS JOIN LATERAL aclexplode(c.relacl) AS a
        WHERE
            c.oid = isolated AND a.grantee <> c.relowner
            AND (a.grantee = 0 OR pg_get_userbyid(a.grantee) NOT IN ('rag_reader', 'rag_writer'))
    LOOP
        EXECUTE format(
            'CREATE POLICY %I ON %s TO %s USING (TRUE) WITH CHECK (TRUE)', 'granted before to ' || grantee, isolated,
            CASE WHEN grantee = 'public' THEN 'PUBLIC' ELSE quote_ident(grantee) END
        );
    END LOOP;
    EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', isolated);
    CALL bind_owner(isolated);
    -- The owner migrates, indexes, purges and counts for all tenants.
    EXECUTE format('CREATE POLICY owner ON %s TO %I USING (TRUE) WITH CHECK (TRUE)', isolated, owner_name);
    EXECUTE format('CREATE POLICY tenant ON %s USING (%s) WITH CHECK (%s)', isolated, own, own);
    -- Who names no tenant may add rows of the default one, as the column's default does, but sees none.
    EXECUTE format('CREATE POLICY unnamed ON %s FOR INSERT WITH CHECK (tenant_id = ''default'' AND '
                   'coalesce(current_setting(''rag.tenant'', TRUE), '''') = '''')', isolated);
    IF has_shared THEN
        EXECUTE format('CREATE POLICY shared ON %s FOR SELECT USING (tenant_id = '''')', isolated);
    END IF;
END
$isolate_table$;

DO $bind_owners$
DECLARE
    bound regclass;
BEGIN
    FOR bound IN
        SELECT c.oid::regclass FROM pg_class AS c
        WHERE c.relnamespace = current_schema()::regnamespace AND c.relforcerowsecurity
    LOOP
        CALL bind_owner(bound);
    END LOOP;
END
$bind_owners$;
