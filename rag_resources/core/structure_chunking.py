"""Cuts notes by their structure: chunks end between paragraphs, rows or sentences, near a length.

The structure is read from the text as `core.sections` writes it, so it is the same for sections of
documents and for notes in Markdown: blank lines between blocks, a table as lines with tabs or `|`.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rag_resources.core.chunk_units import TokenCounter, overlap_start, split_sentence
from rag_resources.core.configuration import ChunkingConfig
from rag_resources.core.sentences import sentences
from rag_resources.core.sheets import looks_like_header
from rag_resources.core.text import Span

_LINE = re.compile(r"[^\n]*\S[^\n]*")
_BLANK_LINE = re.compile(r"\n[^\S\n]*\n")
_ITEM = re.compile(r"^\s*(?:[-*+•·]|\d{1,3}[.)])\s+\S", re.MULTILINE)
_TABLE_RULE = re.compile(r"[\s:|-]*-[\s:|-]*$")
_HEADING_CHARS = 120
_BARRED = re.compile(r"\S \| \S")
"""Cells as `a | b`, without the bars at the ends that Markdown has."""
_RULED_ROWS = 2
_SINGLE_ROWS = 10
_HEADING_END = re.compile(r"[\w)»\"'”’]$")

# Cost of ending a chunk at a border, besides its distance from the target (at most 1).
_AT_PARAGRAPH, _AT_LINE, _AT_SENTENCE, _AFTER_HEADING, _SHORT_REST = 0.0, 0.5, 1.0, 2.0, 4.0


@dataclass(frozen=True, slots=True)
class Table:
    """A table in a text: neighbouring lines with several cells.

    Attributes:
        rows: Its lines.
        header_rows: How many of them are the header.
    """

    rows: tuple[Span, ...]
    header_rows: int

    @property
    def header_end(self) -> int:
        """End of the header, if there is one."""
        return self.rows[self.header_rows - 1].end

    def header(self, text: str) -> str:
        """Return the header, if there is one."""
        return text[self.rows[0].start : self.header_end]

    def is_below_header(self, position: int) -> bool:
        """Whether a position is in the table, below its header."""
        return self.header_rows > 0 and (
            self.rows[self.header_rows].start <= position < self.rows[-1].end
        )


def tables_of(text: str) -> list[Table]:
    """Return the tables of a text, in order.

    A table has at least two rows. A few lines of one cell may be among them, but no blank ones.
    """
    tables: list[list[Span]] = [[]]
    single: list[Span] = []
    before = 0
    for found in _LINE.finditer(text):
        line = Span(found.start(), found.end())
        if text.count("\n", before, line.start) > 1 or len(single) > _SINGLE_ROWS:
            tables.append([])
            single = []
        if _is_row(found[0]):
            tables[-1] += [*single, line]
            single = []
        elif tables[-1]:
            single.append(line)
        before = line.end
    return [Table(tuple(rows), _header_rows(text, rows)) for rows in tables if len(rows) > 1]


def contains_table(text: str) -> bool:
    """Whether a passage has a row of a table, also one as readers of documents write it."""
    return any(_is_row(line[0]) or _BARRED.search(line[0]) for line in _LINE.finditer(text))


def contains_list(text: str) -> bool:
    """Whether a passage has an item of a list."""
    return bool(_ITEM.search(text))


def headers_above(text: str, starts: Sequence[int]) -> list[str]:
    """Return for each start of a chunk the header of the table that it is in.

    Empty if the chunk does not begin in a table, or contains the header itself.
    """
    tables = tables_of(text)
    return [
        next((table.header(text) for table in tables if table.is_below_header(start)), "")
        for start in starts
    ]


def structure_spans(text: str, config: ChunkingConfig, counter: TokenCounter) -> list[Span]:
    """Return the chunks of a text that is not blank, in order.

    A chunk ends where it costs least: its distance from the target length, plus 0 between
    paragraphs, 0.5 between lines of a table or list, 1 between sentences, 2 after a heading or a
    table's header. A rest that would be too short costs more than all of these. A chunk has
    between the shortest and the longest length, if the pieces allow it.

    Properties: 7, 8, 9, 10, 11, 12.
    """
    measure = len if config.unit == "chars" else counter
    limits = config.limits
    units = _units(text, config, measure)
    costs = _costs(text, units)

    def size(first: int, last: int) -> int:
        return measure(text[units[first].start : units[last].end])

    spans: list[Span] = []
    first = fresh = 0
    while fresh < len(units):
        last = _best_end(size, first, fresh, costs, config)
        spans.append(Span(units[first].start, units[last].end))
        fresh = last + 1
        first = overlap_start(size, first, fresh, len(units), limits)
    return spans


def _best_end(
    size: Callable[[int, int], int],
    first: int,
    fresh: int,
    costs: Sequence[float],
    config: ChunkingConfig,
) -> int:
    """The last unit of the chunk that begins at unit `first`."""
    end = len(costs) - 1
    sizes = {fresh: size(first, fresh)}
    while (last := fresh + len(sizes)) <= end and (length := size(first, last)) <= config.max:
        sizes[last] = length
    long_enough = {last: length for last, length in sizes.items() if length >= config.min}
    if not long_enough:
        return max(sizes)

    def cost(last: int) -> float:
        distance = abs(long_enough[last] - config.target) / (config.max - config.min)
        short_rest = last < end and size(last + 1, end) < config.min
        return costs[last] + distance + _SHORT_REST * short_rest

    return min(long_enough, key=lambda last: (cost(last), -last))


def _units(text: str, config: ChunkingConfig, measure: TokenCounter) -> list[Span]:
    """Return rows, and the sentences between tables; units that are too long are split further."""
    rows = [row for table in tables_of(text) for row in table.rows]
    pieces = sorted([*rows, *_outside(text, rows)], key=lambda piece: piece.start)
    units: list[Span] = []
    for piece in pieces:
        if measure(text[piece.start : piece.end]) <= config.max:
            units.append(piece)
        else:
            units.extend(split_sentence(text, piece, config.limits, measure))
    return units


def _outside(text: str, rows: Sequence[Span]) -> Iterator[Span]:
    """Yield the sentences of a text outside rows of tables."""
    following = 0
    for sentence in sentences(text):
        start = sentence.start
        while following < len(rows) and rows[following].end <= start:
            following += 1
        at = following
        while at < len(rows) and rows[at].start < sentence.end:
            yield from _visible(text, start, rows[at].start)
            start = rows[at].end
            at += 1
        yield from _visible(text, start, sentence.end)


def _visible(text: str, start: int, end: int) -> Iterator[Span]:
    content = text[start:end]
    if content.strip():
        start += len(content) - len(content.lstrip())
        yield Span(start, start + len(content.strip()))


def _costs(text: str, units: Sequence[Span]) -> list[float]:
    """Return the cost of ending a chunk after each unit."""
    heads = {
        table.rows[table.header_rows - 1].end for table in tables_of(text) if table.header_rows
    }
    costs = []
    opens = True  # whether the unit is the first of its block
    for unit, after in zip(units, [*units[1:], None], strict=True):
        gap = text[unit.end : after.start] if after else ""
        is_block_end = bool(_BLANK_LINE.search(gap))
        if after is None:
            costs.append(_AT_PARAGRAPH)
        elif unit.end in heads or (is_block_end and opens and _is_heading(text, unit)):
            costs.append(_AFTER_HEADING)
        elif is_block_end:
            costs.append(_AT_PARAGRAPH)
        else:
            costs.append(_AT_LINE if "\n" in gap else _AT_SENTENCE)
        opens = is_block_end
    return costs


def _is_heading(text: str, unit: Span) -> bool:
    content = text[unit.start : unit.end]
    return (
        len(content) <= _HEADING_CHARS
        and "\n" not in content
        and bool(_HEADING_END.search(content))
    )


def _is_row(line: str) -> bool:
    return "\t" in line.strip() or line.lstrip().startswith("|")


def _header_rows(text: str, rows: Sequence[Span]) -> int:
    """How many rows at the top of a table are its header; at least one row is below it."""
    first, second = (text[row.start : row.end].strip() for row in rows[:2])
    if _TABLE_RULE.match(second):
        return 2 if len(rows) > _RULED_ROWS else 0
    cells = [cell.strip() for cell in re.split(r"[\t|]", first.strip("|"))]
    return int(looks_like_header(cells))
