"""Reads from a response what its confidence depends on. What follows is in `core.confidence`.

Of sixteen signals these three told right from wrong best, on the sample's questions that are there
to choose by; docs/quality.md has the figures. The scores of the lists by themselves told less.
"""

from collections.abc import Sequence

from rag_resources.core.confidence import Signal
from rag_resources.core.types import RetrievalResult
from rag_resources.core.wording import content


def signals_of(
    query: str, results: Sequence[RetrievalResult], *, final: int
) -> dict[Signal, float]:
    """Return the signals of the results that a user gets.

    Args:
        query: The question.
        results: Best first, at least one.
        final: How many of them count.

    Returns:
        `drop`: how far the first score is above the last one. `words`: the share of the question's
        content words in the sentences of the first result that matched best, if they are known, or
        else in all of it, and its title. `length`: how many content words the question has.
    """
    used = results[:final]
    first = used[0]
    asked = content(query)
    read = content(f"{first.title}\n{_matched(first)}")
    return {
        Signal.DROP: first.score - used[-1].score,
        Signal.WORDS: len(asked & read) / len(asked) if asked else 0.0,
        Signal.LENGTH: float(len(asked)),
    }


def _matched(result: RetrievalResult) -> str:
    if result.matched_window is None:
        return result.content
    start, end = (place - result.start_char for place in result.matched_window)
    return result.content[start:end]
