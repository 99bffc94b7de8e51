"""What `rag evaluate` shows of single questions."""

from uuid import UUID

import pytest

from rag_resources.cli.evaluate import SHOWN_QUESTIONS, show_missed
from rag_resources.core.evaluation import QueryOutcome
from rag_resources.core.golden import GoldenEntry
from rag_resources.core.types import RetrievalResult

WANTED, OTHER = UUID(int=1), UUID(int=2)


def outcome(query: str, found: UUID, *, error: str | None = None) -> QueryOutcome:
    """Return the outcome of a question that found one note."""
    golden = GoldenEntry(query, (WANTED,), "", "factual", 1, golden_id=UUID(int=3))
    result = RetrievalResult(found, found, "", "", 1.0, 0, (0, 0), "fulltext", 1.0, title="El pozo")
    return QueryOutcome(golden, (found,), 1.0, {}, context=(result,), error=error)


def test_of_many_missed_questions_the_first_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    show_missed([outcome(f"¿Número {number}?", OTHER) for number in range(SHOWN_QUESTIONS + 1)])
    shown = capsys.readouterr().out
    assert shown.count("¿Número") == SHOWN_QUESTIONS
