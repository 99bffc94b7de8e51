"""Removes running heads and feet, page numbers and tables of contents from a document's pages.

Nothing is deleted: removed ranges stay in the page's text, with their reason. Broken words are
joined in `core.hyphenation`.
"""

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from rag_resources.core.documents import Block, BlockKind, Page, PageFailure, Removal, Run
from rag_resources.core.page_numbers import page_number

RUNNING_HEAD = "running_head"
RUNNING_FOOT = "running_foot"
PAGE_NUMBER = "page_number"
CONTENTS = "contents"

NEIGHBOURS = 3
"""Pages before and after a page that it is compared with: left and right pages may differ."""

EDGE_ROWS = 4
"""Rows of lines at the top, and at the bottom, that can be running heads or feet."""

MIN_CONTENTS_LINES = 5
"""Fewer lines that end in growing page numbers are not a table of contents."""

_SAME_HEIGHT = 6.0
"""Points by which the same running head may differ in height between two pages."""

_SAME_ROW = 4.0
_WHITE = 0.6
"""White space that separates a running head from the body, as a multiple of its height."""

_LONG_LINE = 60
_NUMBER_CHARS = 8
_DOTS = 3
_ENTRY_LINES = 4
"""Lines from one entry of contents to the next: titles can be long."""

_TABLE = (BlockKind.TABLE_HEADER, BlockKind.TABLE_ROW)
_DIGITS = re.compile(r"\d+")
_ROMAN_AT_EDGE = re.compile(r"^[ivx]+\b|\b[ivx]+$")
_LAST_NUMBER = re.compile(r"(?:(?<!\d)\d{1,4}|(?<![^\W_])[ivxlc]{1,6})$")
_LEADER = " .·…_\t"
_NUMBERING = "# |/·–—-"


@dataclass(frozen=True, slots=True)
class _Line:
    """A line with a box, outside of tables.

    Attributes:
        shape: Its text with numbers made equal.
    """

    run: Run
    text: str
    shape: str
    top: float


@dataclass(frozen=True, slots=True)
class _Edges:
    """The lines nearest to the upper and lower edge of a page, in rows from the edge inwards."""

    head: tuple[tuple[_Line, ...], ...]
    foot: tuple[tuple[_Line, ...], ...]


_Held = tuple[Page | PageFailure, _Edges]
_NO_EDGES = _Edges((), ())


def clean(pages: Iterable[Page | PageFailure]) -> Iterator[Page | PageFailure]:
    """Yield the pages with running heads and feet, page numbers and contents marked as removed.

    A line at the edge of a page is a running head if a neighbouring page has the same line at the
    same height, its numbers aside. At most seven pages are held. Failures pass.

    Property: 46.
    """
    held: deque[_Held] = deque()
    waiting = 0
    for page in pages:
        held.append((page, _edges(page) if isinstance(page, Page) else _NO_EDGES))
        waiting += 1
        if waiting > NEIGHBOURS:
            yield _cleaned(held, len(held) - waiting)
            waiting -= 1
            if len(held) > 2 * NEIGHBOURS:
                held.popleft()
    while waiting:
        yield _cleaned(held, len(held) - waiting)
        waiting -= 1


def _edges(page: Page) -> _Edges:
    lines = [line for line in _lines(page) if line.run.box]
    rows: list[list[_Line]] = []
    for line in sorted(lines, key=lambda line: line.top):
        if rows and line.top - rows[-1][0].top <= _SAME_ROW:
            rows[-1].append(line)
        else:
            rows.append([line])
    head = tuple(tuple(row) for row in rows[:EDGE_ROWS])
    foot = tuple(tuple(row) for row in reversed(rows[-EDGE_ROWS:]))
    return _Edges(head, foot)


def _lines(page: Page) -> Iterator[_Line]:
    """Return the lines of a page that are in no table and not removed, in reading order."""
    gone = {position for r in page.removed for position in range(r.start, r.end)}
    for block in page.blocks:
        if block.kind in _TABLE:
            continue
        for run in block.runs:
            text = page.text[run.start : run.end]
            if run.start not in gone and text.strip():
                top = run.box.top if run.box else 0.0
                yield _Line(run, text, _shape(text), top)


def _shape(text: str) -> str:
    folded = " ".join(text.casefold().split())
    shape = _ROMAN_AT_EDGE.sub("#", _DIGITS.sub("#", folded))
    # The number of the page can stand in the same line, or apart.
    return shape.strip(_NUMBERING) or shape


def _cleaned(held: Sequence[_Held], index: int) -> Page | PageFailure:
    page, edges = held[index]
    if not isinstance(page, Page):
        return page
    first = max(0, index - NEIGHBOURS)
    others = [
        (other, other_edges)
        for other, other_edges in list(held)[first : index + NEIGHBOURS + 1]
        if isinstance(other, Page) and other.number != page.number
    ]
    # A line of a page with few is near both edges.
    edge_lines = [
        *_repeated(page, edges.foot, [(p, e.foot) for p, e in others], RUNNING_FOOT),
        *_repeated(page, edges.head, [(p, e.head) for p, e in others], RUNNING_HEAD),
    ]
    taken = {removal.start: removal for removal in edge_lines}
    removed = list(taken.values())
    removed += _contents([line for line in _lines(page) if line.run.start not in taken])
    return _without(page, removed)


