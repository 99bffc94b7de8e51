-- Links between notes that a language model proposes.

-- What a language model says of two events of different notes: which one is the cause of the other, or neither. Search
-- does not read it: a link is followed only once a person has confirmed it, as a row of event_links. A row goes with
-- its events and with the passages that the model was shown.
CREATE TABLE link_proposals (
    tenant_id text NOT NULL,
    -- The smaller id first, so that two events are one pair.
    one_id uuid NOT NULL,
    other_id uuid NOT NULL,
    one_chunk_id uuid NOT NULL REFERENCES chunks (id) ON DELETE CASCADE,
    other_chunk_id uuid NOT NULL REFERENCES chunks (id) ON DELETE CASCADE,
    -- One of the two, and how it is related to the other; both null if neither is the cause.
    cause_id uuid,
    type text CHECK (type IN ('CAUSES', 'TRIGGERS', 'LEADS_TO')),
    -- As the model says.
    confidence double precision NOT NULL CHECK (confidence BETWEEN 0 AND 1),
    reason text NOT NULL,
    model text NOT NULL,
    -- Of the model, its prompt and what chooses the passages: another version asks again.
    version text NOT NULL,
    judged_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, one_id, other_id),
    FOREIGN KEY (tenant_id, one_id) REFERENCES entities (tenant_id, id) ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, other_id) REFERENCES entities (tenant_id, id) ON DELETE CASCADE,
    CONSTRAINT link_proposals_order_check CHECK (one_id < other_id),
    CONSTRAINT link_proposals_cause_check CHECK (
        (cause_id IS NULL AND type IS NULL) OR (cause_id IN (one_id, other_id) AND type IS NOT NULL)
    )
);
-- What the rows of an event and of a passage are deleted by.
CREATE INDEX link_proposals_other_idx ON link_proposals (tenant_id, other_id);
CREATE INDEX link_proposals_one_chunk_idx ON link_proposals (one_chunk_id);
CREATE INDEX link_proposals_other_chunk_idx ON link_proposals (other_chunk_id);
