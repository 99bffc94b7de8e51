"""Comparison of stored evaluations: lookup by name, differences, and changes in between."""

from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID

import pytest

from rag_resources.core.comparison import Verdict
from rag_resources.core.configuration import RetrievalConfig
from rag_resources.core.errors import InvalidParameterError
from rag_resources.core.types import NoteRecord
from rag_resources.database.pool import Database
from rag_resources.evaluation.comparison import EvaluationComparison, compare_by_name
from rag_resources.ingestion.ingest import ingest
from rag_resources.store.notes import note_id
from tests.stored_evaluations import Asked, store_evaluation

NOTES = [note_id("default", "notes", name) for name in ("a", "b", "c", "d")]
GONE = UUID(int=77)


@pytest.fixture(autouse=True)
def notes(database: Database) -> None:
    """Four notes, a month each."""
    records = [
        NoteRecord(name, name.upper(), f"texto {name}", datetime(2025, month, 5, tzinfo=UTC))
        for month, name in enumerate("abcd", start=1)
    ]
    ingest(database, records, tenant="default", source="notes")


def asked(*found: Sequence[UUID]) -> list[Asked]:
    """Questions whose relevant note is the first, and what each found."""
    return [Asked(number, NOTES[:1], notes) for number, notes in enumerate(found)]


def compare(database: Database, before: str, after: str) -> EvaluationComparison:
    with database.snapshot() as connection:
        return compare_by_name(connection, before, after)


def test_the_newest_evaluations_of_two_configurations_are_compared(database: Database) -> None:
    a, b, c, _ = NOTES
    store_evaluation(
        database, "una", asked([b], [b], [b]), created_at=datetime(2025, 1, 1, tzinfo=UTC)
    )
    store_evaluation(database, "una", asked([a], [b, a], [a]))
    store_evaluation(
        database,
        "otra",
        asked([a], [a], [b, c, GONE]),
        config=RetrievalConfig(contextual=False),
        digest="otra huella",
    )
    found = compare(database, "una", "otra")
    hits, _, mrr, _ = found.comparison.metrics
    assert (hits.before, hits.after) == (1, pytest.approx(2 / 3))
    assert (mrr.before, mrr.after) == (pytest.approx(2.5 / 3), pytest.approx(2 / 3))
    assert hits.verdict is Verdict.NO_EVIDENCE
    [flip] = found.flips
    assert flip.after.golden_id == UUID(int=2)
    assert flip.newcomers == (b, c, GONE)
    assert {found.notes[key] for key in (b, c)} == {"b", "c"}
    assert GONE not in found.notes
    assert [(item.field, item.before, item.after) for item in found.changes] == [
        ("contextual", True, False),
        ("huella del modelo", "digest", "otra huella"),
    ]


@pytest.mark.parametrize("name", ["nada", "abcdef", "abc", ""])
def test_a_name_without_an_evaluation_is_bad_input(database: Database, name: str) -> None:
    store_evaluation(database, "una", asked(NOTES[:1]))
    with pytest.raises(InvalidParameterError, match=f"«{name}»"):
        compare(database, "una", name)


def test_different_golden_datasets_are_compared_over_what_they_share(
    database: Database,
) -> None:
    """A question with edited relevant notes is not common to both."""
    a, b, *_ = NOTES
    store_evaluation(database, "una", asked([a], [a], [a]), golden="antes")
    edited = [*asked([a]), Asked(1, [b], [b]), Asked(9, [a], [a])]
    store_evaluation(database, "otra", edited, golden="después")
    found = compare(database, "una", "otra")
    assert found.comparison.queries == 1
    assert found.left_out == 3
    assert [item.field for item in found.changes] == ["conjunto de preguntas"]