def _without(page: Page, removed: Sequence[Removal]) -> Page:
    """Mark ranges as removed; blocks without any text left are dropped."""
    if not removed:
        return page
    starts = {removal.start for removal in removed}
    blocks: list[Block] = []
    for block in page.blocks:
        runs = tuple(run for run in block.runs if run.start not in starts)
        if runs == block.runs:
            blocks.append(block)
        elif runs:
            blocks.append(replace(block, start=runs[0].start, end=runs[-1].end, runs=runs))
    together = sorted([*page.removed, *removed], key=lambda removal: removal.start)
    return replace(page, blocks=tuple(blocks), removed=tuple(together))


_Rows = Sequence[Sequence[_Line]]


def _repeated(
    page: Page, rows: _Rows, others: Sequence[tuple[Page, _Rows]], reason: str
) -> list[Removal]:
    """Return the lines that neighbours repeat, from the edge inwards, until one is not."""
    repeated: list[list[Removal]] = []
    for row in rows:
        found = [(line, _reason(page, line, others, reason)) for line in row]
        repeated.append([Removal(n.run.start, n.run.end, why) for n, why in found if why])
        if not all(why for _, why in found):
            break
    if len(repeated) == EDGE_ROWS:
        # So much is repeated that it may be the body of a form: only separate lines are removed.
        repeated = repeated[: _rows_apart(rows)]
    return [removal for row in repeated for removal in row]


def _rows_apart(rows: _Rows) -> int:
    """Count the rows at the edge that white space separates from the next row."""
    apart = 0
    for number, (row, following) in enumerate(pairwise(rows), start=1):
        box = row[0].run.box
        height = box.bottom - box.top if box else 0.0
        if abs(following[0].top - row[0].top) > (1 + _WHITE) * height:
            apart = number
    return apart


def _reason(
    page: Page, line: _Line, others: Sequence[tuple[Page, _Rows]], reason: str
) -> str | None:
    number = page_number(line.text)
    if number is not None:
        offset = number.value - page.number
        counts_on = any(_offset(other, each) == offset for other, each in _near(line, others))
        return PAGE_NUMBER if number.certain or counts_on or not offset else None
    pages = {other.number for other, each in _near(line, others) if each.shape == line.shape}
    # A long line can be the title of a table that continues on the next page.
    enough = 1 if len(line.text) <= _LONG_LINE else 2
    return reason if len(pages) >= enough and any(c.isalpha() for c in line.shape) else None


def _offset(page: Page, line: _Line) -> int | None:
    number = page_number(line.text)
    return number.value - page.number if number else None


def _near(line: _Line, others: Sequence[tuple[Page, _Rows]]) -> Iterator[tuple[Page, _Line]]:
    """Return the lines of other pages at the same height."""
    for page, rows in others:
        for row in rows:
            for other in row:
                if abs(other.top - line.top) <= _SAME_HEIGHT:
                    yield page, other


@dataclass(frozen=True, slots=True)
class _Entry:
    """A line that may belong to a table of contents.

    Attributes:
        index: Of the line on its page.
        page: The number at its end.
        led: Dots lead to the number.
    """

    index: int
    page: int
    led: bool


def _entry(index: int, line: str) -> _Entry | None:
    """Return the entry that a line can be: words, perhaps dots, and a page number."""
    text = line.rstrip()
    number = _LAST_NUMBER.search(text[-_NUMBER_CHARS:])
    page = page_number(number.group()) if number else None
    if number is None or page is None:
        return None
    before = text[: len(text) - len(number.group())]
    title = before.rstrip(_LEADER)
    leader = before[len(title) :]
    if not leader or not any(character.isalpha() for character in title):
        return None
    return _Entry(index, page.value, led=len("".join(leader.split())) >= _DOTS)


def _contents(lines: Sequence[_Line]) -> list[Removal]:
    """Return the lines of a table of contents: most end in page numbers, which grow."""
    entries = [entry for n, line in enumerate(lines) if (entry := _entry(n, line.text))]
    removed: list[Removal] = []
    for run in _growing(entries):
        first, last = run[0].index, run[-1].index
        led = sum(entry.led for entry in run) >= 0.5 * len(run)
        enough = MIN_CONTENTS_LINES if led else 2 * MIN_CONTENTS_LINES
        if len(run) >= enough and len(run) >= 0.6 * (last - first + 1):
            removed += [
                Removal(line.run.start, line.run.end, CONTENTS) for line in lines[first : last + 1]
            ]
    return removed


def _growing(entries: Sequence[_Entry]) -> list[list[_Entry]]:
    """Cut entries where a page number is smaller than the one before, or far away."""
    runs: list[list[_Entry]] = []
    for entry in entries:
        last = runs[-1][-1] if runs else None
        if last and entry.page >= last.page and entry.index - last.index <= _ENTRY_LINES:
            runs[-1].append(entry)
        else:
            runs.append([entry])
    return runs
