"""Ranks the sentences of passages by how likely they answer a question, from their words alone.

The model's weights are data of `answers`; they are fitted by `tests.benchmarks.bench_answers`.
Making an answer of the best sentences belongs in `core.answers`.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache, lru_cache
from itertools import chain

from pydantic import BaseModel, ConfigDict

from rag_resources.core import logistic
from rag_resources.core.causal import find_statements, gives_cause
from rag_resources.core.logistic import FeatureWeight
from rag_resources.core.passage_sentences import ScoredPassage, Sentence, sentences_of
from rag_resources.core.rules import question_rules, rules
from rag_resources.core.wording import content, fold, names

COMPLETED_WITHIN = 2
"""How many sentences after the first one its amount or its cause is looked for."""

_PRICE = "price"
_AMOUNTS = frozenset(("amount", _PRICE))
_CAUSE = "cause"
_LIST_MARKS = "-*• "
_KEPT_TEXTS = 2_000
_BEGINNING = 4


class SentenceFeature(StrEnum):
    """A feature of a sentence that may answer a question.

    `coverage`, `context` and `passage` are the shares of the question's words, by how rare they are
    among the sentences, that are in the sentence alone, in it and its two neighbours and headings,
    and in its whole passage. `beginnings` is the coverage by the first four letters of words, which
    inflected verbs share. `score` is the passage's score over that of the first passage, `rank` 1
    over its rank. The others say whether the kind of answer that is asked for is there (1) or not
    (-1); 0 if another kind is asked for.
    """

    COVERAGE = "coverage"
    BEGINNINGS = "beginnings"
    CONTEXT = "context"
    PASSAGE = "passage"
    SCORE = "score"
    RANK = "rank"
    HAS_CAUSE = "has_cause"
    HAS_TIME = "has_time"
    HAS_NUMBER = "has_number"
    HAS_NAME = "has_name"
    HAS_PLACE = "has_place"


KIND_FEATURES = tuple(feature for feature in SentenceFeature if feature.startswith("has_"))
"""The features that say whether the kind of answer that is asked for is there."""

_KINDS_OF_TITLES = tuple(
    feature
    for feature in KIND_FEATURES
    if feature not in (SentenceFeature.HAS_NAME, SentenceFeature.HAS_PLACE)
)

SentenceFeatures = Mapping[SentenceFeature, float]


class SentenceModel(BaseModel):
    """A logistic model of which sentence answers, with how it was made.

    Attributes:
        version: Name and number; another version may rank the same sentences differently.
        trained_on: The questions that it was fitted to.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: str
    trained_on: str
    intercept: float
    features: dict[SentenceFeature, FeatureWeight]


@dataclass(frozen=True, slots=True)
class RankedSentence:
    """A sentence with the model's score.

    Attributes:
        score: In [0, 1]; comparable only within one question.
        features: Its features.
        completes: Whether it has the amount or the cause that the question asks for and the first
            one lacks, and stands close to that one.
    """

    sentence: Sentence
    score: float
    features: SentenceFeatures
    completes: bool = False

    @property
    def shares_words(self) -> bool:
        """Whether it has a word of the question."""
        return self.features[SentenceFeature.BEGINNINGS] > 0

    @property
    def has_figure(self) -> bool:
        """Whether it has the number or amount that is asked for."""
        return self.features[SentenceFeature.HAS_NUMBER] > 0

    @property
    def names_only(self) -> bool:
        """Whether it is a heading, or names columns, without the kind of answer asked for.

        A name in a heading tells what the text below is about. Columns begin with capital letters,
        which make no names of them.
        """
        is_title = self.sentence.is_heading or self.sentence.names_columns
        return is_title and not any(self.features[own] > 0 for own in _KINDS_OF_TITLES)

    @property
    def odds(self) -> float:
        """The score as odds, >= 0."""
        return self.score / (1 - self.score) if self.score < 1 else math.inf


