"""Computes the signals of a response that its confidence depends on; see `core.confidence`.

Of sixteen signals, these three separated right from wrong responses best, on the sample's questions
for such choices; docs/measurements.md has figures. The scores of the lists alone did worse.
"""

from collections.abc import Sequence

from rag_resources.core.confidence import Signal
from rag_resources.core.quotation import RankedSentence, says_something
from rag_resources.core.types import RetrievalResult
from rag_resources.core.wording import content

SIGNALS_VERSION = "signals-2"
"""Change this whenever the same answer may get other signals."""


def signals_of(
    query: str, results: Sequence[RetrievalResult], *, final: int, language: str = "es"
) -> dict[Signal, float]:
    """Return the signals of the results that a user gets.

    Args:
        query: The question.
        results: Best first, at least one.
        final: How many of them count.
        language: The question's language.

    Returns:
        `drop`: how far the first score is above the last one. `words`: the share of the question's
        content words that are in the first result's title or best-matching sentences (if these are
        not known, in all of it). `length`: how many content words the question has.
    """
    used = results[:final]
    first = used[0]
    asked = content(query, language)
    read = content(f"{first.title}\n{_matched(first)}")
    return {
        Signal.DROP: first.score - used[-1].score,
        Signal.WORDS: len(asked & read) / len(asked) if asked else 0.0,
        Signal.LENGTH: float(len(asked)),
    }


def answer_signals(
    query: str, results: Sequence[RetrievalResult], ranked: Sequence[RankedSentence], language: str
) -> dict[Signal, float] | None:
    """Return the signals of an answer before it is written, from its likeliest sentence.

    Args:
        query: The question.
        results: The results that it is answered from, best first.
        ranked: The sentences of the results, the likeliest first.
        language: The question's language.

    Returns:
        `drop` and `length` as in `signals_of`; `score`, the first result's score, and `gap`, how
        far that is above the second one. For the first sentence: `sentence`, its score; `lead`, how
        far that is above the next sentence's; `similarity`, `coverage` and `context` as in
        `RankedSentence`. None if nothing is answered: see `quotation.quote`.
    """
    if not says_something(ranked):
        return None
    first = ranked[0]
    return {
        Signal.DROP: results[0].score - results[-1].score,
        Signal.LENGTH: float(len(content(query, language))),
        Signal.SCORE: results[0].score,
        Signal.GAP: results[0].score - results[1].score if len(results) > 1 else results[0].score,
        Signal.SENTENCE: first.score,
        Signal.LEAD: first.score - ranked[1].score if len(ranked) > 1 else first.score,
        Signal.SIMILARITY: first.similarity,
        Signal.COVERAGE: first.coverage,
        Signal.CONTEXT: first.context,
    }


def _matched(result: RetrievalResult) -> str:
    if result.matched_window is None:
        return result.content
    start, end = (place - result.start_char for place in result.matched_window)
    return result.content[start:end]
