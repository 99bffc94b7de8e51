-- Why something failed, as a code and values instead of a sentence: {"code": …, "values": {…}}. The sentence is made
-- where it is shown. Words that are of no catalogue, such as a server's own and all of before, are {"text": …}.
ALTER TABLE migration_batches
ALTER COLUMN reason TYPE jsonb USING jsonb_build_object('text', reason);

ALTER TABLE evaluation_queries
ALTER COLUMN error TYPE jsonb USING CASE WHEN error IS NOT NULL THEN jsonb_build_object('text', error) END,
ALTER COLUMN judge_error TYPE jsonb
USING CASE WHEN judge_error IS NOT NULL THEN jsonb_build_object('text', judge_error) END;

-- That the passages do not say was a sentence; now there is no answer and it comes from no note.
UPDATE evaluation_queries SET answer = NULL
WHERE answer = 'No consta en las notas.' AND answer_note_ids = '{}';

ALTER TABLE indexing_failures
ALTER COLUMN error TYPE jsonb USING jsonb_build_object('text', error);
