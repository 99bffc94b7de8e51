"""What `rag evaluate` shows of single questions."""

import re
from dataclasses import replace
from uuid import UUID

import pytest

from rag_resources.cli.evaluate import SHOWN_MISSED, show_found_in_vain, show_missed
from rag_resources.core.evaluation import QueryOutcome
from rag_resources.core.golden import GoldenEntry
from rag_resources.core.messages import Message
from rag_resources.core.types import RetrievalResult

WANTED, OTHER = UUID(int=1), UUID(int=2)


def outcome(query: str, found: UUID, *, error: str | None = None) -> QueryOutcome:
    """Return the outcome of a question that found one note."""
    golden = GoldenEntry(query, (WANTED,), "", "factual", 1, golden_id=UUID(int=3))
    result = RetrievalResult(found, found, "", "", 1.0, 0, (0, 0), "fulltext", 1.0, title="El pozo")
    return QueryOutcome(golden, (found,), 1.0, {}, context=(result,), error=error)


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
    assert "El pozo" in shown
    assert "¿Sí?" not in shown


def test_of_many_missed_questions_the_first_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    show_missed([outcome(f"¿Número {number}?", OTHER) for number in range(SHOWN_MISSED + 1)])
    shown = capsys.readouterr().out
    assert shown.count("¿Número") == SHOWN_MISSED
    assert Message.EVALUATE_MISSED_SHOWN.format(shown=SHOWN_MISSED) in shown


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
    assert re.search(r"¿Casi\? +8\b", told)
    assert "¿Sí?" not in told
