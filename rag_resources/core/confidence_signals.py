"""Computes the signals of a response that its confidence depends on; see `core.confidence`.

Of sixteen signals, these three separated right from wrong responses best, on the sample's questions
for such choices; docs/measurements.md has figures. The scores of the lists alone did worse.
"""

import math
from collections.abc import Sequence

from rag_resources.core.confidence import Signal
from rag_resources.core.sentence_ranking import KIND_FEATURES, RankedSentence, SentenceFeature
from rag_resources.core.types import RetrievalResult
from rag_resources.core.wording import content

SIGNALS_VERSION = "signals-1"
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


_CAP = 20.0


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
        far that is above the second one. For the first sentence: `odds`, the logarithm of its odds;
        `lead`, how far that is above the next sentence's; `coverage`, `context` and `passage` as in
        `SentenceFeature`; `kind`, whether the kind of answer asked for is there. None if no
        sentence shares a word with the question, because nothing is answered then.
    """
    if not any(item.shares_words for item in ranked):
        return None
    first = ranked[0]
    odds = [_log_odds(item) for item in ranked[:2]]
    return {
        Signal.DROP: results[0].score - results[-1].score,
        Signal.LENGTH: float(len(content(query, language))),
        Signal.SCORE: results[0].score,
        Signal.GAP: results[0].score - results[1].score if len(results) > 1 else results[0].score,
        Signal.ODDS: odds[0],
        Signal.LEAD: odds[0] - odds[1] if len(odds) > 1 else _CAP,
        Signal.COVERAGE: first.features[SentenceFeature.COVERAGE],
        Signal.CONTEXT: first.features[SentenceFeature.CONTEXT],
        Signal.PASSAGE: first.features[SentenceFeature.PASSAGE],
        Signal.KIND: math.fsum(first.features[feature] for feature in KIND_FEATURES),
    }


def _log_odds(sentence: RankedSentence) -> float:
    odds = sentence.odds
    return max(-_CAP, min(_CAP, math.log(odds))) if odds > 0 else -_CAP


def _matched(result: RetrievalResult) -> str:
    if result.matched_window is None:
        return result.content
    start, end = (place - result.start_char for place in result.matched_window)
    return result.content[start:end]
