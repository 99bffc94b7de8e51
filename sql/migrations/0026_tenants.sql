-- Golden questions, their history, evaluations, promotions and batches belong to a tenant, as notes do.

-- Whose questions, evaluations and promotions a session reads and writes: the application sets it for its sessions.
CREATE FUNCTION current_tenant() RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE
RETURN coalesce(nullif(current_setting('rag.tenant', TRUE), ''), 'default');

-- Rows from before get the tenant of the notes that they name; where these are gone, the tenant with the most notes.
CREATE FUNCTION owner_of(uuid[]) RETURNS text LANGUAGE sql STABLE
RETURN coalesce(
    (SELECT min(n.tenant_id) FROM notes AS n WHERE n.id = ANY($1)),
    (SELECT min(t.tenant_id) FROM tombstones AS t WHERE t.note_id = ANY($1)),
    (SELECT n.tenant_id FROM notes AS n GROUP BY n.tenant_id ORDER BY count(*) DESC, n.tenant_id LIMIT 1),
    'default'
);

ALTER TABLE golden_dataset ADD COLUMN tenant_id text;
ALTER TABLE golden_history ADD COLUMN tenant_id text;
ALTER TABLE evaluation_results ADD COLUMN tenant_id text;
ALTER TABLE promotions ADD COLUMN tenant_id text;
ALTER TABLE migration_batches ADD COLUMN tenant_id text;

-- Whose a question is, is no change of it.
ALTER TABLE golden_dataset DISABLE TRIGGER USER;
ALTER TABLE golden_history DISABLE TRIGGER USER;
UPDATE golden_dataset SET tenant_id = owner_of(relevant_note_ids);
UPDATE golden_history AS h SET tenant_id = coalesce(
    (SELECT g.tenant_id FROM golden_dataset AS g WHERE g.id = h.golden_id),
    (
        SELECT owner_of(array_agg(r.note_id::uuid))
        FROM jsonb_array_elements_text(coalesce(h.new_entry, h.old_entry) -> 'relevant_note_ids') AS r (note_id)
    )
);
ALTER TABLE golden_dataset ENABLE TRIGGER USER;
ALTER TABLE golden_history ENABLE TRIGGER USER;
UPDATE evaluation_results AS e SET tenant_id = (
    SELECT owner_of(array_agg(r.note_id))
    FROM evaluation_queries AS q CROSS JOIN LATERAL unnest(q.relevant_note_ids) AS r (note_id)
    WHERE q.evaluation_id = e.id
);
UPDATE promotions AS p SET tenant_id = coalesce(
    (SELECT e.tenant_id FROM evaluation_results AS e WHERE e.id = p.evaluation_id), owner_of('{}')
);
UPDATE migration_batches AS b SET tenant_id = coalesce(
    (SELECT min(h.tenant_id) FROM golden_history AS h WHERE h.golden_id = ANY(b.found || b.missed)), owner_of('{}')
);
DROP FUNCTION owner_of(uuid[]);

ALTER TABLE golden_dataset
ALTER COLUMN tenant_id SET NOT NULL,
ALTER COLUMN tenant_id SET DEFAULT current_tenant(),
DROP CONSTRAINT golden_dataset_pkey,
DROP CONSTRAINT golden_dataset_normalized_query_key,
ADD CONSTRAINT golden_dataset_pkey PRIMARY KEY (tenant_id, id),
ADD CONSTRAINT golden_dataset_tenant_id_normalized_query_key UNIQUE (tenant_id, normalized_query) DEFERRABLE;
ALTER TABLE golden_history
ALTER COLUMN tenant_id SET NOT NULL, ALTER COLUMN tenant_id SET DEFAULT current_tenant();
ALTER TABLE evaluation_results
ALTER COLUMN tenant_id SET NOT NULL, ALTER COLUMN tenant_id SET DEFAULT current_tenant();
ALTER TABLE promotions
ALTER COLUMN tenant_id SET NOT NULL, ALTER COLUMN tenant_id SET DEFAULT current_tenant();
ALTER TABLE migration_batches
ALTER COLUMN tenant_id SET NOT NULL, ALTER COLUMN tenant_id SET DEFAULT current_tenant();

DROP INDEX evaluation_results_latest_idx;
CREATE INDEX evaluation_results_latest_idx ON evaluation_results (tenant_id, configuration, created_at DESC, id);

-- The history numbers the versions of each tenant's dataset.
CREATE OR REPLACE FUNCTION golden_changed() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $golden_changed$
BEGIN
    IF tg_level = 'STATEMENT' THEN
        EXECUTE format('LOCK TABLE %I.golden_history IN SHARE ROW EXCLUSIVE MODE', tg_table_schema);
    ELSIF new IS DISTINCT FROM old THEN
        EXECUTE format(
            $insert$
                INSERT INTO %1$I.golden_history
                    (version, golden_id, operation, old_entry, new_entry, note_hashes, tenant_id)
                SELECT
                    coalesce(
                        (
                            SELECT h.version + CASE WHEN h.transaction_id = pg_current_xact_id() THEN 0 ELSE 1 END
                            FROM %1$I.golden_history AS h WHERE h.tenant_id = $6 ORDER BY h.id DESC LIMIT 1
                        ),
                        1
                    ),
                    $1, $2, $3, $4,
                    coalesce(
                        (
                            SELECT jsonb_object_agg(n.id, encode(n.content_sha256, 'hex'))
                            FROM %1$I.notes AS n WHERE n.id = ANY($5)
                        ),
                        '{}'
                    ),
                    $6
            $insert$,
            tg_table_schema
        ) USING
            coalesce(new.id, old.id), lower(tg_op), to_jsonb(old), to_jsonb(new), new.relevant_note_ids,
            coalesce(new.tenant_id, old.tenant_id);
    END IF;
    RETURN NULL;
END
$golden_changed$;

-- A model serves if it serves any tenant.
CREATE OR REPLACE FUNCTION state(m embedding_models) RETURNS text
LANGUAGE sql STABLE
RETURN CASE
    WHEN m.retired_at IS NOT NULL THEN 'retired'
    WHEN m.name IN (SELECT DISTINCT ON (p.tenant_id) p.model FROM promotions AS p ORDER BY p.tenant_id, p.id DESC)
        THEN 'serving'
    ELSE 'building'
END;
