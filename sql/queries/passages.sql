-- name: fetch_document_passages
-- The position of passages among the chunks of their documents.
-- params:  chunk_ids uuid[], note_ids uuid[], starts int[], ends int[] (one passage for each position)
-- returns: id uuid, title text (of the document), earlier_chunks int (of the document, before the passage),
--          total_chunks int (of its section), previous_id uuid or null, next_id uuid or null (in its section),
--          quality double precision (lowest of its pages) or null
-- index:   notes_document_idx, chunks_position_key, note_spans_pkey
SELECT
    f.id, d.title,
    coalesce(c.chunk_index, 0) + (
        SELECT count(*)::integer FROM notes AS o INNER JOIN chunks AS oc ON oc.note_id = o.id
        WHERE o.document_id = n.document_id AND o.section_index < n.section_index
    ) AS earlier_chunks,
    (SELECT count(*)::integer FROM chunks AS a WHERE a.note_id = n.id) AS total_chunks,
    p.id AS previous_id, x.id AS next_id,
    (
        SELECT min(g.quality) FROM note_spans AS s
        INNER JOIN document_pages AS g ON g.document_id = s.document_id AND g.page_number = s.page_number
        WHERE s.note_id = n.id AND s.start_char < f.last AND s.end_char > f.first
    ) AS quality
FROM
    unnest(:chunk_ids::uuid[], :note_ids::uuid[], :starts::integer[], :ends::integer[])
        AS f (id, note_id, first, last)
INNER JOIN notes AS n ON n.id = f.note_id
INNER JOIN documents AS d ON d.id = n.document_id
LEFT JOIN chunks AS c ON c.id = f.id AND c.note_id = f.note_id
LEFT JOIN chunks AS p ON p.note_id = c.note_id AND p.chunk_index = c.chunk_index - 1
LEFT JOIN chunks AS x ON x.note_id = c.note_id AND x.chunk_index = c.chunk_index + 1
ORDER BY f.id;

-- name: fetch_result_vectors
-- Standard vectors of chunks, and whole-note vectors, of one model.
-- params:  model text, chunk_ids uuid[], note_ids uuid[]
-- returns: id uuid, embedding halfvec
SELECT v.chunk_id AS id, v.embedding FROM vectors AS v
WHERE v.model = :model AND v.kind = 'chunk' AND v.chunk_id = ANY(:chunk_ids)
UNION ALL
SELECT v.note_id, v.embedding FROM vectors AS v
WHERE v.model = :model AND v.kind = 'note' AND v.note_id = ANY(:note_ids);
