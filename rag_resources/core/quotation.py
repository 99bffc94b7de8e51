"""Answers with sentences of the passages: ranks them by four numbers, without a language model.

The weights are data of `answers`. Answers as such are in `core.answers`; citing the notes of the
passages belongs in `answers.citing`.
"""

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from pydantic import BaseModel, ConfigDict, Field

from rag_resources.core.answers import Answer, CitedSentence
from rag_resources.core.blocks import NoteBlock, Reading, read
from rag_resources.core.sentences import sentences
from rag_resources.core.text import Span
from rag_resources.core.types import Windows
from rag_resources.core.wording import stems

_KEPT_TEXTS = 2_000
_TITLES = ("heading", "rule")
_ANNOUNCED = ("item", "code")
_FOLLOWING = [[kind] for kind in _ANNOUNCED]
_CLOSING = " \t\r\n*_"

MOST_CHARS = 600
"""Longest quote."""


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
            CitedSentence(own.text, own.passage + 1, own.span, is_quotation=True)
            for own in ranked[:2]
            if own.score >= floor
        )
    )


@dataclass(frozen=True, slots=True)
class Quote:
    """The block that a sentence of a note stands in, as it is quoted.

    Attributes:
        span: In the note's text; it covers the sentence, unless that is longer than a quote.
        before: What a reader of the rendered note sees of it before the sentence.
        after: What it shows after it.
        columns: For the row of a table, the names of its columns.
    """

    span: Span
    before: str
    after: str
    columns: str = ""


def quote_of(text: str, sentence: Span) -> Quote:
    """Return the block around a sentence: a paragraph, list, code, row or message.

    A list or code comes with the line above that announces it. A long block is cut to the
    sentences around this one, `MOST_CHARS` at most.

    Args:
        text: Of a note.
        sentence: A range of it.
    """
    reading = read(text)
    blocks = [block for block in reading.blocks if text[block.span.start : block.span.end].strip()]
    place = bisect_right(blocks, sentence.start, key=lambda block: block.span.start) - 1
    whole = _whole(text, blocks, place) if place >= 0 else sentence
    span = _cut_around(text, whole, sentence)
    end = min(sentence.end, span.end)
    return Quote(
        span,
        reading.rendered(span.start, sentence.start),
        reading.rendered(end, span.end),
        _cells(reading.columns_at(sentence.start)),
    )


def _whole(text: str, blocks: Sequence[NoteBlock], place: int) -> Span:
    """Return the range of a block with those that belong to it."""

    def announces(number: int) -> bool:
        block = blocks[number] if number >= 0 else blocks[place]
        shown = text[block.span.start : block.span.end].rstrip(_CLOSING)
        return block.kind not in _ANNOUNCED and shown.endswith(":")

    first = last = place
    if announces(place) and [own.kind for own in blocks[place + 1 : place + 2]] in _FOLLOWING:
        first = last = place + 1
    if blocks[last].kind == "item":
        while last + 1 < len(blocks) and blocks[last + 1].kind == "item":
            last += 1
        while first > 0 and blocks[first - 1].kind == "item":
            first -= 1
    if blocks[last].kind in _ANNOUNCED and announces(first - 1):
        first = max(0, first - 1)
    return Span(blocks[first].span.start, blocks[last].span.end)


def _cut_around(text: str, whole: Span, sentence: Span) -> Span:
    """Return the longest run of a range's sentences around one that is no longer than a quote."""
    near = Span(max(whole.start, sentence.start - MOST_CHARS), whole.end)
    units = [
        Span(whole.start + own.start, whole.start + own.end)
        for own in sentences(text[whole.start : whole.end])
    ]
    starts = [own.start for own in units if near.start <= own.start < sentence.start]
    ends = [own.end for own in units if sentence.end < own.end <= near.start + 2 * MOST_CHARS]
    runs = (
        Span(start, end)
        for start in (*starts, sentence.start)
        for end in (sentence.end, *ends)
        if end - start <= MOST_CHARS
    )
    cut = Span(sentence.start, min(sentence.end, sentence.start + MOST_CHARS))
    return max(runs, key=lambda run: run.length, default=cut)


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
        for place, (span, text, is_title, over_it) in enumerate(own):
            scores = [each.score for each in passage.windows if each.overlaps(span)]
            if passage.windows and not scores:
                continue
            words = _stems(text)
            beside = (
                _stems(each)
                for _span, each, names, _ in own[max(0, place - 1) : place + 2]
                if not names
            )
            near = above.union(words, _stems(over_it), *beside)
            made = _Candidate(index, span, text, max(scores, default=0.0), words, near)
            (titles if is_title or text in headings else found).setdefault(text, made)
    return list((found or titles).values())


@lru_cache(maxsize=_KEPT_TEXTS)
def _stems(text: str) -> frozenset[str]:
    return stems(text)


@lru_cache(maxsize=_KEPT_TEXTS)
def _sentences(text: str) -> tuple[tuple[Span, str, bool, str], ...]:
    """Return the sentences of a text as they are shown, with the headings or columns over them.

    The third says whether it is a heading, or names columns, itself.
    """
    reading = read(text)
    titles = [own.span for own in reading.blocks if own.kind in _TITLES or own.is_header]
    found = []
    for span in sentences(text):
        block = _block_at(reading, span.start)
        shown = _on_one_line(reading, block, span)
        if shown:
            is_title = any(own.overlaps(span) for own in titles)
            over = (*(block.headings if block else ()), reading.columns_at(span.start))
            found.append((span, shown, is_title, " ".join(over)))
    return tuple(found)


def _block_at(reading: Reading, place: int) -> NoteBlock | None:
    number = bisect_right(reading.blocks, place, key=lambda block: block.span.start) - 1
    return reading.blocks[number] if number >= 0 else None


def _on_one_line(reading: Reading, block: NoteBlock | None, sentence: Span) -> str:
    """Return what a reader sees of a sentence; of a row every cell, also those without text."""
    if block is None or block.kind != "row":
        return " ".join(reading.rendered(sentence.start, sentence.end).split())
    return _cells(reading.shown(block.span.start, block.span.end))


def _cells(row: str) -> str:
    return " ".join(row.replace("\t", " | ").split())
