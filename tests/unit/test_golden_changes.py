"""What an import changes, and the dataset as it was."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from rag_resources.core.errors import InvalidGoldenDatasetError
from rag_resources.core.golden import GoldenEntry
from rag_resources.core.golden_changes import (
    GoldenChange,
    plan_changes,
)
from tests.strategies import uuid_number

THEN = datetime(2025, 1, 1, tzinfo=UTC)


def stored(number: int, query: str) -> GoldenEntry:
    return GoldenEntry(
        query, (uuid_number(1),), "Sí.", "factual", 1, (), uuid_number(number), THEN, THEN
    )


A, B = stored(10, "¿A?"), stored(11, "¿B?")


def wanted(entry: GoldenEntry, **changes: object) -> GoldenEntry:
    """An entry as a file without ids and times gives it."""
    bare = replace(entry, golden_id=None, created_at=None, updated_at=None)
    return replace(bare, **changes)  # type: ignore[arg-type]


def plan(entries: list[GoldenEntry], *, merge: bool = False) -> list[GoldenChange]:
    return plan_changes([A, B], entries, replace_all=not merge, origin="oro.json")


def test_what_is_as_it_is_wanted_is_not_touched() -> None:
    """With its id and times, or without."""
    assert plan([B, A]) == []
    assert plan([wanted(A), wanted(B, query=" ¿b? ")]) == [
        GoldenChange(B, wanted(B, query=" ¿b? ", golden_id=B.golden_id, created_at=THEN))
    ]
    assert plan([wanted(A), wanted(B)]) == []


def test_what_is_not_wanted_goes_unless_the_import_only_adds() -> None:
    new = wanted(A, query="¿C?")
    assert plan([wanted(A), new]) == [GoldenChange(B, None), GoldenChange(None, new)]
    assert plan([new], merge=True) == [GoldenChange(None, new)]


def test_a_question_is_reworded_under_its_id() -> None:
    reworded = replace(A, query="¿Y A?")
    assert plan([reworded, B]) == [GoldenChange(A, reworded)]
    assert plan([reworded], merge=True) == [GoldenChange(A, reworded)]


def test_the_old_wording_of_a_question_that_keeps_its_id_is_a_new_question() -> None:
    reworded = replace(A, query="¿Y A?")
    assert plan([wanted(A), reworded, B]) == [
        GoldenChange(None, wanted(A)),
        GoldenChange(A, reworded),
    ]


def test_a_question_of_another_entry_that_stays_cannot_be_taken() -> None:
    with pytest.raises(InvalidGoldenDatasetError) as caught:
        plan([wanted(A), replace(A, query="¿b?")][1:], merge=True)
    assert caught.value.problems == [
        f"entrada 1 («¿b?»): la pregunta ya está: {B.golden_id} (mayúsculas, "
        "acentos y puntuación no cuentan)"
    ]
    assert "oro.json" in caught.value.message
    assert caught.value.context == {"origin": "oro.json"}
    taken = replace(A, query="¿b?")
    assert plan([taken]) == [GoldenChange(B, None), GoldenChange(A, taken)]
