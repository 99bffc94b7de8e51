-- Every row that is somebody's names its tenant, and foreign keys lead from rows of a tenant to rows of the same one:
-- row-level security does not apply to foreign keys. Statistics of words are counted by tenant.

ALTER TABLE notes ADD CONSTRAINT notes_tenant_key UNIQUE (tenant_id, id);
ALTER TABLE documents ADD CONSTRAINT documents_tenant_key UNIQUE (tenant_id, id);
ALTER TABLE evaluation_results ADD CONSTRAINT evaluation_results_tenant_key UNIQUE (tenant_id, id);

-- What a promotion or a batch was compared with is forgotten where it is another tenant's: 0026 could but guess whose a
-- row was.
ALTER TABLE promotions DISABLE TRIGGER USER;
UPDATE promotions AS p SET evaluation_id = NULL
FROM evaluation_results AS e WHERE e.id = p.evaluation_id AND e.tenant_id <> p.tenant_id;
ALTER TABLE promotions ENABLE TRIGGER USER;
UPDATE migration_batches AS b SET baseline_id = NULL
FROM evaluation_results AS e WHERE e.id = b.baseline_id AND e.tenant_id <> b.tenant_id;

DO $tenants$
DECLARE
    -- Most rows are this tenant's. A default for the rows that are there costs nothing; an update writes each anew.
    main text := coalesce(
        (SELECT n.tenant_id FROM notes AS n GROUP BY n.tenant_id ORDER BY count(*) DESC, n.tenant_id LIMIT 1),
        (SELECT d.tenant_id FROM documents AS d GROUP BY d.tenant_id ORDER BY count(*) DESC, d.tenant_id LIMIT 1),
        (SELECT e.tenant_id FROM evaluation_results AS e GROUP BY e.tenant_id
         ORDER BY count(*) DESC, e.tenant_id LIMIT 1),
        'default'
    );
    child record;
    old_key text;
BEGIN
    -- Parents first, and a note's chunks before its other rows: who gives a note away changes them in this order.
    FOR child IN
        SELECT * FROM (VALUES
            ('chunks', 'note_id', 'notes', 'CASCADE', 'chunks_tenant_key'),
            ('note_words', 'note_id', 'notes', 'CASCADE', NULL),
            ('note_embeddings', 'note_id', 'notes', 'CASCADE', NULL),
            ('pending_embeddings', 'note_id', 'notes', 'CASCADE', NULL),
            ('pending_windows', 'note_id', 'notes', 'CASCADE', NULL),
            ('chunk_embeddings', 'chunk_id', 'chunks', 'CASCADE', NULL),
            ('chunk_windows', 'chunk_id', 'chunks', 'CASCADE', NULL),
            ('indexing_failures', 'note_id', 'notes', 'CASCADE', NULL),
            ('indexing_failures', 'chunk_id', 'chunks', 'CASCADE', NULL),
            ('notes', 'document_id', 'documents', 'CASCADE', NULL),
            ('document_addresses', 'document_id', 'documents', 'CASCADE', NULL),
            ('document_pages', 'document_id', 'documents', 'CASCADE', NULL),
            ('document_failures', 'document_id', 'documents', 'CASCADE', NULL),
            ('document_extractions', 'document_id', 'documents', 'CASCADE', 'document_extractions_tenant_key'),
            ('extracted_pages', 'extraction_id', 'document_extractions', 'CASCADE', NULL),
            ('note_spans', 'note_id', 'notes', 'CASCADE', NULL),
            ('note_spans', 'document_id', 'documents', 'CASCADE', NULL),
            ('evaluation_queries', 'evaluation_id', 'evaluation_results', 'CASCADE', NULL),
            ('promotions', 'evaluation_id', 'evaluation_results', 'NO ACTION', NULL),
            ('migration_batches', 'baseline_id', 'evaluation_results', 'SET NULL (baseline_id)', NULL)
        ) AS c (relation, key, parent, on_delete, own_key)
    LOOP
        IF NOT EXISTS (
            SELECT FROM pg_attribute AS a
            WHERE a.attrelid = child.relation::regclass AND a.attname = 'tenant_id' AND NOT a.attisdropped
        ) THEN
            EXECUTE format('ALTER TABLE %I ADD COLUMN tenant_id text NOT NULL DEFAULT %L', child.relation, main);
            -- Whose a row is, is no change of it.
            EXECUTE format('ALTER TABLE %I DISABLE TRIGGER USER', child.relation);
            EXECUTE format(
                'UPDATE %1$I AS c SET tenant_id = p.tenant_id FROM %3$I AS p WHERE p.id = c.%2$I AND p.tenant_id <> %4$L',
                child.relation, child.key, child.parent, main
            );
            EXECUTE format('ALTER TABLE %I ENABLE TRIGGER USER', child.relation);
            EXECUTE format('ALTER TABLE %I ALTER COLUMN tenant_id SET DEFAULT current_tenant()', child.relation);
        END IF;
        IF child.own_key IS NOT NULL THEN
            EXECUTE format('ALTER TABLE %I ADD CONSTRAINT %I UNIQUE (tenant_id, id)', child.relation, child.own_key);
        END IF;
        old_key := (
            SELECT k.conname FROM pg_constraint AS k
            INNER JOIN pg_attribute AS a ON a.attrelid = k.conrelid AND a.attname = child.key
            WHERE
                k.conrelid = child.relation::regclass AND k.contype = 'f' AND k.conparentid = 0
                AND k.conkey = ARRAY[a.attnum]
        );
        IF old_key IS NOT NULL THEN
            EXECUTE format('ALTER TABLE %I DROP CONSTRAINT %I', child.relation, old_key);
        END IF;
        EXECUTE format(
            'ALTER TABLE %1$I ADD CONSTRAINT %2$I FOREIGN KEY (tenant_id, %3$I) REFERENCES %4$I (tenant_id, id) '
            'ON UPDATE CASCADE ON DELETE %5$s',
            child.relation, child.relation || '_' || child.key || '_fkey', child.key, child.parent, child.on_delete
        );
    END LOOP;

    EXECUTE format('ALTER TABLE lexeme_statistics ADD COLUMN tenant_id text NOT NULL DEFAULT %L', main);
