"""Scores of extracted documents against truths: words, their order, paragraphs, tables.

Run by `bench_documents`; pure.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree as ET

from rapidfuzz.distance import LCSseq

Grid = Sequence[Sequence[str]]
Relation = tuple[str, str, str]

_WORD = re.compile(r"\w+")
_QUOTES = str.maketrans("‘’“”", "''\"\"")
"""A typesetter makes quotes of its own kind for each format."""

_MIN_PARAGRAPH_CHARS = 20


@dataclass(frozen=True, slots=True)
class TextScores:
    """How much of a document's truth an extraction has; each in [0, 1].

    Attributes:
        recall: Of words, before running heads and contents are removed: truths made of HTML write
            out titles that the PDF has only in its contents.
        order: Longest common subsequence of words, as a share of the longer text.
        paragraphs: Share of the paragraphs of 20 characters or more that occur unchanged, line
            breaks aside.
        table_rows: Share of the table rows whose cells occur one after the other.
    """

    recall: float
    precision: float
    order: float
    paragraphs: float
    table_rows: float


def folded(text: str) -> str:
    """A text in normal form, with white space as single spaces and straight quotes."""
    return " ".join(unicodedata.normalize("NFKC", text).translate(_QUOTES).split())


def score_text(truth: Sequence[Mapping[str, Any]], text: str, whole: str) -> TextScores:
    """Compare a text with the blocks of its truth.

    Args:
        truth: Blocks; `t` is h, p, pre or table.
        text: As extracted and cleaned.
        whole: As extracted.
    """
    expected = [word for block in truth for word in _words(_block_text(block))]
    found = _words(text)
    counts = Counter(expected)
    plain = folded(text)
    paragraphs = [folded(b["text"]) for b in truth if b["t"] == "p"]
    paragraphs = [p for p in paragraphs if len(p) >= _MIN_PARAGRAPH_CHARS]
    rows = [row for block in truth if block["t"] == "table" for row in block["rows"]]
    cells = _without_bars(text)
    return TextScores(
        recall=(counts & Counter(_words(whole))).total() / len(expected),
        precision=(counts & Counter(found)).total() / (len(found) or 1),
        order=LCSseq.normalized_similarity(expected, found),
        paragraphs=_share(p in plain for p in paragraphs),
        table_rows=_share(_without_bars("".join(row)) in cells for row in rows),
    )


def _words(text: str) -> list[str]:
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


def _block_text(block: Mapping[str, Any]) -> str:
    if block["t"] == "table":
        return " ".join(cell for row in block["rows"] for cell in row)
    return str(block["text"])


def _without_bars(text: str) -> str:
    return re.sub(r"[\s|]+", "", unicodedata.normalize("NFKC", text))


def _share(hits: Iterable[bool]) -> float:
    found = list(hits)
    return sum(found) / (len(found) or 1)


def true_relations(xml: str) -> Counter[Relation]:
    """Return which cells stand beside and below each other in the tables of a truth of ICDAR."""
    relations: Counter[Relation] = Counter()
    for region in ET.fromstring(xml).iter("region"):
        grid: dict[tuple[int, int], str] = {}
        owner: dict[tuple[int, int], int] = {}
        for number, cell in enumerate(region.iter("cell")):
            row, column = int(cell.attrib["start-row"]), int(cell.attrib["start-col"])
            for r in range(row, int(cell.get("end-row", row)) + 1):
                for c in range(column, int(cell.get("end-col", column)) + 1):
                    grid[r, c] = _cell_text(cell.findtext("content") or "")
                    owner[r, c] = number
        relations += _relations(grid, owner)
    return relations


def found_relations(tables: Iterable[Grid]) -> Counter[Relation]:
    """Return which cells stand beside and below each other in extracted tables."""
    relations: Counter[Relation] = Counter()
    for table in tables:
        grid = {
            (r, c): _cell_text(cell) for r, row in enumerate(table) for c, cell in enumerate(row)
        }
        owner = {slot: number for number, slot in enumerate(grid)}
        relations += _relations(grid, owner)
    return relations


def _cell_text(text: str) -> str:
    return re.sub(r"\s+", "", unicodedata.normalize("NFKC", text)).casefold()


def _relations(
    grid: Mapping[tuple[int, int], str], owner: Mapping[tuple[int, int], int]
) -> Counter[Relation]:
    """Return each filled cell with the nearest filled ones to its right and below."""
    filled = sorted(slot for slot, text in grid.items() if text)
    pairs: set[tuple[int, int, str]] = set()
    texts = {owner[slot]: grid[slot] for slot in filled}
    for direction, line, order in (
        ("right", 0, filled),
        ("below", 1, sorted(filled, key=lambda slot: (slot[1], slot[0]))),
    ):
        for first, second in pairwise(order):
            if first[line] == second[line] and owner[first] != owner[second]:
                pairs.add((owner[first], owner[second], direction))
    return Counter((texts[a], texts[b], direction) for a, b, direction in pairs)


def f1(expected: Counter[Relation], found: Counter[Relation]) -> tuple[float, float, float]:
    """Return precision, recall and F1 of relations."""
    common = sum((expected & found).values())
    precision = common / (found.total() or 1)
    recall = common / (expected.total() or 1)
    return precision, recall, 2 * precision * recall / ((precision + recall) or 1)
