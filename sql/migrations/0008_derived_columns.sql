-- The words of a chunk are computed once: generated columns computed them twice, for two columns.

CREATE FUNCTION chunk_words() RETURNS trigger LANGUAGE plpgsql AS $chunk_words$
BEGIN
    new.tsv := spanish_tsvector(new.topics || ' ' || new.content);
    new.lexeme_occurrences := count_occurrences(new.tsv);
    RETURN new;
END
$chunk_words$;

-- What is stored stays.
ALTER TABLE chunks
ALTER COLUMN tsv DROP EXPRESSION,
ALTER COLUMN lexeme_occurrences DROP EXPRESSION;

CREATE TRIGGER chunks_words BEFORE INSERT OR UPDATE OF topics, content, tsv, lexeme_occurrences ON chunks
FOR EACH ROW EXECUTE FUNCTION chunk_words();
