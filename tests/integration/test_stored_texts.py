"""Reasons are stored as codes and values, and become sentences when read."""

from uuid import UUID

from rag_resources.database.pool import Database
from rag_resources.database.queries import queries
from rag_resources.languages.messages import Text, _, joined, render, restored
from rag_resources.store.comparison import evaluated_questions
from rag_resources.store.failures import Failure, record_failure
from tests.corpus import Corpus, Draft
from tests.stored_evaluations import Asked, store_evaluation


def failures(database: Database) -> list[str]:
    """Why texts could not be indexed."""
    with database.transaction() as connection:
        return [restored(row.error) for row in queries().errors_by_kind(connection, examples=5)]


def test_a_reason_is_told_in_the_language_of_who_reads_it(database: Database) -> None:
    corpus = Corpus(database)
    (note,) = corpus.fill([Draft("Una nota.", state="new")])
    reason = joined(
        "; ",
        [
            _("There is no time left for this part of the search."),
            _("has more than {max_length} characters or values").format(max_length=3),
        ],
    )
    evaluation = store_evaluation(database, "una", [Asked(1, [note], [], error=reason)])
    with database.transaction() as connection:
        record_failure(connection, Failure("chunk", note, _("The note is empty.")))
        asked = evaluated_questions(connection, [evaluation])[evaluation]
    error = asked[UUID(int=1)].error
    assert isinstance(error, Text)
    assert error == reason
    assert render(error, "en") == (
        "There is no time left for this part of the search.; has more than 3 characters or values"
    )
    assert failures(database) == [_("The note is empty.")]
    (row,) = corpus.fetch("SELECT error FROM indexing_failures")
    assert row[0] == {"message": "The note is empty.", "values": {}}


def test_what_postgresql_cannot_store_stops_no_failure_from_being_kept(database: Database) -> None:
    """A model server's own words may have NUL, half a character or megabytes."""
    (note,) = Corpus(database).fill([Draft("Una nota.", state="new")])
    with database.transaction() as connection:
        record_failure(connection, Failure("chunk", note, "a\0b\ud800" + "c" * 1_000_000))
    (told,) = failures(database)
    assert told.startswith("a\ufffdb?ccc")
    assert len(told) == 1_000