END
$tenants$;

-- The corpus statistics of BM25, by tenant: what is rare in one tenant's notes says nothing of another's.
CREATE TABLE corpus_statistics (
    tenant_id text PRIMARY KEY DEFAULT current_tenant(),
    chunk_count bigint NOT NULL DEFAULT 0,
    average_lexeme_occurrences double precision NOT NULL DEFAULT 0,
    refreshed_at timestamptz NOT NULL DEFAULT now()
);
INSERT INTO corpus_statistics (tenant_id, chunk_count, average_lexeme_occurrences, refreshed_at)
SELECT n.tenant_id, i.chunk_count, i.average_lexeme_occurrences, i.refreshed_at
FROM notes AS n CROSS JOIN index_state AS i
GROUP BY n.tenant_id, i.chunk_count, i.average_lexeme_occurrences, i.refreshed_at
ORDER BY count(*) DESC, n.tenant_id LIMIT 1;

DO $statistics$
BEGIN
    -- Counted over everybody's notes, they are nobody's.
    IF EXISTS (SELECT FROM chunks AS c WHERE c.tenant_id <> (SELECT s.tenant_id FROM corpus_statistics AS s)) THEN
        DELETE FROM lexeme_statistics;
        INSERT INTO lexeme_statistics (tenant_id, lexeme, document_count)
        SELECT c.tenant_id, l.lexeme, count(*)::integer
        FROM chunks AS c CROSS JOIN LATERAL unnest(c.tsv) AS l GROUP BY c.tenant_id, l.lexeme;
        DELETE FROM corpus_statistics;
        INSERT INTO corpus_statistics (tenant_id, chunk_count, average_lexeme_occurrences)
        SELECT c.tenant_id, count(*), avg(c.lexeme_occurrences) FROM chunks AS c GROUP BY c.tenant_id;
    END IF;
END
$statistics$;
ALTER TABLE lexeme_statistics
ALTER COLUMN tenant_id SET DEFAULT current_tenant(),
DROP CONSTRAINT lexeme_statistics_pkey,
ADD CONSTRAINT lexeme_statistics_pkey PRIMARY KEY (tenant_id, lexeme);
ALTER TABLE index_state
DROP COLUMN chunk_count, DROP COLUMN average_lexeme_occurrences, DROP COLUMN refreshed_at;

-- The words of a note are its tenant's.
CREATE OR REPLACE FUNCTION index_note_words() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $index_note_words$
DECLARE
    written text := 'written AS n';
BEGIN
    IF tg_level = 'ROW' THEN
        written := format('%I.notes AS n WHERE n.id = $1', tg_table_schema);
    END IF;
    EXECUTE format(
        'INSERT INTO %1$I.note_words (note_id, tsv, tenant_id) '
        'SELECT n.id, %1$I.spanish_tsvector(left(n.title, 1000) || '' '' || left(n.content, 200000)), n.tenant_id '
        'FROM %2$s ON CONFLICT (note_id) DO UPDATE SET tsv = excluded.tsv',
        tg_table_schema, written
    ) USING new.id;
    RETURN NULL;
END
$index_note_words$;
