"""The differences between two evaluations: fields, and questions that flipped."""

from collections.abc import Sequence
from uuid import UUID

from rag_resources.core.attribution import (
    ConfigChange,
    EvaluatedQuestion,
    config_changes,
    flips,
)
from rag_resources.core.metrics import SERVED
from rag_resources.evaluation.comparison_tables import ranks_in_words


def note(number: int) -> UUID:
    """The id of a note."""
    return UUID(int=1000 + number)


def question(
    number: int, relevant: Sequence[int], retrieved: Sequence[int], served: float | None = None
) -> EvaluatedQuestion:
    """A question by the numbers of its notes."""
    rank = next((i for i, found in enumerate(retrieved, start=1) if found in relevant), None)
    return EvaluatedQuestion(
        golden_id=UUID(int=number),
        query=f"¿pregunta {number}?",
        category="factual",
        relevant=tuple(note(item) for item in relevant),
        retrieved=tuple(note(item) for item in retrieved),
        rank=rank,
        metrics={} if served is None else {SERVED: served},
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


def test_a_question_that_only_what_a_user_gets_has_lost_is_a_flip() -> None:
    """It comes after those lost in the first ten; what came above its note is told."""
    before = by_id(
        question(1, [1], [1, 5], 1.0), question(2, [2], [2], 1.0), question(3, [3], [9, 3], 0.0)
    )
    after = by_id(
        question(1, [1], [7, 8, 5, 1], 0.0), question(2, [2], [9], 0.0), question(3, [3], [3], 1.0)
    )
    found = flips(before, after)
    assert [flip.after.golden_id.int for flip in found] == [2, 1, 3]
    assert [(flip.is_lost, flip.is_served_only) for flip in found] == [
        (True, False),
        (True, True),
        (False, True),
    ]
    assert found[1].newcomers == (note(7), note(8), note(5))
    assert ranks_in_words(found[1]) == "1 → 4 (@final: perdida)"
    assert ranks_in_words(found[2]) == "2 → 1 (@final: ganada)"


def test_config_changes_name_nested_fields() -> None:
    before = {"model": "a", "fusion": {"method": "rrf", "rank_constant": 60}, "old": {}}
    after = {"model": "a", "fusion": {"method": "weighted", "rank_constant": 60}, "new": [1]}
    assert config_changes(before, after) == [
        ConfigChange("fusion.method", "rrf", "weighted"),
        ConfigChange("new", None, [1]),
        ConfigChange("old", {}, None),
    ]
