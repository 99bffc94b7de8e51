"""Reasons are stored as codes and values, and become sentences when read."""

from uuid import UUID

import pytest

from rag_resources.core.messages import Message
from rag_resources.core.texts import Text, joined
from rag_resources.database.pool import Database
from rag_resources.database.queries import SQL, queries
from rag_resources.languages.messages import render, restored
from rag_resources.store.comparison import evaluated_questions
from rag_resources.store.failures import Failure, record_failure
from rag_resources.store.migration import list_batches
from tests.corpus import Corpus, Draft
from tests.stored_evaluations import Asked, store_evaluation

MIGRATION = SQL / "migrations" / "0017_stored_texts.sql"
AS_BEFORE = """
ALTER TABLE migration_batches ALTER reason TYPE text USING reason::text;
ALTER TABLE evaluation_queries ALTER error TYPE text, ALTER judge_error TYPE text;
ALTER TABLE indexing_failures ALTER error TYPE text USING error::text;
"""
ROWS_OF_BEFORE = """
INSERT INTO migration_batches (
    model, chunking_hash, run_id, months, finished_at, config_hash, golden_hash, total_queries,
    hit_rate_at_10, mrr, latency_p95_ms, found, missed, level, gate, reason
) VALUES (
    'm', 'c', 'r', '{}', now(), 'h', 'g', 1, 1, 1, 1, '{}', '{}', 0, 'open', 'así, «era» {x}'
);
INSERT INTO indexing_failures (stage, note_id, error) SELECT 'chunk', id, 'no cabe' FROM notes;
UPDATE evaluation_queries SET error = 'No había tiempo.', judge_error = 'No se pudo.'
WHERE golden_id = '00000000-0000-0000-0000-000000000001';
UPDATE evaluation_queries SET answer = 'No consta en las notas.', answer_note_ids = '{}'
WHERE golden_id = '00000000-0000-0000-0000-000000000002';
"""


@pytest.fixture
def tenant() -> str:
    return "ana"


def failures(database: Database) -> list[str]:
    """Why texts could not be indexed."""
    with database.transaction() as connection:
        return [restored(row.error) for row in queries().errors_by_kind(connection, examples=5)]


def test_rows_of_before_are_still_read(database: Database) -> None:
    """What the migration makes of sentences; that nothing was found is no sentence any more."""
    corpus = Corpus(database)
    (note,) = corpus.fill([Draft("Una nota.", state="new")])
    evaluation = store_evaluation(
        database, "una", [Asked(number, [note], [note]) for number in (1, 2)]
    )
    with database.transaction() as connection:
        connection.execute(AS_BEFORE)
        connection.execute(ROWS_OF_BEFORE)
        connection.execute(MIGRATION.read_bytes())
        (batch,) = list_batches(connection, limit=5)
        asked = evaluated_questions(connection, [evaluation])[evaluation]
    assert batch.reason == "así, «era» {x}"
    assert failures(database) == ["no cabe"]
    assert [asked[UUID(int=number)].error for number in (1, 2)] == ["No había tiempo.", None]
    rows = corpus.fetch("SELECT judge_error, answer FROM evaluation_queries ORDER BY golden_id")
    assert [tuple(row) for row in rows] == [({"text": "No se pudo."}, None), (None, None)]


def test_a_reason_is_told_in_the_language_of_who_reads_it(database: Database) -> None:
    corpus = Corpus(database)
    (note,) = corpus.fill([Draft("Una nota.", state="new")])
    reason = joined("; ", [Message.TIME_IS_UP, Message.PROBLEM_TOO_MANY.format(max_length=3)])
    evaluation = store_evaluation(database, "una", [Asked(1, [note], [], error=reason)])
    with database.transaction() as connection:
        record_failure(connection, Failure("chunk", note, Message.BLANK_NOTE))
        asked = evaluated_questions(connection, [evaluation])[evaluation]
    error = asked[UUID(int=1)].error
    assert isinstance(error, Text)
    assert error == reason
    assert render(error, "en") == (
        "There is no time left for this part of the search.; has more than 3 values"
    )
    assert failures(database) == [Message.BLANK_NOTE]
    (row,) = corpus.fetch("SELECT error FROM indexing_failures")
    assert row[0] == {"code": "BLANK_NOTE", "values": {}}


def test_what_postgresql_cannot_store_stops_no_failure_from_being_kept(database: Database) -> None:
    """A model server's own words may have NUL, half a character or megabytes."""
    (note,) = Corpus(database).fill([Draft("Una nota.", state="new")])
    with database.transaction() as connection:
        record_failure(connection, Failure("chunk", note, "a\0b\ud800" + "c" * 1_000_000))
    (told,) = failures(database)
    assert told.startswith("a\ufffdb?ccc")
    assert len(told) == 1_000
