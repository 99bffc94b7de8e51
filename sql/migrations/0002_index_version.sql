-- A version of the index that is exact whoever writes: indexing, a legacy application, a person with psql. It is what
-- cached answers are kept under. Before, indexing counted its own steps in index_state.version.

-- Its last value is the number of the version. Nobody waits for anybody, and a number is never taken back.
CREATE SEQUENCE index_version;
DO $number$
BEGIN
    PERFORM setval('index_version', s.version + 1) FROM index_state AS s;
END
$number$;

-- database_id: no two databases take each other's versions for their own, though they share a cache.
ALTER TABLE index_state
DROP COLUMN version,
ADD COLUMN database_id uuid NOT NULL DEFAULT gen_random_uuid();

-- The next number, once a statement has changed rows; `changed` holds them. First the lock, which says until commit or
-- rollback that a writer is at work, then the number: read_index_version relies on that order. Shared locks never wait
-- for each other. As the owner of the sequence: who may write notes need not know of it, nor of its schema.
CREATE FUNCTION index_changed() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $index_changed$
DECLARE
    version regclass := format('%I.index_version', tg_table_schema);
BEGIN
    IF tg_level = 'STATEMENT' AND tg_op <> 'TRUNCATE' THEN
        IF NOT EXISTS (SELECT FROM changed) THEN
            RETURN NULL;
        END IF;
    END IF;
    PERFORM pg_advisory_xact_lock_shared('pg_class'::regclass::oid::integer, version::oid::integer);
    PERFORM nextval(version);
    RETURN NULL;
END
$index_changed$;

-- The number of the version, and whether it is settled: whether what a snapshot taken afterwards shows may be kept
-- under it.
--
-- A writer locks, takes a number, commits, unlocks. We read the number v, then the locks, then take a snapshot.
--   * A writer with a number up to v locked before we read v. If no lock is held now it has unlocked, so it ended
--     before our snapshot, which shows its work.
--   * A writer with a number past v moved the sequence: whoever asks after its commit asks for another version.
-- So under v there is only what all writers up to v left, and v is asked for only while that is all there is. Locks
-- first would not do: a writer could lock and take the number v between the two readings. Hence two statements, and
-- VOLATILE. Nor may our snapshot be older than the readings: call this in a transaction of its own.
--
-- Between two expiries the same notes are to be found, so the next one of the tenant is part of the version. It is read
-- last, or it could be that of a state before the number's.
--
-- On a replica the locks of the writers are not to be seen: nothing is settled.
CREATE FUNCTION read_index_version(
    tenant text, OUT number bigint, OUT settled boolean, OUT next_expiry timestamptz
) LANGUAGE plpgsql VOLATILE AS $read_index_version$
BEGIN
    number := (SELECT v.last_value FROM index_version AS v);
    settled := NOT pg_is_in_recovery() AND NOT EXISTS (
        SELECT FROM pg_locks AS l
        WHERE l.locktype = 'advisory' AND l.objsubid = 2
            AND l.classid = 'pg_class'::regclass AND l.objid = 'index_version'::regclass
            AND l.database = (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database())
    );
    next_expiry := (
        SELECT min(n.expires_at) FROM notes AS n
        WHERE n.tenant_id = tenant AND n.expires_at > statement_timestamp()
    );
END
$read_index_version$;

-- Everything that search reads. A later table that it reads belongs here too.
DO $triggers$
DECLARE
    tracked text;
BEGIN
    FOREACH tracked IN ARRAY ARRAY['notes', 'chunks', 'embedding_models', 'chunk_embeddings', 'note_embeddings',
                                   'pending_embeddings', 'lexeme_statistics', 'index_state'] LOOP
        EXECUTE format('CREATE TRIGGER index_changed_by_insert AFTER INSERT ON %I REFERENCING NEW TABLE AS changed '
                       'FOR EACH STATEMENT EXECUTE FUNCTION index_changed()', tracked);
        IF tracked <> 'embedding_models' THEN
            EXECUTE format('CREATE TRIGGER index_changed_by_update AFTER UPDATE ON %I REFERENCING NEW TABLE AS changed '
                           'FOR EACH STATEMENT EXECUTE FUNCTION index_changed()', tracked);
        END IF;
        EXECUTE format('CREATE TRIGGER index_changed_by_delete AFTER DELETE ON %I REFERENCING OLD TABLE AS changed '
                       'FOR EACH STATEMENT EXECUTE FUNCTION index_changed()', tracked);
        EXECUTE format('CREATE TRIGGER index_changed_by_truncate AFTER TRUNCATE ON %I '
                       'FOR EACH STATEMENT EXECUTE FUNCTION index_changed()', tracked);
    END LOOP;
END
$triggers$;

-- Prevents a scan of a tenant's notes for the next one to expire, at every question.
CREATE INDEX notes_expiry_idx ON notes (tenant_id, expires_at) WHERE expires_at IS NOT NULL;

-- A promotion changes which model serves, and nothing that is found: what was evaluated before it stays current.
CREATE TRIGGER index_changed_by_update AFTER UPDATE ON embedding_models FOR EACH ROW
WHEN (
    (old.dimension, old.digest, old.similarity_threshold, old.embeds_chunks, old.state = 'retired')
    IS DISTINCT FROM (new.dimension, new.digest, new.similarity_threshold, new.embeds_chunks, new.state = 'retired')
)
EXECUTE FUNCTION index_changed();
