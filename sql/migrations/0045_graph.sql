-- The causal graph: what notes are about, and what they say is the cause of what.

-- Tables of these names that somebody else filled stay, under other names (see 0020).
DO $earlier$
DECLARE
    earlier text;
    index_name text;
BEGIN
    FOREACH earlier IN ARRAY ARRAY['relationships', 'entities'] LOOP
        IF to_regclass(earlier) IS NOT NULL THEN
            FOR index_name IN
                SELECT c.relname FROM pg_index AS i INNER JOIN pg_class AS c ON c.oid = i.indexrelid
                WHERE i.indrelid = to_regclass(earlier)
            LOOP
                EXECUTE format('ALTER INDEX %I RENAME TO %I', index_name, 'earlier_' || index_name);
            END LOOP;
            EXECUTE format('ALTER TABLE %I RENAME TO %I', earlier, 'earlier_' || earlier);
        END IF;
    END LOOP;
END
$earlier$;

-- The parts of the graph that are made, and how (core.graph_version): another version makes all of it anew.
CREATE TABLE graph_parts (
    part text PRIMARY KEY CHECK (part IN ('mentions', 'causal_statements')),
    version text NOT NULL
);

-- Chunked notes that a part of the graph has not read yet, as pending_embeddings is for the vectors of chunks.
CREATE TABLE pending_graph (
    tenant_id text NOT NULL,
    note_id uuid NOT NULL REFERENCES notes (id) ON DELETE CASCADE,
    part text NOT NULL REFERENCES graph_parts (part) ON DELETE CASCADE,
    requested_at timestamptz NOT NULL DEFAULT now(),
    -- Also what a note's rows are deleted by.
    PRIMARY KEY (note_id, part, tenant_id)
);

-- Names, tags and dates, and the events of causal statements. An id is made of tenant, kind and key (of an event: also
-- of its note), so that the same name is the same entity after any rebuild.
CREATE TABLE entities (
    tenant_id text NOT NULL,
    id uuid NOT NULL,
    kind text NOT NULL CHECK (kind IN ('name', 'tag', 'date', 'event')),
    -- In small letters, without accents.
    key text NOT NULL,
    -- As somebody wrote it.
    name text NOT NULL,
    -- The words of an event, by which causal questions find where to begin.
    tsv tsvector GENERATED ALWAYS AS (CASE WHEN kind = 'event' THEN spanish_tsvector(name) END) STORED,
    PRIMARY KEY (tenant_id, id)
);
-- What a question's names are looked up by.
CREATE INDEX entities_key_idx ON entities (tenant_id, key);

-- Where an entity is named, in the content of a chunk, which keeps its id wherever its note moves it.
CREATE TABLE mentions (
    tenant_id text NOT NULL,
    entity_id uuid NOT NULL,
    chunk_id uuid NOT NULL REFERENCES chunks (id) ON DELETE CASCADE,
    note_id uuid NOT NULL,
    -- Both 0 for a tag, which belongs to the whole note.
    start_char integer NOT NULL CHECK (start_char >= 0),
    end_char integer NOT NULL,
    -- What found it: rules, or the name of a language model.
    extractor text NOT NULL,
    version text NOT NULL,
    -- Also what the chunks of an entity are found by.
    PRIMARY KEY (tenant_id, entity_id, chunk_id, start_char),
    FOREIGN KEY (tenant_id, entity_id) REFERENCES entities (tenant_id, id) ON DELETE CASCADE,
    CONSTRAINT mentions_bounds_check CHECK (end_char > start_char OR (start_char = 0 AND end_char = 0))
);
-- What the entities of a chunk are found by, and deleted with it.
CREATE INDEX mentions_chunk_idx ON mentions (chunk_id, entity_id);

