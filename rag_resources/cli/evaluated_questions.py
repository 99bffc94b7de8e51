"""The questions that `rag evaluate` names: missed, found in vain, or not answered rightly."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

from rag_resources.cli.output import console, say, table
from rag_resources.core.messages import Message

if TYPE_CHECKING:
    from rag_resources.core.answer_metrics import EvaluatedAnswer
    from rag_resources.core.evaluation import QueryOutcome
    from rag_resources.core.texts import Template

SHOWN_QUESTIONS = 10

_PLACES = (Message.COLUMN_RANK, Message.COLUMN_CAME_FIRST)


class Failing(StrEnum):
    """What an answer to a golden question lacks."""

    NOT_MADE = "notMade"
    EMPTY = "empty"
    FIRST_CITATION = "firstCitation"


_FAILING_WORDS = {
    Failing.NOT_MADE: Message.FAILING_NOT_MADE,
    Failing.EMPTY: Message.FAILING_EMPTY,
    Failing.FIRST_CITATION: Message.FAILING_FIRST_CITATION,
}


def show_missed(outcomes: "Sequence[QueryOutcome]") -> None:
    """Name the questions that were missed, with the rank of their note and what came first."""
    from rag_resources.evaluation.summary import NO_RANK, missed_rows

    rows = missed_rows(outcomes)
    _show(Message.EVALUATE_MISSED, _PLACES, rows)
    if any(rank == NO_RANK for _, rank, _ in rows[:SHOWN_QUESTIONS]):
        say(Message.EVALUATE_NO_RANK)


def show_found_in_vain(outcomes: "Sequence[QueryOutcome]") -> None:
    """Name the questions whose note is among the first ten, but not among what a user gets."""
    from rag_resources.evaluation.summary import found_in_vain_rows

    _show(Message.EVALUATE_IN_VAIN, _PLACES, found_in_vain_rows(outcomes))


def show_not_answered(
    outcomes: "Sequence[QueryOutcome]", answers: "Mapping[str, EvaluatedAnswer]"
) -> None:
    """Name the questions without an answer, and those whose first citation is another place."""
    rows = [
        (item.golden.query, _FAILING_WORDS[failing])
        for item in outcomes
        if item.key in answers and (failing := failing_of(answers[item.key]))
    ]
    _show(Message.EVALUATE_NOT_ANSWERED, (Message.COLUMN_ITS_ANSWER,), rows)


def failing_of(answer: "EvaluatedAnswer") -> Failing | None:
    """Return what an answer lacks; None if its first citation is right, or cannot be judged."""
    from rag_resources.core.answer_metrics import FIRST_CITATION

    if answer.citations is None:
        return Failing.NOT_MADE
    if not answer.citations:
        return Failing.EMPTY
    return Failing.FIRST_CITATION if answer.metrics.get(FIRST_CITATION) == 0 else None


def _show(title: "Template", columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Show the first questions with further columns; nothing without any."""
    if not rows:
        return
    say(title.format(count=len(rows)))
    shown = rows[:SHOWN_QUESTIONS]
    console().print(table((Message.COLUMN_QUESTION, *columns), shown, prose=True))
    if len(shown) < len(rows):
        say(Message.EVALUATE_MISSED_SHOWN.format(shown=len(shown)))
