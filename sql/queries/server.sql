-- name: vector_versions^
-- The pgvector versions that the server offers and that this database has; no row if the server offers none.
-- returns: available text, installed text or null
SELECT e.default_version AS available, e.installed_version AS installed
FROM pg_available_extensions AS e WHERE e.name = 'vector';

-- name: create_vector_extension!
CREATE EXTENSION IF NOT EXISTS vector;

-- name: can_create_tables$
-- returns: bool
SELECT has_schema_privilege(current_schema(), 'CREATE');

-- name: separates_words$
-- Whether the text-search parser tells letters from punctuation: with LC_CTYPE "C" it treats "¿" as a letter.
-- returns: bool
SELECT 'qué' = ANY(tsvector_to_array(to_tsvector('simple', '¿qué')));

-- name: lock_migrations!
-- Allow one process at a time to migrate the schema; the lock is released when the connection ends, for any reason.
SELECT pg_advisory_lock(hashtext('brain-sync-rag migrations'));

-- name: find_adoption_problems
-- Why an existing notes table of another application cannot be adopted; no row if there is no such table.
-- returns: subject text, expected text, found text or null
WITH legacy AS (
    SELECT c.oid, c.relkind, c.relowner FROM pg_class AS c
    WHERE c.relname = 'notes' AND c.relnamespace = current_schema()::regnamespace
),

legacy_columns AS (
    SELECT
        a.attrelid, a.attnum, a.attname, a.attnotnull, t.typname, format_type(a.atttypid, a.atttypmod) AS found
    FROM legacy AS l
    INNER JOIN pg_attribute AS a ON a.attrelid = l.oid AND a.attnum > 0 AND NOT a.attisdropped
    INNER JOIN pg_type AS t ON t.oid = a.atttypid
),

accepted (name, expected, types, required) AS (
    VALUES
    ('id', 'uuid PRIMARY KEY', '{uuid}'::text[], TRUE),
    ('content', 'text', '{text,varchar}', TRUE),
    ('created_at', 'timestamptz', '{timestamptz,timestamp}', TRUE),
    ('embedding', 'vector', '{vector,halfvec}', FALSE),
    -- Our own columns: an existing one of the same name is accepted if it has the same definition.
    ('tenant_id', 'text NOT NULL', '{text}', FALSE),
    ('source', 'text NOT NULL', '{text}', FALSE),
    ('external_id', 'text', '{text}', FALSE),
    ('title', 'text NOT NULL', '{text}', FALSE),
    ('content_sha256', '-', '{}', FALSE),
    ('tags', 'text[] NOT NULL', '{_text}', FALSE),
    ('metadata', 'jsonb NOT NULL', '{jsonb}', FALSE),
    ('date_source', 'text', '{text}', FALSE),
    ('addresses', 'text[] NOT NULL', '{_text}', FALSE),
    ('missing_since', 'timestamptz', '{timestamptz}', FALSE),
    ('updated_at', 'timestamptz NOT NULL', '{timestamptz}', FALSE),
    ('expires_at', 'timestamptz', '{timestamptz}', FALSE),
    ('chunked_at', 'timestamptz', '{timestamptz}', FALSE),
    ('chunking_hash', 'text', '{text}', FALSE),
    ('document_id', '-', '{}', FALSE),
    ('section_index', '-', '{}', FALSE),
    ('heading_path', '-', '{}', FALSE)
)

SELECT 'notes' AS subject, 'table' AS expected, pg_describe_object('pg_class'::regclass, l.oid, 0) AS found
FROM legacy AS l WHERE l.relkind NOT IN ('r', 'p')
UNION ALL
SELECT 'notes' AS subject, 'owner ' || current_user AS expected, 'owner ' || pg_get_userbyid(l.relowner) AS found
FROM legacy AS l WHERE NOT pg_has_role(l.relowner, 'USAGE')
UNION ALL
SELECT 'notes.' || a.name AS subject, a.expected, c.found
FROM accepted AS a LEFT JOIN legacy_columns AS c ON c.attname = a.name
WHERE
    EXISTS (SELECT FROM legacy)
    AND (
        (a.required AND c.attname IS NULL)
        OR (c.attname IS NOT NULL AND c.typname <> ALL(a.types))
        OR (right(a.expected, 8) = 'NOT NULL' AND NOT c.attnotnull)
        OR (a.name = 'id' AND NOT EXISTS (
            SELECT FROM pg_index AS i
            WHERE
                i.indrelid = c.attrelid AND i.indkey[0] = c.attnum AND i.indnkeyatts = 1 AND i.indpred IS NULL
                AND i.indisunique AND i.indimmediate AND i.indisvalid
        ))
    )
UNION ALL
-- Objects that depend on a column whose type must change, and so prevent the change.
SELECT
    'notes.created_at' AS subject, 'timestamptz' AS expected,
    c.found || ', ' || pg_describe_object(d.classid, d.objid, 0) AS found
FROM legacy_columns AS c
INNER JOIN pg_depend AS d
    ON d.refclassid = 'pg_class'::regclass AND d.refobjid = c.attrelid AND d.refobjsubid = c.attnum
WHERE
    c.attname = 'created_at' AND c.typname = 'timestamp'
    AND d.classid = ANY(ARRAY['pg_rewrite'::regclass, 'pg_trigger'::regclass, 'pg_policy'::regclass])
ORDER BY subject, expected;

-- name: set_session!
-- params:  name text, value text
SELECT set_config(:name, :value, FALSE);

-- name: set_transaction!
-- params:  name text, value text
SELECT set_config(:name, :value, TRUE);