-- Causal statements: which event is the cause of which, and the words of a chunk that say so.
CREATE TABLE relationships (
    tenant_id text NOT NULL,
    id uuid NOT NULL,
    source_id uuid NOT NULL,
    target_id uuid NOT NULL,
    type text NOT NULL CHECK (type IN ('CAUSES', 'TRIGGERS', 'LEADS_TO')),
    confidence double precision NOT NULL CHECK (confidence BETWEEN 0 AND 1),
    -- The evidence; all offsets are in its content.
    chunk_id uuid NOT NULL REFERENCES chunks (id) ON DELETE CASCADE,
    note_id uuid NOT NULL,
    -- The rule, as "porque"; the model of a language model's.
    marker text NOT NULL,
    marker_start integer NOT NULL CHECK (marker_start >= 0),
    marker_end integer NOT NULL,
    cause_start integer NOT NULL CHECK (cause_start >= 0),
    cause_end integer NOT NULL,
    effect_start integer NOT NULL CHECK (effect_start >= 0),
    effect_end integer NOT NULL,
    extractor text NOT NULL,
    version text NOT NULL,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, source_id) REFERENCES entities (tenant_id, id) ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, target_id) REFERENCES entities (tenant_id, id) ON DELETE CASCADE,
    CONSTRAINT relationships_bounds_check CHECK (
        marker_end >= marker_start AND cause_end > cause_start AND effect_end > effect_start
    )
);
-- What the neighbours of an event are found by, in both directions.
CREATE INDEX relationships_source_idx ON relationships (tenant_id, source_id, target_id);
CREATE INDEX relationships_target_idx ON relationships (tenant_id, target_id, source_id);
-- What the statements of a chunk are found by, and deleted with it.
CREATE INDEX relationships_chunk_idx ON relationships (chunk_id);

-- What a person (or a language model) decided; no rule writes here. They go with the entities that they name.

-- Two entities that are one. Nothing is merged: whoever withdraws the decision has both again.
CREATE TABLE entity_aliases (
    tenant_id text NOT NULL,
    alias_id uuid NOT NULL,
    entity_id uuid NOT NULL,
    state text NOT NULL CHECK (state IN ('confirmed', 'rejected')),
    decided_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, alias_id, entity_id),
    FOREIGN KEY (tenant_id, alias_id) REFERENCES entities (tenant_id, id) ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, entity_id) REFERENCES entities (tenant_id, id) ON DELETE CASCADE,
    CONSTRAINT entity_aliases_two_check CHECK (alias_id <> entity_id)
);
-- An entity is the alias of one other at most.
CREATE UNIQUE INDEX entity_aliases_confirmed_idx ON entity_aliases (tenant_id, alias_id) WHERE state = 'confirmed';
-- What the aliases of an entity are found by.
CREATE INDEX entity_aliases_entity_idx ON entity_aliases (tenant_id, entity_id) WHERE state = 'confirmed';

-- An event of one note that is the cause of an event of another: rules found only wrong ones.
CREATE TABLE event_links (
    tenant_id text NOT NULL,
    source_id uuid NOT NULL,
    target_id uuid NOT NULL,
    type text NOT NULL CHECK (type IN ('CAUSES', 'TRIGGERS', 'LEADS_TO')),
    state text NOT NULL CHECK (state IN ('confirmed', 'rejected')),
    -- person, or the name of a language model.
    decided_by text NOT NULL,
    decided_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, source_id, target_id),
    FOREIGN KEY (tenant_id, source_id) REFERENCES entities (tenant_id, id) ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, target_id) REFERENCES entities (tenant_id, id) ON DELETE CASCADE,
    CONSTRAINT event_links_two_check CHECK (source_id <> target_id)
);
CREATE INDEX event_links_target_idx ON event_links (tenant_id, target_id, source_id);

-- Whether a person found a causal statement right. Not bound to its row, which is made anew when its note is chunked.
CREATE TABLE graph_reviews (
    tenant_id text NOT NULL,
    statement_id uuid NOT NULL,
    note_id uuid NOT NULL REFERENCES notes (id) ON DELETE CASCADE,
    is_right boolean NOT NULL,
    reviewed_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, statement_id)
);
-- What a note's rows are deleted by.
CREATE INDEX graph_reviews_note_idx ON graph_reviews (note_id);

