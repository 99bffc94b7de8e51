-- name: announce_dropping!
-- Meets lock_holds, so that no migration is resumed in the middle of a batch, and whoever registers or retires a model
-- (lock_for_partitions, lock_chunking). Before anything else is locked, and in the order in which those lock tables.
LOCK TABLE migration_holds, notes, chunks IN ROW EXCLUSIVE MODE;

-- name: select_notes_to_drop
-- The next notes in order of ids that have anything of chunking, not yet claimed.
-- params:  after uuid, batch_size int
-- returns: id uuid
-- index:   notes_pkey, chunks_position_key
SELECT n.id FROM notes AS n
WHERE
    n.id > :after
    AND (
        n.chunked_at IS NOT NULL
        OR EXISTS (SELECT FROM chunks AS c WHERE c.note_id = n.id)
        OR EXISTS (
            SELECT FROM embedding_models AS m INNER JOIN pending_embeddings AS p ON p.model = m.name
            WHERE p.note_id = n.id
        )
    )
ORDER BY n.id LIMIT :batch_size;

-- name: lock_pending_of_notes!
-- Wait for the embedding runs that have some notes in hand, while nobody waits for us.
-- params:  note_ids uuid[]
-- index:   pending_embeddings_pkey
SELECT FROM embedding_models AS m INNER JOIN pending_embeddings AS p ON p.model = m.name
WHERE p.note_id = ANY(:note_ids)
ORDER BY p.model, p.note_id
FOR UPDATE OF p;

-- name: claim_notes_to_drop
-- Those of some notes that nobody else has in hand, locked until commit.
-- params:  note_ids uuid[]
-- returns: id uuid
SELECT n.id FROM notes AS n WHERE n.id = ANY(:note_ids) ORDER BY n.id FOR NO KEY UPDATE SKIP LOCKED;

-- name: drop_pending_of_notes!
-- params:  note_ids uuid[]
-- index:   pending_embeddings_pkey
DELETE FROM pending_embeddings AS p USING embedding_models AS m
WHERE p.model = m.name AND p.note_id = ANY(:note_ids);

-- name: drop_chunks_of_notes!
-- With their vectors and failures.
-- params:  note_ids uuid[]
-- index:   chunks_position_key
DELETE FROM chunks WHERE note_id = ANY(:note_ids);

-- name: mark_unchunked!
-- The note has no chunks any more. Nothing else of it changes.
-- params:  note_ids uuid[]
UPDATE notes SET chunked_at = NULL, chunking_hash = NULL WHERE id = ANY(:note_ids);

-- name: last_withdrawn$
-- What the rollback that serves now withdrew.
-- returns: text; nothing if what serves is no rollback's
SELECT w.configuration FROM (
    SELECT p.reason, lead(p.configuration) OVER (ORDER BY p.id DESC) AS configuration
    FROM promotions AS p ORDER BY p.id DESC LIMIT 1
) AS w WHERE w.reason IS NOT NULL;

-- name: was_promoted$
-- params:  configuration text
-- returns: bool
SELECT count(*) > 0 AS was_promoted FROM promotions AS p WHERE p.configuration = :configuration;

-- name: previous_promotion^
-- The last promotion of anything else than what serves that has not been withdrawn since.
-- returns: as current_promotion
WITH history AS (
    SELECT
        p.*, lead(p.reason) OVER newer IS NOT NULL AS withdrawn,
        p.id = max(p.id) OVER () AS serves
    FROM promotions AS p
    WINDOW newer AS (ORDER BY p.id)
)

SELECT p.configuration, p.config, p.config_hash, p.model, p.evaluation_id, p.promoted_at, p.reason
FROM history AS p
WHERE
    NOT EXISTS (
        SELECT FROM history AS w
        WHERE
            (w.serves OR (w.withdrawn AND w.id >= p.id))
            AND (w.configuration, w.config_hash) = (p.configuration, p.config_hash)
    )
ORDER BY p.id DESC LIMIT 1;

-- name: withdrawn_at$
-- Since when a configuration must be evaluated again before it is promoted by itself: since it was withdrawn, or since
-- the chunks on which any was evaluated were dropped.
-- params:  configuration text, config_hash text
-- returns: timestamptz; null if nothing asks for that
SELECT
    greatest(
        (
            SELECT max(h.withdrawn_at) FROM (
                SELECT
                    p.configuration, p.config_hash,
                    lead(p.reason) OVER newer AS reason, lead(p.promoted_at) OVER newer AS withdrawn_at
                FROM promotions AS p
                WINDOW newer AS (ORDER BY p.id)
            ) AS h
            WHERE h.reason IS NOT NULL AND (h.configuration, h.config_hash) = (:configuration, :config_hash)
        ),
        (SELECT max(h.created_at) FROM migration_holds AS h WHERE h.kind = 'rolled_back')
    ) AS withdrawn_at;

-- name: vectors_to_serve^
-- Which vectors there are of a model, for whatever would serve with it. Whoever retires one takes lock_promotions, too.
-- params:  model text
-- returns: notes_missing bigint (visible notes without a whole-note vector; blank ones have none), chunks bool (any),
--          chunk_vectors bool (any); no row if the model is not known or retired
SELECT
    (
        SELECT count(*) FROM notes AS n
        WHERE
            (n.expires_at IS NULL OR n.expires_at > now()) AND n.content ~ '[^\s\x1c-\x1f]'
            AND NOT EXISTS (SELECT FROM note_embeddings AS e WHERE e.model = :model AND e.note_id = n.id)
    ) AS notes_missing,
    exists(SELECT FROM chunks) AS chunks,
    exists(SELECT FROM chunk_embeddings AS e WHERE e.model = :model) AS chunk_vectors
FROM embedding_models AS m WHERE m.name = :model AND m.retired_at IS NULL
FOR SHARE OF m;
