"""What an import changes, and the dataset as it was."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from rag_resources.core.errors import InvalidGoldenDatasetError
from rag_resources.core.golden import GoldenEntry, golden_hash
from rag_resources.core.golden_changes import (
    GoldenChange,
    Operation,
    RecordedChange,
    find_version,
    plan_changes,
    replay,
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


# History


def recorded(version: int, *changes: GoldenChange) -> list[RecordedChange]:
    moment = THEN + timedelta(days=version)
    return [RecordedChange(version, change, moment, "ana", f"v{version}") for change in changes]


HARDER = replace(A, difficulty=5)
HISTORY = [
    *recorded(1, GoldenChange(None, A), GoldenChange(None, B)),
    *recorded(2, GoldenChange(A, HARDER), GoldenChange(B, None)),
    *recorded(3, GoldenChange(HARDER, replace(A, expected_answer="No."))),
    *recorded(5, GoldenChange(replace(A, expected_answer="No."), None)),
]


def test_every_version_is_rebuilt() -> None:
    first, second, third, last = replay(HISTORY)
    assert set(first.entries) == {A, B}
    assert second.entries == (HARDER,)
    assert last.entries == ()
    assert first.golden_hash == golden_hash([B, A])
    assert (first.number, first.origin, first.changed_by) == (1, "v1", "ana")
    assert [second.count(operation) for operation in Operation] == [0, 1, 1]
    assert (third.count(Operation.UPDATE), third.changed_at) == (1, THEN + timedelta(days=3))


@pytest.mark.parametrize(
    ("moment", "number"),
    [
        ("2", None),
        (golden_hash([A, B]), 1),
        (golden_hash([A]), 3),
        ("0123456789abcdef", None),
        ("2025-01-01T23:59:59", None),
        ("2025-01-02", 1),
        ("2025-01-02T01:00", 1),  # as long as a hash
        ("20250102T000000", 1),
        ("2025-01-03T01:00:00+01:00", 2),
        ("2025-01-03T00:30:00+01:00", 1),
        ("2026-01-01", 5),
        ("ayer", None),
        ("", None),
    ],
)
def test_a_version_is_named_by_hash_or_time(moment: str, number: int | None) -> None:
    found = find_version(list(replay(HISTORY)), moment)
    assert (found.number if found else None) == number