-- Deletes the entities that only deleted notes named, and what was decided about them: their names are text of those
-- notes. A chunk that is made anew leaves its entities until it has been read again. An entity that somebody is using
-- is locked, and stays.
CREATE FUNCTION forget_entities() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $forget_entities$
DECLARE
    named text := CASE tg_table_name
        WHEN 'mentions' THEN 'SELECT g.tenant_id, g.entity_id AS id, g.note_id FROM gone AS g'
        ELSE 'SELECT g.tenant_id, g.source_id AS id, g.note_id FROM gone AS g '
            'UNION ALL SELECT g.tenant_id, g.target_id, g.note_id FROM gone AS g' END;
    tenants text[];
    ids uuid[];
BEGIN
    EXECUTE format(
        'SELECT array_agg(l.tenant_id), array_agg(l.id) FROM (SELECT e.tenant_id, e.id FROM %1$I.entities AS e '
        'WHERE (e.tenant_id, e.id) IN (SELECT x.tenant_id, x.id FROM (%2$s) AS x '
        'WHERE NOT EXISTS (SELECT FROM %1$I.notes AS n WHERE n.id = x.note_id)) '
        'ORDER BY e.tenant_id, e.id FOR UPDATE SKIP LOCKED) AS l',
        tg_table_schema, named
    ) INTO tenants, ids;
    IF ids IS NOT NULL THEN
        EXECUTE format(
            'DELETE FROM %1$I.entities AS e USING unnest($1, $2) AS l (tenant_id, id) '
            'WHERE e.tenant_id = l.tenant_id AND e.id = l.id '
            'AND NOT EXISTS (SELECT FROM %1$I.mentions AS m WHERE m.tenant_id = e.tenant_id AND m.entity_id = e.id) '
            'AND NOT EXISTS '
            '(SELECT FROM %1$I.relationships AS r WHERE r.tenant_id = e.tenant_id AND r.source_id = e.id) '
            'AND NOT EXISTS '
            '(SELECT FROM %1$I.relationships AS r WHERE r.tenant_id = e.tenant_id AND r.target_id = e.id)',
            tg_table_schema
        ) USING tenants, ids;
    END IF;
    RETURN NULL;
END
$forget_entities$;

CREATE TRIGGER mentions_forgotten AFTER DELETE ON mentions REFERENCING OLD TABLE AS gone
FOR EACH STATEMENT EXECUTE FUNCTION forget_entities();
CREATE TRIGGER relationships_forgotten AFTER DELETE ON relationships REFERENCING OLD TABLE AS gone
FOR EACH STATEMENT EXECUTE FUNCTION forget_entities();

-- Tags are mentions too. As the owner: who may write notes need not know of the graph, nor of its schema.
CREATE FUNCTION note_tagged() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $note_tagged$
BEGIN
    EXECUTE format(
        'INSERT INTO %1$I.pending_graph (tenant_id, note_id, part) '
        'SELECT $1, $2, p.part FROM %1$I.graph_parts AS p WHERE p.part = ''mentions'' ON CONFLICT DO NOTHING',
        tg_table_schema
    ) USING new.tenant_id, new.id;
    RETURN NULL;
END
$note_tagged$;

CREATE TRIGGER notes_tagged AFTER UPDATE OF tags ON notes FOR EACH ROW
WHEN (new.tags IS DISTINCT FROM old.tags)
EXECUTE FUNCTION note_tagged();