def rank_sentences(
    question: str, passages: Sequence[ScoredPassage], model: SentenceModel, language: str = "es"
) -> list[RankedSentence]:
    """Return the sentences of passages, the most likely to answer first.

    If an amount is asked for, those without one may be left out: see `_with_amount`. If a cause is,
    the sentence that has it may be marked: see `_with_cause`.
    Of sentences that their words do not tell apart, those that matched best by their meaning come
    first, then reading order counts. Headings that only name the subject come last: they share its
    words but do not answer it.
    """
    candidates = sentences_of(passages)
    known = sentence_features(question, passages, candidates, language)
    ranked = [
        RankedSentence(
            sentence,
            logistic.probability(model.intercept, model.features, features),
            features,
        )
        for sentence, features in zip(candidates, known, strict=True)
    ]
    matched = {
        item.sentence
        for item in ranked
        if passages[item.sentence.passage].has_matched(item.sentence.span)
    }
    ranked.sort(key=lambda item: (item.names_only, -item.score, item.sentence not in matched))
    kind = _kind(question, language)
    if kind in _AMOUNTS and ranked and not ranked[0].has_figure:
        return _with_amount(question, ranked, language)
    if kind == _CAUSE and ranked:
        return _with_cause(ranked, passages)
    return ranked


def _with_amount(
    question: str, ranked: Sequence[RankedSentence], language: str
) -> list[RankedSentence]:
    """Mark the sentence after the first one that has the amount: soon, or anywhere as a price.

    If there is none, only those sentences are returned that have an amount and a word of what it is
    asked of, because another one is no answer; all of them if none has.
    """
    after = _after(ranked)
    soon = (item for item in after[:COMPLETED_WITHIN] if item.has_figure)
    is_price = _kind(question, language) == _PRICE
    prices = (
        item for item in after if is_price and item.has_figure and _begins(item.sentence, _prices())
    )
    completing = next(chain(soon, prices), None)
    if completing:
        return _completed(ranked, completing)
    subject = _beginnings(content(_without_kind(question, language), language))

    def has_amount(item: RankedSentence) -> bool:
        is_about = subject & _beginnings(_content(item.sentence.text))
        return item.has_figure and not item.names_only and bool(is_about)

    return list(filter(has_amount, ranked)) or list(ranked)


def _with_cause(
    ranked: Sequence[RankedSentence], passages: Sequence[ScoredPassage]
) -> list[RankedSentence]:
    """Mark the sentence that has the cause, if the first one has none.

    It is the one that the first one refers back to, as in "that is why", or one soon after that
    gives a cause.
    """
    first = ranked[0].sentence
    stated = find_statements(passages[first.passage].text)
    causes = [own.cause for own in stated if own.marker.overlaps(first.span)]
    if _tells_cause(first) or any(cause.overlaps(first.span) for cause in causes):
        return list(ranked)
    before = (
        item
        for item in ranked
        if item.sentence.passage == first.passage
        and any(cause.overlaps(item.sentence.span) for cause in causes)
    )
    soon = (item for item in _after(ranked)[:COMPLETED_WITHIN] if _tells_cause(item.sentence))
    completing = next(chain(before, soon), None)
    return _completed(ranked, completing) if completing else list(ranked)


def _after(ranked: Sequence[RankedSentence]) -> list[RankedSentence]:
    """Return the sentences of the first one's passage that follow it, in reading order."""
    first = ranked[0].sentence
    after = [
        item
        for item in ranked
        if item.sentence.passage == first.passage
        and item.sentence.span.start >= first.span.end
        and not item.names_only
    ]
    return sorted(after, key=lambda item: item.sentence.span.start)


def _completed(
    ranked: Sequence[RankedSentence], completing: RankedSentence
) -> list[RankedSentence]:
    return [replace(item, completes=True) if item is completing else item for item in ranked]


def sentence_features(
    question: str,
    passages: Sequence[ScoredPassage],
    candidates: Sequence[Sentence],
    language: str = "es",
) -> list[dict[SentenceFeature, float]]:
    """Return the features of each sentence; see `SentenceFeature`.

    Args:
        question: The question.
        passages: Best first.
        candidates: Their sentences, by `sentences_of`.
        language: Of the question.
    """
    held = [_content(sentence.text) for sentence in candidates]
    asked = content(question, language)
    coverage = _Coverage.of(asked, held)
    begun = [_beginnings(own) for own in held]
    beginnings = _Coverage.of(_beginnings(asked), begun)
    whole = [_content(passage.text) for passage in passages]
    reach = _reach(candidates, held, [_content(" ".join(own.headings)) for own in passages])
    kind, evidence = _kind(question, language), _evidence(question)
    best = max((passage.score for passage in passages), default=0.0) or 1.0
    return [
        {
            SentenceFeature.COVERAGE: coverage.share(held[place]),
            SentenceFeature.BEGINNINGS: beginnings.share(begun[place]),
            SentenceFeature.CONTEXT: coverage.share(reach[place]),
            SentenceFeature.PASSAGE: coverage.share(whole[sentence.passage]),
            SentenceFeature.SCORE: passages[sentence.passage].score / best,
            SentenceFeature.RANK: 1 / (1 + sentence.passage),
            **dict.fromkeys(KIND_FEATURES, 0.0),
            **({_KINDS[kind]: 1.0 if evidence[kind](sentence.text) else -1.0} if kind else {}),
        }
        for place, sentence in enumerate(candidates)
    ]