-- name: lock_timeout$
-- returns: text, such as '30s'; '0' without a limit
SELECT current_setting('lock_timeout');

-- name: limit_lock_waits!
-- Limit how long this session waits for a lock, unless the server, the database or the role has a limit of its own.
-- params:  value text
SELECT set_config('lock_timeout', :value, FALSE) WHERE current_setting('lock_timeout') = '0';

-- name: limit_session!
-- Limit how long each further statement of this session may take.
-- params:  limit_ms int (a literal)
SET statement_timeout = {limit_ms};

-- name: limit_transaction!
-- Limit how long a statement may take, until this transaction ends.
-- params:  limit_ms int (a literal)
SET LOCAL statement_timeout = {limit_ms};

-- name: isolate_tenants!
-- Put every table with tenants under row-level security, including tables created since.
-- params:  names text[] (of the product's tables)
CALL isolate_tenants(:names);

-- name: show_tenants_their_rows!
-- Create the views through which a tenant is searched, where they are needed.
-- params:  names text[] (of the product's tables)
CALL show_tenants_their_rows(:names);

-- name: hide_tenant_views!
-- Drop them, so that a migration may change the tables.
CALL hide_tenant_views();

-- name: scope_transaction
-- Name the tenant, take on a role and limit how long a statement may take, until this transaction ends.
-- params:  {tenant}, {role} (none: as the login), {limit_ms} (text), {search_path} (NULL: as it is)
SELECT
    set_config('rag.tenant', {tenant}, TRUE) AS tenant,
    set_config('role', {role}, TRUE) AS role,
    set_config('statement_timeout', {limit_ms}, TRUE) AS statement_timeout,
    CASE WHEN {search_path} IS NOT NULL THEN set_config('search_path', {search_path}, TRUE) END AS search_path;

-- name: scope_shared_transaction
-- The same with all other session settings, for transactions that a pooler may each give another session. The server's
-- own limit of waits for locks, if any, stays.
-- params:  {tenant}, {role}, {limit_ms} (text, longest time of a statement), {lock_timeout}, {ef_search},
--          {iterative_scan}, {idle_timeout}, {search_path}
-- returns: the settings
SELECT
    set_config('rag.tenant', {tenant}, TRUE) AS tenant,
    set_config('role', {role}, TRUE) AS role,
    set_config('statement_timeout', {limit_ms}, TRUE) AS statement_timeout,
    set_config(
        'lock_timeout', coalesce(nullif(current_setting('lock_timeout'), '0'), {lock_timeout}), TRUE
    ) AS lock_timeout,
    set_config('hnsw.ef_search', {ef_search}, TRUE) AS ef_search,
    set_config('hnsw.iterative_scan', {iterative_scan}, TRUE) AS iterative_scan,
    set_config('idle_in_transaction_session_timeout', {idle_timeout}, TRUE) AS idle_timeout,
    CASE WHEN {search_path} IS NOT NULL THEN set_config('search_path', {search_path}, TRUE) END AS search_path;

-- name: assumable_roles
-- Which of the product's roles this login can take on. The role for searching is returned only if row-level security
-- does not prevent the full-text index, or views replace it: otherwise a question would take ten times as long.
-- returns: name text, has_views bool, search_path text or null (where the login's is right for the role, too)
WITH
found AS (
    SELECT string_agg(quote_ident(f.found), ', ' ORDER BY f.place) AS schemas
    FROM unnest(current_schemas(FALSE)) WITH ORDINALITY AS f (found, place)
),

shown AS (
    SELECT
        p.proleakproof AS needs_none,
        CASE
            WHEN NOT p.proleakproof
                THEN to_regnamespace(quote_ident(current_schema() || '_of_tenant'))::text
        END AS views
    FROM pg_proc AS p WHERE p.oid = 'ts_match_vq(tsvector, tsquery)'::regprocedure
)

SELECT
    r.rolname AS name,
    r.rolname = 'rag_reader' AND s.views IS NOT NULL AS has_views,
    CASE
        WHEN r.rolname = 'rag_reader' AND s.views IS NOT NULL
            THEN concat_ws(', ', s.views, f.schemas)
        -- A schema named like a user is searched only for that user.
        WHEN current_schema() = session_user
            THEN f.schemas
    END AS search_path
FROM pg_roles AS r CROSS JOIN found AS f CROSS JOIN shown AS s
WHERE
    pg_has_role(r.oid, 'MEMBER')
    AND (r.rolname = 'rag_writer' OR (r.rolname = 'rag_reader' AND (s.needs_none OR s.views IS NOT NULL)));

-- name: answers$
-- Check that the server answers.
-- returns: int
SELECT 1;

-- name: database_exists$
-- params:  name text
-- returns: bool
SELECT count(*) > 0 AS known FROM pg_database AS d WHERE d.datname = :name;

-- name: role_exists$
-- params:  name text
-- returns: bool
SELECT count(*) > 0 AS known FROM pg_roles AS r WHERE r.rolname = :name;

-- name: create_login!
CREATE ROLE {login} LOGIN PASSWORD {password};

-- name: create_database!
CREATE DATABASE {database};

-- name: settled_until$
-- The start of the oldest transaction under way in this database, this one included. PostgreSQL shows the transactions
-- of other users only to those who may read all statistics; the writers of this product are one user.
-- returns: timestamptz
SELECT least(min(a.xact_start), now()) AS settled_until FROM pg_stat_activity AS a
WHERE a.datname = current_database() AND a.backend_type = 'client backend';
