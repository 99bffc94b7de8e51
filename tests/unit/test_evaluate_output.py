"""What `rag evaluate` shows of single questions."""

import re
from dataclasses import replace
from uuid import UUID

import pytest

from rag_resources.cli.evaluated_questions import (
    SHOWN_QUESTIONS,
    Failing,
    failing_of,
    show_found_in_vain,
    show_missed,
    show_not_answered,
)
from rag_resources.core.answer_metrics import FIRST_CITATION, EvaluatedAnswer
from rag_resources.core.evaluation import QueryOutcome
from rag_resources.core.golden import GoldenEntry
from rag_resources.core.messages import Message
from rag_resources.core.passage_metrics import NoteRange
from rag_resources.core.types import RetrievalResult

WANTED, OTHER = UUID(int=1), UUID(int=2)


def outcome(query: str, found: UUID, *, error: str | None = None) -> QueryOutcome:
    """Return the outcome of a question that found one note."""
    golden = GoldenEntry(query, (WANTED,), "", "factual", 1, golden_id=UUID(int=3))
    result = RetrievalResult(found, found, "", "", 1.0, 0, (0, 0), "fulltext", 1.0, title="El pozo")
    return QueryOutcome(golden, (found,), 1.0, {}, context=(result,), error=error)


def numbered(item: QueryOutcome, number: int) -> QueryOutcome:
    """Return the outcome with a golden id of its own."""
    return replace(item, golden=replace(item.golden, golden_id=UUID(int=number)))


def test_missed_questions_are_named_with_what_came_first(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Not those that were found; those that failed are told elsewhere."""
    show_missed([outcome("¿Sí?", WANTED), outcome("¿Roto?", OTHER, error="roto")])
    assert capsys.readouterr().out == ""
    show_missed([outcome("¿Sí?", WANTED), outcome("¿Y no?", OTHER)])
    shown = capsys.readouterr().out
    assert Message.EVALUATE_MISSED.format(count=1) in shown
    assert "¿Y no?" in shown
    assert re.search(r"¿Y no\? +– +El pozo", shown)
    assert "¿Sí?" not in shown


def test_a_missed_question_has_the_rank_of_its_note_below_the_tenth(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Of notes, not of passages, within the depth that the configuration searches."""
    others = tuple(UUID(int=number) for number in range(2, 14))
    deep = replace(outcome("¿Lejos?", OTHER), retrieved_note_ids=(*others, OTHER, WANTED))
    show_missed([deep])
    assert re.search(r"¿Lejos\? +13 +El pozo", capsys.readouterr().out)


def test_of_many_missed_questions_the_first_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    show_missed([outcome(f"¿Número {number}?", OTHER) for number in range(SHOWN_QUESTIONS + 1)])
    shown = capsys.readouterr().out
    assert shown.count("¿Número") == SHOWN_QUESTIONS
    assert Message.EVALUATE_MISSED_SHOWN.format(shown=SHOWN_QUESTIONS) in shown


def test_questions_found_only_below_what_a_user_gets_are_named_with_their_rank(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """They are hits at 10 and misses for a user; no other question is named here."""
    show_found_in_vain([outcome("¿Sí?", WANTED), outcome("¿Y no?", OTHER)])
    assert capsys.readouterr().out == ""
    shown = outcome("¿Casi?", OTHER)
    others = tuple(UUID(int=number) for number in range(2, 9))
    late = replace(shown, retrieved_note_ids=(*others, WANTED))
    show_found_in_vain([late, outcome("¿Sí?", WANTED)])
    told = capsys.readouterr().out
    assert Message.EVALUATE_IN_VAIN.format(count=1) in told
    assert re.search(r"¿Casi\? +8 +", told)
    assert Message.COLUMN_CAME_FIRST in told
    assert "¿Sí?" not in told


def test_questions_without_a_right_answer_are_named_with_what_it_lacks(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Not those whose first citation is right, nor those without golden places to judge it by."""
    cited = ((NoteRange(WANTED, 0, 4),),)
    made = {
        "¿Bien?": EvaluatedAnswer(cited, {FIRST_CITATION: 1.0}),
        "¿Sin lugar?": EvaluatedAnswer(cited, {}),
        "¿Otro?": EvaluatedAnswer(cited, {FIRST_CITATION: 0.0}),
        "¿Nada?": EvaluatedAnswer((), {}),
        "¿Roto?": EvaluatedAnswer(None, {}),
    }
    asked = [numbered(outcome(query, WANTED), number) for number, query in enumerate(made)]
    answers = {item.key: made[item.golden.query] for item in asked}
    show_not_answered(asked[:2], answers)
    assert capsys.readouterr().out == ""
    show_not_answered([*asked, numbered(outcome("¿Sin preguntar?", WANTED), 9)], answers)
    told = capsys.readouterr().out
    assert Message.EVALUATE_NOT_ANSWERED.format(count=3) in told
    for query, failing in (
        ("¿Otro?", Message.FAILING_FIRST_CITATION),
        ("¿Nada?", Message.FAILING_EMPTY),
        ("¿Roto?", Message.FAILING_NOT_MADE),
    ):
        assert re.search(rf"{re.escape(query)} +{re.escape(failing)}", told)
    assert "¿Bien?" not in told
    assert "¿Sin" not in told
    assert [failing_of(each) for each in made.values()] == [
        None,
        None,
        Failing.FIRST_CITATION,
        Failing.EMPTY,
        Failing.NOT_MADE,
    ]
