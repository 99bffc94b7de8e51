"""Answers with sentences of the passages: ranks them by four numbers, without a language model.

The weights are data of `answers`. Answers as such are in `core.answers`; citing the notes of the
passages belongs in `answers.citing`.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from pydantic import BaseModel, ConfigDict, Field

from rag_resources.core.answers import Answer, CitedSentence
from rag_resources.core.sentences import sentences
from rag_resources.core.text import Span
from rag_resources.core.types import Windows
from rag_resources.core.wording import stems

_KEPT_TEXTS = 2_000
_CELLS = "|"
_MARKDOWN_HEADING = re.compile(r"#{1,6} ")
_LINE = re.compile(r"[^\r\n]*\S[^\r\n]*")
_TABLE_RULE = re.compile(r"[\s|:+-]+")
_DIGIT = re.compile(r"\d")


@dataclass(frozen=True, slots=True)
class SourcePassage:
    """A passage to answer from.

    Attributes:
        origin: Its source and date, as given to a language model; not used here.
        headings: The title of its note, and of a document the headings above the passage.
        windows: Its windows with their similarity to the question; empty if that was not searched.
    """

    text: str
    origin: str = ""
    headings: tuple[str, ...] = ()
    windows: Windows = ()


class QuotationWeights(BaseModel):
    """The weights of the four numbers that rank sentences, each at least 0.

    Attributes:
        rank: Of 1 / the rank of the passage.
        similarity: Of the similarity of the sentence's window to the question, in [0, 1].
        coverage: Of the share of the question's words that are in the sentence.
        context: Of the share that are in it, its neighbours or the headings.
        close: A second sentence is quoted if its score is this share of the best one's.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    rank: float = Field(ge=0)
    similarity: float = Field(ge=0)
    coverage: float = Field(ge=0)
    context: float = Field(ge=0)
    close: float = Field(ge=0, le=1)


@dataclass(frozen=True, slots=True)
class RankedSentence:
    """A sentence that may answer a question.

    Attributes:
        passage: Index of its passage, from 0.
        span: In the passage.
        text: On one line.
        score: The weighted sum of the four numbers; comparable only with the same weights.
        similarity: See `QuotationWeights`; so are `coverage` and `context`.
    """

    passage: int
    span: Span
    text: str
    score: float
    similarity: float
    coverage: float
    context: float


def rank_sentences(
    question: str,
    passages: Sequence[SourcePassage],
    weights: QuotationWeights,
    language: str = "es",
) -> list[RankedSentence]:
    """Return the sentences of passages, the most likely to answer first, ties in reading order.

    The words of the question are weighted by their rarity among the sentences, and compared without
    accents, case and endings. A repeated sentence counts only where it is first. The rows of a
    table are sentences. Of a passage with windows only what lies in one of them counts.

    Args:
        question: The question.
        passages: Best first.
        weights: Of the four numbers.
        language: Of the question.
    """
    found = _candidates(passages)
    asked = stems(question, language)
    spread = Counter(word for own in found for word in own.words & asked)
    rarity = {word: math.log(1 + len(found) / (1 + spread[word])) for word in sorted(asked)}
    total = math.fsum(rarity.values())

    def share(words: frozenset[str]) -> float:
        return math.fsum(rarity[word] for word in rarity if word in words) / total if total else 0.0

    def ranked(own: _Candidate) -> RankedSentence:
        coverage, context = share(own.words), share(own.near)
        parts = (
            weights.rank / (1 + own.passage),
            weights.similarity * own.similarity,
            weights.coverage * coverage,
            weights.context * context,
        )
        return RankedSentence(
            own.passage, own.span, own.text, math.fsum(parts), own.similarity, coverage, context
        )

    return sorted(map(ranked, found), key=lambda own: -own.score)


def says_something(ranked: Sequence[RankedSentence]) -> bool:
    """Whether a word of the question is in any sentence, its neighbours or its headings."""
    return any(own.context for own in ranked)


