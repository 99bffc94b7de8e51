"""The questions that the page of an evaluation names."""

from uuid import UUID

from rag_assets.evaluation.metadata import question_metadata
from rag_resources.core.evaluation import QueryOutcome
from rag_resources.core.golden import GoldenEntry
from rag_resources.languages.messages import _

NOTE, OTHER = UUID(int=1), UUID(int=2)


def outcome(query: str, *found: UUID, error: str = "") -> QueryOutcome:
    entry = GoldenEntry(query, (NOTE,), "La gata.", "factual", 1)
    return QueryOutcome(entry, found, 1.0, {}, error=error)


def test_missed_questions_are_named() -> None:
    told = question_metadata([outcome("¿La gata | el gato?", OTHER), outcome("¿Aquí?", NOTE)])
    missed = str(told["missed"].value)
    assert missed.startswith(
        _("Without a relevant note among the first ten: {count}.").format(count=1)
    )
    assert "| ¿La gata \\| el gato? | – |" in missed
    assert "¿Aquí?" not in missed
    assert (
        _("{shown} are shown; all with “rag evaluate NAME --no-store --json”.").format(shown=20)
        not in missed
    )
