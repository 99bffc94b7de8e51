"""The differences between two evaluations, and the months that explain lost questions."""

from collections.abc import Sequence
from uuid import UUID

import pytest

from rag_resources.core.attribution import (
    ConfigChange,
    EvaluatedQuestion,
    Flip,
    MonthBlame,
    blame_months,
    config_changes,
    flips,
)


def note(number: int) -> UUID:
    """The id of a note."""
    return UUID(int=1000 + number)


def question(number: int, relevant: Sequence[int], retrieved: Sequence[int]) -> EvaluatedQuestion:
    """A question by the numbers of its notes."""
    rank = next((i for i, found in enumerate(retrieved, start=1) if found in relevant), None)
    return EvaluatedQuestion(
        golden_id=UUID(int=number),
        query=f"¿pregunta {number}?",
        category="factual",
        relevant=tuple(note(item) for item in relevant),
        retrieved=tuple(note(item) for item in retrieved),
        rank=rank,
        metrics={},
    )


def by_id(*questions: EvaluatedQuestion) -> dict[UUID, EvaluatedQuestion]:
    """Questions as an evaluation has them."""
    return {item.golden_id: item for item in questions}


def test_flips_are_the_questions_one_found_and_the_other_did_not() -> None:
    """Lost questions come first, best former rank first; a moved question is not a flip."""
    before = by_id(question(1, [1], [5, 1]), question(2, [2], [2]), question(3, [3], [9]))
    after = by_id(question(1, [1], [5, 6]), question(2, [2], [7]), question(3, [3], [9, 3]))
    found = flips(before, after)
    assert [flip.after.golden_id.int for flip in found] == [2, 1, 3]
    assert [flip.is_lost for flip in found] == [True, True, False]


def test_a_question_of_one_evaluation_only_is_no_flip() -> None:
    assert flips(by_id(question(1, [1], [1])), {}) == []


def test_newcomers_are_what_came_in_instead() -> None:
    """Notes retrieved before and relevant notes do not count; a gained question has none."""
    lost = Flip(question(1, [1, 2], [1, 5]), question(1, [1, 2], [8, 5, 9]))
    assert lost.newcomers == (note(8), note(9))
    assert Flip(lost.after, lost.before).newcomers == ()


def test_config_changes_name_nested_fields() -> None:
    before = {"model": "a", "fusion": {"method": "rrf", "rank_constant": 60}, "old": {}}
    after = {"model": "a", "fusion": {"method": "weighted", "rank_constant": 60}, "new": [1]}
    assert config_changes(before, after) == [
        ConfigChange("fusion.method", "rrf", "weighted"),
        ConfigChange("new", None, [1]),
        ConfigChange("old", {}, None),
    ]


@pytest.fixture
def lost() -> list[Flip]:
    """Two questions lost: one of March; one of January, displaced by notes of March and May."""
    return [
        Flip(question(1, [3], [3]), question(1, [3], [8])),
        Flip(question(2, [1], [1]), question(2, [1], [33, 5])),
    ]


MONTHS = {note(1): "2025-01", note(3): "2025-03", note(33): "2025-03", note(5): "2025-05"}


def test_a_month_explains_the_questions_whose_notes_it_has(lost: list[Flip]) -> None:
    """The other question is explained by the notes that displaced its note, even of March."""
    assert blame_months(lost, MONTHS, {"2025-03"}) == [MonthBlame("2025-03", 1, 1)]


def test_newcomers_count_only_where_no_month_of_the_question_was_touched(lost: list[Flip]) -> None:
    assert blame_months(lost, MONTHS, {"2025-01", "2025-03", "2025-05"}) == [
        MonthBlame("2025-03", 1, 0),
        MonthBlame("2025-01", 1, 0),
    ]


def test_months_that_explain_nothing_are_not_named(lost: list[Flip]) -> None:
    assert blame_months(lost, MONTHS, {"2024-12"}) == []
    gained = [Flip(flip.after, flip.before) for flip in lost]
    assert blame_months(gained, MONTHS, {"2025-03"}) == []


def test_months_that_explain_most_come_first_then_the_newest(lost: list[Flip]) -> None:
    assert [item.month for item in blame_months(lost, MONTHS, {"2025-01", "2025-03"})] == [
        "2025-03",
        "2025-01",
    ]
    assert blame_months(lost, MONTHS, {"2025-05"}) == [MonthBlame("2025-05", 0, 1)]


def test_questions_gained_come_by_the_rank_they_have_now() -> None:
    before = by_id(*(question(number, [number], []) for number in (1, 2, 3)))
    after = by_id(
        question(1, [1], [7, 8, 1]), question(2, [2], [2]), question(3, [3], [7, 8, 9, 3])
    )
    assert [flip.after.golden_id.int for flip in flips(before, after)] == [2, 1, 3]


def test_a_month_that_explains_more_comes_before_a_newer_one(lost: list[Flip]) -> None:
    """By a month's own lost questions, then by those it displaced; gained ones do not count."""
    another = Flip(question(4, [1], [1]), question(4, [1], [8]))
    gained = Flip(lost[1].after, lost[1].before)
    assert blame_months([gained, *lost, another], MONTHS, {"2025-01", "2025-03"}) == [
        MonthBlame("2025-01", 2, 0),
        MonthBlame("2025-03", 1, 0),
    ]
    march = Flip(question(5, [2], [2]), question(5, [2], [33]))
    assert blame_months([lost[1], march], MONTHS, {"2025-03", "2025-05"}) == [
        MonthBlame("2025-03", 0, 2),
        MonthBlame("2025-05", 0, 1),
    ]