-- What an evaluation with a graph measured, as count_months has it: who named what where, what was stated, and what was
-- decided; -infinity stands for the decisions, which belong to no month.
CREATE FUNCTION count_graph_months(months date[]) RETURNS TABLE (
    month date, part text, row_count bigint, note_ids uuid[], note_hashes bigint[]
) LANGUAGE sql STABLE AS $count_graph_months$
    WITH noted AS MATERIALIZED (
        SELECT n.id, m.month
        FROM unnest(count_graph_months.months) AS m (month)
        INNER JOIN notes AS n
            ON n.created_at >= m.month::timestamp AT TIME ZONE 'UTC'
            AND n.created_at <= (m.month + interval '1 month') AT TIME ZONE 'UTC'
        WHERE m.month > '-infinity' AND month_of(n.created_at) = m.month
    ),

    parts AS (
        SELECT
            n.month, 'mentions' AS part, n.id, count(*) AS row_count,
            hash_array_extended(
                array_agg(
                    hash_record_extended(ROW(m.chunk_id, m.entity_id, m.start_char, m.end_char), 0)
                    ORDER BY m.chunk_id, m.start_char, m.entity_id
                ),
                0
            ) AS hash
        FROM noted AS n
        INNER JOIN chunks AS c ON c.note_id = n.id
        INNER JOIN mentions AS m ON m.chunk_id = c.id
        GROUP BY n.month, n.id
        UNION ALL
        SELECT
            n.month, 'statements', n.id, count(*),
            hash_array_extended(
                array_agg(
                    hash_record_extended(ROW(r.chunk_id, r.id, r.source_id, r.target_id, r.type, r.confidence), 0)
                    ORDER BY r.id
                ),
                0
            )
        FROM noted AS n
        INNER JOIN chunks AS c ON c.note_id = n.id
        INNER JOIN relationships AS r ON r.chunk_id = c.id
        GROUP BY n.month, n.id
    )

    SELECT
        p.month, p.part, sum(p.row_count)::bigint, array_agg(p.id ORDER BY p.id), array_agg(p.hash ORDER BY p.id)
    FROM parts AS p GROUP BY p.month, p.part
    UNION ALL
    SELECT
        '-infinity'::date, 'decisions', count(*), '{}',
        array_agg(d.hash ORDER BY d.hash)
    FROM (
        SELECT hash_record_extended(ROW(a.tenant_id, a.alias_id, a.entity_id), 0) AS hash
        FROM entity_aliases AS a WHERE a.state = 'confirmed'
        UNION ALL
        SELECT hash_record_extended(ROW(l.tenant_id, l.source_id, l.target_id, l.type), 0)
        FROM event_links AS l WHERE l.state = 'confirmed'
    ) AS d
    WHERE '-infinity' = ANY(count_graph_months.months)
    HAVING count(*) > 0
$count_graph_months$;

CALL track_months('mentions', 'mentions', 'note');
CALL track_months('relationships', 'statements', 'note');
CALL track_months('entity_aliases', 'decisions', 'corpus');
CALL track_months('event_links', 'decisions', 'corpus');

-- Search reads all of these.
DO $triggers$
DECLARE
    tracked text;
BEGIN
    FOREACH tracked IN ARRAY ARRAY['mentions', 'relationships', 'entity_aliases', 'event_links'] LOOP
        EXECUTE format('CREATE TRIGGER index_changed_by_insert AFTER INSERT ON %I REFERENCING NEW TABLE AS changed '
                       'FOR EACH STATEMENT EXECUTE FUNCTION index_changed()', tracked);
        EXECUTE format('CREATE TRIGGER index_changed_by_update AFTER UPDATE ON %I REFERENCING NEW TABLE AS changed '
                       'FOR EACH STATEMENT EXECUTE FUNCTION index_changed()', tracked);
        EXECUTE format('CREATE TRIGGER index_changed_by_delete AFTER DELETE ON %I REFERENCING OLD TABLE AS changed '
                       'FOR EACH STATEMENT EXECUTE FUNCTION index_changed()', tracked);
        EXECUTE format('CREATE TRIGGER index_changed_by_truncate AFTER TRUNCATE ON %I '
                       'FOR EACH STATEMENT EXECUTE FUNCTION index_changed()', tracked);
    END LOOP;
END
$triggers$;

ALTER TABLE indexing_failures DROP CONSTRAINT indexing_failures_stage_check;
ALTER TABLE indexing_failures ADD CONSTRAINT indexing_failures_stage_check CHECK (
    stage IN ('chunk', 'embed_note', 'embed_chunk', 'embed_window', 'mentions', 'causal_statements')
);
