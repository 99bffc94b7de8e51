-- What was measured is not changed afterwards, and a promotion names what was measured. Deleting is allowed: an
-- evaluation that is gone promotes nothing. Whoever owns the tables can still insert an invented evaluation.

CREATE TRIGGER evaluation_results_stay BEFORE UPDATE ON evaluation_results
FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
-- Answers that quote a purged note go with it; what was found stays.
CREATE TRIGGER evaluation_queries_stay BEFORE UPDATE OF evaluation_id, golden_id, relevant_note_ids, retrieved_note_ids,
first_relevant_rank, metrics, degraded
ON evaluation_queries FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
-- What a promotion was decided on may be forgotten, not what it says.
CREATE TRIGGER promotions_stay BEFORE UPDATE OF configuration, config, config_hash, model, reason, tenant_id
ON promotions FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- A row with a reason is a rollback by a person, which no gate judges.
CREATE FUNCTION check_promotion() RETURNS trigger LANGUAGE plpgsql AS $check_promotion$
BEGIN
    IF new.reason IS NULL AND NOT EXISTS (
        SELECT FROM evaluation_results AS e
        WHERE
            e.id = new.evaluation_id AND e.tenant_id = new.tenant_id AND e.configuration = new.configuration
            AND e.config_hash = new.config_hash AND e.model = new.model AND new.config @> e.config
            AND e.degraded_queries = 0 AND e.gate <> 'disturbed'
    ) THEN
        RAISE EXCEPTION 'promotion of % names no undisturbed evaluation of this configuration', new.configuration;
    END IF;
    RETURN new;
END
$check_promotion$;

CREATE TRIGGER promotions_measured BEFORE INSERT ON promotions
FOR EACH ROW EXECUTE FUNCTION check_promotion();
