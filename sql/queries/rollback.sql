-- name: announce_dropping!
-- Announce that this transaction drops chunks. The lock conflicts with lock_holds, so that no migration is resumed in
-- the middle of a batch, and with registering or retiring a model (lock_for_partitions, lock_chunking). Run it before
-- any other lock; it locks the tables in the same order as those queries.
LOCK TABLE migration_holds, notes, chunks IN ROW EXCLUSIVE MODE;

-- name: select_notes_to_drop
-- The next notes, by id, that have chunks to drop. They are not claimed yet.
-- params:  after uuid, batch_size int
-- returns: id uuid
-- index:   notes_pkey, chunks_position_key
SELECT n.id FROM notes AS n
WHERE
    n.id > :after
    AND (n.chunked_at IS NOT NULL OR EXISTS (SELECT FROM chunks AS c WHERE c.note_id = n.id AND c.id <> n.id))
ORDER BY n.id LIMIT :batch_size;

-- name: lock_pending_of_notes!
-- Wait for the embedding runs that have claimed the given notes. At this point nobody waits for this transaction.
-- params:  note_ids uuid[]
-- index:   pending_vectors_pkey
SELECT FROM embedding_models AS m INNER JOIN pending_vectors AS p ON p.model = m.name
WHERE p.note_id = ANY(:note_ids)
ORDER BY p.model, p.note_id
FOR UPDATE OF p;

-- name: claim_notes_to_drop
-- Lock the given notes that are unclaimed, until commit.
-- params:  note_ids uuid[]
-- returns: id uuid
SELECT n.id FROM notes AS n WHERE n.id = ANY(:note_ids) ORDER BY n.id FOR NO KEY UPDATE SKIP LOCKED;

-- name: drop_pending_of_notes!
-- params:  note_ids uuid[]
-- index:   pending_vectors_pkey
DELETE FROM pending_vectors AS p USING embedding_models AS m
WHERE p.model = m.name AND p.note_id = ANY(:note_ids);

-- name: drop_chunks_of_notes!
-- Delete the chunks of the given notes, with their vectors and failures.
-- params:  note_ids uuid[]
-- index:   chunks_position_key
DELETE FROM chunks WHERE note_id = ANY(:note_ids);

-- name: mark_unchunked!
-- Record that the given notes are not chunked any more. Nothing else about them changes.
-- params:  note_ids uuid[]
UPDATE notes SET chunked_at = NULL, chunking_hash = NULL WHERE id = ANY(:note_ids);

-- name: provide_chunks!
-- Give the given notes their provisional chunks.
-- params:  note_ids uuid[]
SELECT provide_chunks(:note_ids);

-- name: vectors_to_serve^
-- Which vectors of a model exist, to tell whether a configuration could serve with it. Retiring a model takes
-- lock_promotions too.
-- params:  model text
-- returns: notes_missing bigint (visible notes without a whole-note vector; blank ones have none), chunks bool (any),
--          kinds text[] (of which it has any); no row if the model is not known or retired
SELECT
    (
        SELECT count(*) FROM notes AS n
        WHERE
            (n.expires_at IS NULL OR n.expires_at > now()) AND n.content ~ '[^\s\x1c-\x1f]'
            AND NOT EXISTS (SELECT FROM vectors AS v WHERE v.model = :model AND v.kind = 'note' AND v.note_id = n.id)
    ) AS notes_missing,
    exists(SELECT FROM chunks) AS chunks,
    array(
        SELECT k.kind FROM unnest(m.kinds) AS k (kind)
        WHERE EXISTS (SELECT FROM vectors AS v WHERE v.model = :model AND v.kind = k.kind)
    ) AS kinds
FROM embedding_models AS m WHERE m.name = :model AND m.retired_at IS NULL
FOR SHARE OF m;