def quote(ranked: Sequence[RankedSentence], weights: QuotationWeights) -> Answer:
    """Answer with the best of the ranked sentences, and the second if it is about as good.

    Returns:
        The best sentence first; none unless `says_something`.
    """
    if not says_something(ranked):
        return Answer()
    floor = weights.close * ranked[0].score
    return Answer(
        tuple(
            CitedSentence(own.text, own.passage + 1, own.span)
            for own in ranked[:2]
            if own.score >= floor
        )
    )


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A sentence with its words, and with those of its neighbours and headings besides."""

    passage: int
    span: Span
    text: str
    similarity: float
    words: frozenset[str]
    near: frozenset[str]


def _candidates(passages: Sequence[SourcePassage]) -> list[_Candidate]:
    """Return the sentences that are no headings and name no columns; all if there are no others."""
    found: dict[str, _Candidate] = {}
    titles: dict[str, _Candidate] = {}
    for index, passage in enumerate(passages):
        headings = {" ".join(own.split()) for own in passage.headings}
        above = _stems(" ".join(headings))
        own = _sentences(passage.text)
        texts = [" ".join(passage.text[span.start : span.end].split()) for span, _ in own]
        for place, ((span, names_columns), text) in enumerate(zip(own, texts, strict=True)):
            over = [each.score for each in passage.windows if each.overlaps(span)]
            if passage.windows and not over:
                continue
            near = above.union(*map(_stems, texts[max(0, place - 1) : place + 2]))
            made = _Candidate(index, span, text, max(over, default=0.0), _stems(text), near)
            is_title = names_columns or text in headings or _MARKDOWN_HEADING.match(text)
            (titles if is_title else found).setdefault(text, made)
    return list((found or titles).values())


@lru_cache(maxsize=_KEPT_TEXTS)
def _stems(text: str) -> frozenset[str]:
    return stems(text)


def beside(text: str, span: Span) -> tuple[str, str]:
    """Return the sentences, or rows of a table, before and after a range of a text, on one line.

    Each is empty if there is none. The line of dashes in a table is no row.
    """
    units = [
        own for own, _ in _sentences(text) if not _TABLE_RULE.fullmatch(text[own.start : own.end])
    ]
    before = [own for own in units if own.end <= span.start][-1:]
    after = [own for own in units if own.start >= span.end][:1]
    first, last = (" ".join(_cut(text, own).split()) for own in (before, after))
    return first, last


def columns_of(text: str, span: Span) -> str:
    """Return the row that names the columns of a range in the row of a table, on one line.

    It is empty if the range is no such row, or is that row itself.
    """
    if _CELLS not in text[span.start : span.end]:
        return ""
    start = span.start
    for own, names_columns in reversed(_sentences(text)):
        if own.end > start:
            continue
        row = text[own.start : own.end]
        if text.count("\n", own.end, start) > 1 or _CELLS not in row:
            break
        if names_columns and not _TABLE_RULE.fullmatch(row):
            return " ".join(row.split())
        start = own.start
    return ""


def _cut(text: str, spans: Sequence[Span]) -> str:
    return " ".join(text[own.start : own.end] for own in spans)


@lru_cache(maxsize=_KEPT_TEXTS)
def _sentences(text: str) -> tuple[tuple[Span, bool], ...]:
    """Return the sentences of a text, or a table's rows, and which of them name columns."""
    found: list[tuple[Span, bool]] = []
    for span in sentences(text):
        lines = [
            Span(span.start + line.start(), span.start + line.end())
            for line in _LINE.finditer(text[span.start : span.end])
        ]
        rows = [text[line.start : line.end] for line in lines]
        if all(_CELLS in row for row in rows):
            heads = _header_rows(rows)
            found += [(line, place < heads) for place, line in enumerate(lines)]
        else:
            found.append((span, False))
    return tuple(found)


def _header_rows(rows: Sequence[str]) -> int:
    """Return how many of a table's first rows only name its columns.

    Those are a row and the line of dashes below it, or a row without digits above rows with some.
    """
    if len(rows) > 1 and _TABLE_RULE.fullmatch(rows[1]):
        return 2
    return int(not _DIGIT.search(rows[0]) and any(_DIGIT.search(row) for row in rows[1:]))