@dataclass(frozen=True, slots=True)
class _Coverage:
    """The words of a question, each weighted by its rarity among the sentences."""

    rarity: Mapping[str, float]

    @classmethod
    def of(cls, asked: frozenset[str], held: Sequence[frozenset[str]]) -> "_Coverage":
        spread = Counter(word for own in held for word in own & asked)
        return cls({w: math.log(1 + len(held) / (1 + spread[w])) for w in sorted(asked)})

    def share(self, found: frozenset[str]) -> float:
        total = math.fsum(self.rarity.values())
        shared = math.fsum(weight for word, weight in self.rarity.items() if word in found)
        return shared / total if total else 0.0


def _beginnings(words: frozenset[str]) -> frozenset[str]:
    return frozenset(word[:_BEGINNING] for word in words)


_KINDS = {
    _CAUSE: SentenceFeature.HAS_CAUSE,
    "time": SentenceFeature.HAS_TIME,
    "number": SentenceFeature.HAS_NUMBER,
    "amount": SentenceFeature.HAS_NUMBER,
    _PRICE: SentenceFeature.HAS_NUMBER,
    "name": SentenceFeature.HAS_NAME,
    "place": SentenceFeature.HAS_PLACE,
}


def _reach(
    candidates: Sequence[Sentence],
    held: Sequence[frozenset[str]],
    headings: Sequence[frozenset[str]],
) -> list[frozenset[str]]:
    """Return the words of each sentence, of its neighbours and of its passage's headings."""
    reach = []
    for place, sentence in enumerate(candidates):
        near = range(max(0, place - 1), min(len(candidates), place + 2))
        same = [held[other] for other in near if candidates[other].passage == sentence.passage]
        reach.append(headings[sentence.passage].union(*same))
    return reach


@cache
def _patterns(language: str) -> tuple[tuple[str, re.Pattern[str]], ...]:
    kinds = question_rules(language).kinds
    return tuple((kind, _whole_words(expressions)) for kind, expressions in kinds.items())


@cache
def _held() -> Mapping[str, re.Pattern[str]]:
    return {kind: _whole_words(own) for kind, own in rules().answers.held.items()}


def _begins(sentence: Sentence, pattern: re.Pattern[str]) -> bool:
    return pattern.match(fold(sentence.text).lstrip(_LIST_MARKS)) is not None


def _tells_cause(sentence: Sentence) -> bool:
    return gives_cause(sentence.text) or _begins(sentence, _causes())


@cache
def _causes() -> re.Pattern[str]:
    return _whole_words(rules().answers.causes)


@cache
def _prices() -> re.Pattern[str]:
    return _whole_words(rules().answers.prices)


def _whole_words(expressions: Sequence[str]) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(expressions)})\b")


def _kind(question: str, language: str) -> str:
    """Return the kind of answer that a question asks for; empty if no rule matches."""
    folded = fold(question)
    return next((kind for kind, own in _patterns(language) if own.search(folded)), "")


def _without_kind(question: str, language: str) -> str:
    """Return a question without the words that say which kind of answer it asks for."""
    own = dict(_patterns(language))[_kind(question, language)]
    return own.sub(" ", fold(question))


def _evidence(question: str) -> Mapping[str, Callable[[str], bool]]:
    """Return a test for each kind of answer: whether a sentence adds one to the question."""
    known_names, asked = names(question), fold(question)

    def holds(kind: str) -> Callable[[str], bool]:
        pattern = _held()[kind]
        return lambda text: any(match not in asked for match in pattern.findall(fold(text)))

    named: Callable[[str], bool] = lambda text: bool(names(text) - known_names)  # noqa: E731
    of_rules = {kind: holds(kind) for kind in (_CAUSE, "time", "number", "amount", _PRICE)}
    return {**of_rules, "name": named, "place": named}


@lru_cache(maxsize=_KEPT_TEXTS)
def _content(text: str) -> frozenset[str]:
    return content(text)
