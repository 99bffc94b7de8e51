-- Row-level security: a transaction sees and writes the rows of the tenant that it names by
-- set_config('rag.tenant', …, true), and none if it names none. Applied to every table with a column tenant_id, present
-- and future: `rag up` calls isolate_tenants after the migrations.

-- Isolates one table. The rows of no tenant in particular ('') are everybody's to read.
CREATE PROCEDURE isolate_table(isolated regclass) LANGUAGE plpgsql AS $isolate_table$
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
    EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', isolated);
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

-- Puts the tenant into the foreign keys of a table that lead to a table with tenants: PostgreSQL's foreign keys ignore
-- row-level security.
CREATE PROCEDURE bind_tenant(bound regclass) LANGUAGE plpgsql AS $bind_tenant$
DECLARE
    key record;
BEGIN
    FOR key IN
        SELECT
            k.conname, k.confrelid::regclass AS parent, a.attname AS own_column,
            CASE k.confdeltype WHEN 'c' THEN 'CASCADE' WHEN 'n' THEN 'SET NULL (' || quote_ident(a.attname) || ')'
                ELSE 'NO ACTION' END AS on_delete
        FROM pg_constraint AS k
        INNER JOIN pg_attribute AS a ON a.attrelid = k.conrelid AND k.conkey = ARRAY[a.attnum]
        INNER JOIN pg_attribute AS p ON p.attrelid = k.confrelid AND k.confkey = ARRAY[p.attnum]
        WHERE
            k.conrelid = bound AND k.contype = 'f' AND k.conparentid = 0 AND p.attname = 'id'
            AND EXISTS (
                SELECT FROM pg_constraint AS u WHERE u.conrelid = k.confrelid AND u.contype = 'u'
                AND u.conkey = ARRAY[
                    (SELECT t.attnum FROM pg_attribute AS t
                     WHERE t.attrelid = k.confrelid AND t.attname = 'tenant_id'),
                    p.attnum
                ]
            )
    LOOP
        EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', bound, key.conname);
        EXECUTE format(
            'ALTER TABLE %s ADD CONSTRAINT %I FOREIGN KEY (tenant_id, %I) REFERENCES %s (tenant_id, id) '
            'ON UPDATE CASCADE ON DELETE %s',
            bound, key.conname, key.own_column, key.parent, key.on_delete
        );
    END LOOP;
END
$bind_tenant$;

-- Isolates the tables of these names that have tenants, with their partitions. The two roles are made if who migrates
-- may: rag_reader and rag_writer never log in, a transaction takes one of them on. GIN under row-level security needs
-- operators that are known not to leak: only a superuser can say so (docs/tenants.md).
CREATE PROCEDURE isolate_tenants(names text[]) LANGUAGE plpgsql AS $isolate_tenants$
DECLARE
    may_create boolean := (
        SELECT r.rolcreaterole OR r.rolsuper FROM pg_roles AS r WHERE r.rolname = current_user
    );
    role_name text;
    nobodys text;
    isolated regclass;
BEGIN
    FOREACH role_name IN ARRAY ARRAY['rag_reader', 'rag_writer'] LOOP
        IF may_create AND NOT EXISTS (SELECT FROM pg_roles AS r WHERE r.rolname = role_name) THEN
            BEGIN
                EXECUTE format('CREATE ROLE %I NOLOGIN', role_name);
                EXECUTE format('GRANT %I TO CURRENT_USER', role_name);
            EXCEPTION
                -- Another database of this server is migrated at the same moment.
                WHEN duplicate_object OR unique_violation THEN NULL;
            END;
        END IF;
    END LOOP;
    FOR isolated IN
        SELECT c.oid::regclass FROM pg_class AS c
        LEFT JOIN pg_inherits AS i ON i.inhrelid = c.oid
        INNER JOIN pg_class AS named ON named.oid = coalesce(i.inhparent, c.oid)
        INNER JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = 'tenant_id' AND NOT a.attisdropped
        WHERE
            c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p')
            AND named.relname = ANY(isolate_tenants.names)
        ORDER BY c.oid
    LOOP
        CALL bind_tenant(isolated);
        CALL isolate_table(isolated);
    END LOOP;
    IF EXISTS (SELECT FROM pg_roles AS r WHERE r.rolname = 'rag_reader') THEN
        EXECUTE format('GRANT USAGE ON SCHEMA %I TO rag_reader, rag_writer', current_schema());
        FOREACH nobodys IN ARRAY ARRAY['embedding_models', 'index_state', 'migration_holds', 'graph_parts'] LOOP
            IF to_regclass(nobodys) IS NOT NULL THEN
                EXECUTE format('GRANT SELECT ON %I TO rag_reader, rag_writer', nobodys);
            END IF;
        END LOOP;
    END IF;
    IF
        (SELECT r.rolsuper FROM pg_roles AS r WHERE r.rolname = current_user)
        AND NOT (SELECT p.proleakproof FROM pg_proc AS p WHERE p.oid = 'ts_match_vq(tsvector,tsquery)'::regprocedure)
    THEN
        ALTER FUNCTION pg_catalog.ts_match_vq(tsvector, tsquery) LEAKPROOF;
        ALTER FUNCTION pg_catalog.arraycontains(anyarray, anyarray) LEAKPROOF;
        ALTER FUNCTION pg_catalog.jsonb_contains(jsonb, jsonb) LEAKPROOF;
    END IF;
END
$isolate_tenants$;

CREATE OR REPLACE PROCEDURE create_model_partitions(model_name text, model_dimension integer)
LANGUAGE plpgsql AS $create_model_partitions$
DECLARE
    family text;
    child text;
    part text;
BEGIN
    FOREACH family IN ARRAY ARRAY['chunk_embeddings', 'chunk_windows', 'note_embeddings'] LOOP
        child := family || '_' || model_name;
        part := CASE family
            WHEN 'chunk_embeddings' THEN 'vectors/' WHEN 'chunk_windows' THEN 'windows/' ELSE 'note_vectors/' END;
        IF to_regclass(quote_ident(child)) IS NULL THEN
            EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING ALL)', child, family);
            EXECUTE format('ALTER TABLE %I ADD CONSTRAINT %I CHECK (vector_dims(embedding) = %s)',
                           child, child || '_dimension', model_dimension);
            -- Vectors stay in the row: an exact search must not read them from TOAST one by one.
            EXECUTE format('ALTER TABLE %I SET (toast_tuple_target = 8160)', child);
            EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES IN (%L)', family, child, model_name);
            -- A statement that names the partition runs no trigger of the table above it, nor its policies.
            CALL track_months(child, part, CASE family WHEN 'note_embeddings' THEN 'note' ELSE 'chunk' END);
            CALL isolate_table(child::regclass);
        END IF;
    END LOOP;
END
$create_model_partitions$;

-- Whether anybody else has notes here: then no plan suits all, and the few of a tenant are searched exactly. As the
-- owner, and only that: who asks learns nothing of whom or how many.
CREATE FUNCTION has_other_tenants(tenant text) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER
RETURN (
    EXISTS (SELECT FROM notes AS n WHERE n.tenant_id < $1)
    OR EXISTS (SELECT FROM notes AS n WHERE n.tenant_id > $1)
);
