-- The same words and the same weights in less time.

-- Below U+0300, of dashes, quotation marks and the euro every character is normalized and joins with none, and most
-- texts have no other: looking for one takes a third of the check.
-- The letters of Spanish one by one: translate() compares every character with all of its list, twice the time.
CREATE OR REPLACE FUNCTION fold_accents(t text) RETURNS text
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $fold_accents$
BEGIN
    IF t ~ '[^\u0001-\u02ff\u2010-\u203a\u20ac]' AND t IS NOT nfc NORMALIZED THEN
        t := normalize(t, nfc);
    END IF;
    t := replace(replace(replace(t, 'á', 'a'), 'é', 'e'), 'í', 'i');
    t := replace(replace(replace(t, 'ó', 'o'), 'ú', 'u'), 'ü', 'u');
    IF t ~ '[àèìòùâêîôûäëïöçÁÉÍÓÚÜÀÈÌÒÙÂÊÎÔÛÄËÏÖÇ]' THEN
        t := translate(
            t, 'àèìòùâêîôûäëïöçÁÉÍÓÚÜÀÈÌÒÙÂÊÎÔÛÄËÏÖÇ', 'aeiouaeiouaeiocAEIOUUAEIOUAEIOUAEIOC'
        );
    END IF;
    RETURN t;
END
$fold_accents$;

-- 2,200 times the occurrences, divided by occurrences + 1.2 (0.25 + 0.75 length / 200), rounded half up: in integers,
-- since numeric arithmetic took two fifths of the time, and floating-point numbers round some halves down.
CREATE OR REPLACE FUNCTION lexeme_weights(v tsvector, occurrences integer) RETURNS sparsevec
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN (
    SELECT
        (
            '{' || coalesce(
                string_agg(w.dimension || ':' || (44000000 * w.often + w.divisor) / (2 * w.divisor), ','), ''
            ) || '}/536870912'
        )::sparsevec
    FROM (
        SELECT
            lexeme_dimension(l.lexeme) AS dimension, max(cardinality(l.positions))::bigint AS often,
            10000 * max(cardinality(l.positions))::bigint + 3000 + 45 * occurrences::bigint AS divisor
        FROM unnest(v) AS l GROUP BY lexeme_dimension(l.lexeme) LIMIT 16000 -- noqa: AM09
    ) AS w
);

-- The words of a chunk that is a whole note are those of the note, which are stored already, and of what its topics say
-- besides the title: parsing the text again would take half of the time of writing it. Only where the parser sees the
-- same words, one by one, as in topics and content together: so not after what may go on with the next word.
CREATE OR REPLACE FUNCTION chunk_words() RETURNS trigger LANGUAGE plpgsql AS $chunk_words$
DECLARE
    words_of_note tsvector;
    further_topics text;
BEGIN
    IF new.start_char = 0 AND octet_length(new.content) <= 16000 AND new.topics !~ '<' THEN
        SELECT w.tsv, substr(new.topics, 1 + char_length(n.title)) INTO words_of_note, further_topics
        FROM notes AS n INNER JOIN note_words AS w ON w.note_id = n.id
        WHERE
            n.id = new.note_id AND octet_length(n.content) = octet_length(new.content) AND n.content = new.content
            AND n.tags = '{}' AND n.title !~ '[<&/@.:]' AND char_length(n.title) <= 1000
            AND starts_with(new.topics, n.title)
            AND (n.title = '' OR substr(new.topics, 1 + char_length(n.title), 1) IN ('', ':'));
    END IF;
    IF words_of_note IS NULL THEN
        new.tsv := spanish_tsvector(new.topics || ' ' || new.content);
    ELSE
        new.tsv := words_of_note || spanish_tsvector(further_topics);
    END IF;
    new.lexeme_occurrences := count_occurrences(new.tsv);
    RETURN new;
END
$chunk_words$;
