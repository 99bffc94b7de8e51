"""The sentences of passages to answer from; the rows of a table count as sentences."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from rag_resources.core.sentences import sentences
from rag_resources.core.text import Span

_KEPT_TEXTS = 2_000
_CELLS = "|"
_MARKDOWN_HEADING = re.compile(r"#{1,6} ")
_LINE = re.compile(r"[^\r\n]*\S[^\r\n]*")
_TABLE_RULE = re.compile(r"[\s|:+-]+")
_DIGIT = re.compile(r"\d")


@dataclass(frozen=True, slots=True)
class ScoredPassage:
    """A passage to answer from.

    Attributes:
        score: Its retrieval's score, >= 0; only its ratio to the first passage's score counts.
        origin: Its source and date, as given to a language model; not used here.
        headings: The title of its note, and of a document the headings above the passage. A
            sentence that is one of them is a heading.
        matched: Where its sentences are that matched the question best by their meaning; None if
            that was not searched.
    """

    text: str
    score: float = 1.0
    origin: str = ""
    headings: tuple[str, ...] = ()
    matched: Span | None = None

    def has_matched(self, span: Span) -> bool:
        """Whether a range of it overlaps the sentences that matched best."""
        return self.matched is not None and self.matched.overlaps(span)


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a passage.

    Attributes:
        passage: Index of the passage, from 0.
        span: In the passage.
        text: On one line.
        is_heading: Whether it is a heading of its passage, or written as a Markdown heading.
        names_columns: Whether it is the row of a table that names its columns.
    """

    passage: int
    span: Span
    text: str
    is_heading: bool = False
    names_columns: bool = False


def sentences_of(passages: Sequence[ScoredPassage]) -> list[Sentence]:
    """Return the sentences of all passages in order; a repeated one only where it is first."""
    found: dict[str, Sentence] = {}
    for index, passage in enumerate(passages):
        headings = {" ".join(own.split()) for own in passage.headings}
        for span, names_columns in _sentences(passage.text):
            text = " ".join(passage.text[span.start : span.end].split())
            if text not in found:
                is_heading = text in headings or bool(_MARKDOWN_HEADING.match(text))
                found[text] = Sentence(index, span, text, is_heading, names_columns)
    return list(found.values())


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
