-- Answers as they were given, and what their readers said of them.
CREATE TABLE answers (
    tenant_id text NOT NULL DEFAULT current_tenant(),
    id uuid NOT NULL,
    asked_at timestamptz NOT NULL,
    -- Null if texts are not kept, as are the two below.
    question text,
    -- What was searched instead of the question, in a conversation.
    searched text,
    -- The texts of the sentences, in reading order. Also null once a note that the answer was made from is gone.
    sentences text[],
    -- Conditions that the question named itself.
    filters jsonb NOT NULL DEFAULT '{}',
    language text NOT NULL,
    intent text,
    configuration text NOT NULL,
    config_hash text,
    embedding_model text NOT NULL,
    answerer text NOT NULL,
    language_model text,
    prompt_tokens integer,
    completion_tokens integer,
    -- answered; missed: nothing was found or said; withheld: something was found, but would probably be false;
    -- failed: nothing could be searched, or the answer was cut off.
    outcome text NOT NULL CHECK (outcome IN ('answered', 'missed', 'withheld', 'failed')),
    confidence jsonb,
    silence jsonb,
    -- Milliseconds by stage.
    stages jsonb NOT NULL,
    degraded text[] NOT NULL,
    -- [{number, sentence, noteId, start, end, contentSha256}]: ranges of notes, never their text.
    citations jsonb NOT NULL,
    -- [{noteId, chunkId, score}], best first.
    passages jsonb NOT NULL,
    -- The notes of passages and citations.
    note_ids uuid[] NOT NULL,
    -- A person decided that the question is no golden one.
    dismissed_at timestamptz,
    PRIMARY KEY (tenant_id, id)
);
-- Prevents a scan of all answers for those of a month, and for those too old to keep.
CREATE INDEX answers_asked_idx ON answers (tenant_id, asked_at);
-- Prevents a scan of all answers whenever a note is deleted.
CREATE INDEX answers_notes_idx ON answers USING gin (note_ids);

-- A reader's verdict on an answer, or on one of its citations: the last one counts.
CREATE TABLE feedback (
    tenant_id text NOT NULL DEFAULT current_tenant(),
    answer_id uuid NOT NULL,
    -- The number of a citation; 0 for the answer as a whole.
    citation integer NOT NULL CHECK (citation >= 0),
    verdict text NOT NULL CHECK (verdict IN ('up', 'down')),
    comment text,
    given_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, answer_id, citation),
    FOREIGN KEY (tenant_id, answer_id) REFERENCES answers (tenant_id, id) ON DELETE CASCADE
);

-- What quotes a note does not outlive it. An answer is written after it was given: its notes may be gone by then, and
-- the locks keep them from being deleted before the answer is there to be found.
CREATE FUNCTION answer_written() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $answer_written$
DECLARE
    present integer;
BEGIN
    IF new.sentences IS NULL AND new.searched IS NULL THEN
        RETURN new;
    END IF;
    EXECUTE format(
        'SELECT count(*) FROM (SELECT FROM %I.notes AS n WHERE n.id = ANY($1) ORDER BY n.id FOR KEY SHARE) AS k',
        tg_table_schema
    ) INTO present USING new.note_ids;
    IF present < cardinality(new.note_ids) THEN
        new.sentences := NULL;
        new.searched := NULL;
    END IF;
    RETURN new;
END
$answer_written$;
CREATE TRIGGER answers_written BEFORE INSERT ON answers FOR EACH ROW EXECUTE FUNCTION answer_written();

-- Comments may quote a note too.
CREATE FUNCTION forget_answers() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $forget_answers$
BEGIN
    EXECUTE format(
        $forget$
            WITH gone AS (SELECT array_agg(o.id) AS ids FROM old_notes AS o),
            forgotten AS (
                UPDATE %1$I.answers AS a SET sentences = NULL, searched = NULL FROM gone AS g
                WHERE a.note_ids && g.ids RETURNING a.tenant_id, a.id
            )
            UPDATE %1$I.feedback AS f SET comment = NULL FROM forgotten AS a
            WHERE f.tenant_id = a.tenant_id AND f.answer_id = a.id AND f.comment IS NOT NULL
        $forget$,
        tg_table_schema
    );
    RETURN NULL;
END
$forget_answers$;
CREATE TRIGGER notes_answers_by_delete AFTER DELETE ON notes REFERENCING OLD TABLE AS old_notes
FOR EACH STATEMENT EXECUTE FUNCTION forget_answers();
