"""A learned fusion: the features of a candidate, and the score that its model gives.

Combining the result with the lists is in `core.fusion`; training in `core.fusion_training`.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from uuid import UUID

from rag_resources.core import logistic
from rag_resources.core.fusion_config import Feature, LearnedModel
from rag_resources.core.query import searched_words
from rag_resources.core.retrievers import RankedList
from rag_resources.core.sentences import sentences
from rag_resources.core.types import Ranking
from rag_resources.core.wording import fold, stem

Features = Mapping[Feature, float]

FEATURE_OF: Mapping[RankedList, Feature] = {
    RankedList.SEMANTIC: Feature.SEMANTIC,
    RankedList.CONTEXTUAL: Feature.CONTEXTUAL,
    RankedList.WINDOWS: Feature.WINDOWS,
    RankedList.FULLTEXT: Feature.FULLTEXT,
    RankedList.NOTES_SEMANTIC: Feature.SEMANTIC,
    RankedList.NOTES_WINDOWS: Feature.WINDOWS,
    RankedList.NOTES_FULLTEXT: Feature.FULLTEXT,
}

# Replaces a missing score by another one: a whole note has no contextual vector, for example.
_INSTEAD = {Feature.CONTEXTUAL: Feature.SEMANTIC}
_WORD = re.compile(r"\w+")
_KEPT_TEXTS = 2_000


@dataclass(frozen=True, slots=True)
class QuestionWords:
    """The words of a question that candidates are compared with.

    Attributes:
        stems: The stems of all its words in order, without interrogatives.
        idf: Inverse document frequency by stem; stop words have none.
    """

    stems: tuple[str, ...]
    idf: Mapping[str, float]

    @classmethod
    def of(cls, query: str, idf: Mapping[str, float]) -> "QuestionWords":
        """Return the words of a question.

        Args:
            query: The question.
            idf: By word, as `words_of` gives them; stop words have none.
        """
        weights: dict[str, float] = {}
        for word, weight in idf.items():
            own = _stem(word)
            weights[own] = max(weight, weights.get(own, 0.0))
        return cls(tuple(map(_stem, words_of(query))), weights)

    def share(self, found: Iterable[str]) -> float:
        """Return the share of the question's distinct words that were found, by idf."""
        total = math.fsum(self.idf.values())
        return math.fsum(self.idf[word] for word in self.idf.keys() & found) / total if total else 0


def words_of(query: str) -> list[str]:
    """Return the words of a question as they are written, without interrogatives."""
    return _WORD.findall(searched_words(query))


def word_features(question: QuestionWords, text: str) -> dict[Feature, float]:
    """Compare the words of a question with those of a passage, by stems.

    Returns:
        `coverage`: share of the question's idf that the passage holds. `sentence`: the highest
        share of one of its sentences. `phrase`: share of the idf in the longest run of words that
        both have. `closeness`: the coverage, times how many words were found over the length of the
        shortest span that holds them all. Each is in [0, 1]. `length`: ln(1 + words).
    """
    by_sentence = _stems_by_sentence(text)
    stems = [word for words in by_sentence for word in words]
    coverage = question.share(stems)
    asked = [word if word in question.idf else "" for word in stems]
    return {
        Feature.COVERAGE: coverage,
        Feature.SENTENCE: max((question.share(words) for words in by_sentence), default=0.0),
        Feature.PHRASE: _phrase(question, stems),
        Feature.CLOSENESS: coverage * _density(asked),
        Feature.LENGTH: math.log1p(len(stems)),
    }


def candidate_features(
    rankings: Sequence[Ranking],
    scores: Sequence[Mapping[UUID, float]],
    words: Mapping[UUID, Features],
) -> dict[UUID, dict[Feature, float]]:
    """Return the features of every candidate of the lists.

    A score that was looked up and not found is 0, or that of the feature that replaces it, so that
    a whole note compares with a chunk. A list for a sub-question or hypothetical answer counts only
    for its own candidates, and only where its score is higher. A feature of no list is left out.

    Args:
        rankings: The lists.
        scores: By list, in [0, 1]; see `fuse`.
        words: Those of `word_features`, by candidate.
    """
    found: dict[UUID, dict[Feature, float]] = {
        candidate.chunk_id: {} for ranking in rankings for candidate in ranking.candidates
    }
    for ranking, known in zip(rankings, scores, strict=True):
        feature = FEATURE_OF[ranking.name]
        held = {candidate.chunk_id for candidate in ranking.candidates}
        for key in (found if ranking.question == 0 else held) & known.keys():
            found[key][feature] = max(known[key], found[key].get(feature, 0.0))
    searched = {FEATURE_OF[ranking.name] for ranking in rankings}
    for key, own in found.items():
        for feature in searched - own.keys():
            own[feature] = own.get(_INSTEAD.get(feature, feature), 0.0)
        own.update(words.get(key, {}))
    return found


def predict(model: LearnedModel, features: Features) -> float:
    """Return the logistic function of the model's sum, in [0, 1].

    A missing feature counts as its mean; it is missing if its retriever failed.
    """
    return logistic.probability(model.intercept, model.features, features)


def _stem(word: str) -> str:
    return stem(fold(word))


@lru_cache(maxsize=_KEPT_TEXTS)
def _stems_by_sentence(text: str) -> tuple[tuple[str, ...], ...]:
    """Return the stems of each sentence; cached, because this is slow and passages repeat."""
    return tuple(
        tuple(map(stem, _WORD.findall(fold(text[span.start : span.end]))))
        for span in sentences(text)
    )


def _phrase(question: QuestionWords, stems: Sequence[str]) -> float:
    """Return the share of the question's idf in the longest run of words that both have."""
    places: dict[str, list[int]] = {}
    for place, word in enumerate(question.stems):
        places.setdefault(word, []).append(place)
    best, runs = 0.0, dict[int, float]()
    for word in stems:
        own = question.idf.get(word, 0.0)
        runs = {place: runs.get(place - 1, 0.0) + own for place in places.get(word, ())}
        best = max(best, *runs.values(), 0.0) if runs else best
    total = sum(question.idf.get(word, 0.0) for word in question.stems)
    return min(1.0, best / total) if total else 0.0


def _density(stems: Sequence[str]) -> float:
    """Return distinct words over the length of the shortest span with all; other words are ""."""
    wanted = len(set(stems) - {""})
    last: dict[str, int] = {}
    shortest = math.inf
    for place, word in enumerate(stems):
        if word:
            last.pop(word, None)
            last[word] = place  # At the end, so that the first was seen longest ago.
            if len(last) == wanted:
                shortest = min(shortest, place - next(iter(last.values())) + 1)
    return wanted / shortest if wanted else 0.0
