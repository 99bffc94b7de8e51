"""Reads a note's text, Markdown or plain, as blocks: what a reader of the rendered note sees.

`pyromark` (CommonMark, tables, wiki links) finds the structure. Ours are only chat messages, rows
with tabs, the marks of callouts, comments between `%%`, and what Logseq hides. Sentences inside
blocks belong in `core.sentences`.
"""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from html import unescape
from itertools import pairwise
from typing import Any, Literal

from pyromark import Options, events_with_range

from rag_resources.core.sheets import looks_like_header
from rag_resources.core.text import Span, storable

Kind = Literal["paragraph", "heading", "item", "quote", "row", "code", "message", "rule", "html"]

_OPTIONS = (
    Options.ENABLE_TABLES
    | Options.ENABLE_TASKLISTS
    | Options.ENABLE_STRIKETHROUGH
    | Options.ENABLE_WIKILINKS
    | Options.ENABLE_FOOTNOTES
    | Options.ENABLE_MATH
)
_KINDS: Mapping[str, Kind] = {
    "Paragraph": "paragraph",
    "Heading": "heading",
    "Item": "item",
    "BlockQuote": "quote",
    "FootnoteDefinition": "paragraph",
    "TableHead": "row",
    "TableRow": "row",
    "CodeBlock": "code",
    "HtmlBlock": "html",
}
_MATH = {"InlineMath", "DisplayMath"}
_VERBATIM = {"Text", "Code", *_MATH}
_CHAT = re.compile(
    r"^[\u200e\ufeff]?\[?(?:\d{1,2}[/.-]\d{1,2}[/.-]\d{2,4}|\d{4}[/.-]\d\d?[/.-]\d\d?),?\s\d{1,2}[:.]\d{2}(?:[:.]\d{2})?"
    r"(?:\s?[ap]\.?\s?m\.?)?(?:\]\s|\s[-–]\s)",
    re.MULTILINE | re.IGNORECASE,
)
_FIELD = r"[^\W\d_][\w /-]{0,40}"
_OWN_LINE = re.compile(rf"\s*(?:[+•·–—]|\d{{1,3}}[.)]|[^\W\d_]\)|{_FIELD}::)[^\S\r\n]|\s*[—–]")
_CALLOUT = re.compile(r"\[![\w-]+(?:\|[^\]\n]*)?\][+-]?[^\S\n]*")
_HIDDEN = re.compile(
    r"%%.*?%%|^[^\S\n]*:LOGBOOK:$.*?^[^\S\n]*:END:$"
    r"|^(?:[^\S\n]*[-*][^\S\n])?[^\S\n]*(?:id|collapsed|template|background-color)::[^\n]*$"
    r"|\(\([0-9a-f]{8}-[0-9a-f-]{27}\)\)",
    re.DOTALL | re.MULTILINE,
)
_MARKS = re.compile(
    rf"^[^\S\n]*(?:[-*][^\S\n])?(?:{_FIELD}:|[\[(]{_FIELD}:)(?P<colon>:)(?=[^\S\n])"
    r"|(?P<opening>==)(?=[^\s=])[^\n=]+(?<=[^\s=])(?P<closing>==)"
    r"|(?P<anchor>(?:^|(?<=\s))\^[\w-]+)[^\S\n]*$",
    re.MULTILINE,
)
"""Of a property in the text, of highlighted words, and the name of a block that links point to."""
_QUERIES = {"dataview", "dataviewjs", "tasks", "query", "base"}
"""Languages of code in whose place a program shows what the code finds."""
_LABEL = re.compile(r"(?<!\S)#(?=[^\s#]*[^\W\d_])([\w/-]+)")
_TAG = re.compile(r"<!--.*?(?:-->|\Z)|<(script|style)\b.*?(?:</\1\s*>|\Z)|<[^>]*>?", re.DOTALL)
_INVISIBLE = re.compile(
    "[\u00ad\u200b\u200e\u200f\u2060\ufeff\u202a-\u202e\u2066-\u2069]|(?<=\\w)[\u200c\u200d](?=\\w)"
)
_INLINE_TAG = re.compile(
    r"</?(?:a|abbr|b|cite|code|del|em|font|i|ins|kbd|mark|s|small|span|strong|sub|sup|u)\b", re.I
)
_NUMBER = re.compile(r"[^\S\n]*(\d{1,9}[.)])")
_FILE_OR_SIZE = re.compile(r"\d+(?:x\d+)?|[^\n]*\.\w{2,4}")
_BLANK_LINE = re.compile(r"\n[^\S\n]*\n")
_PART = 256
"""Characters looked at together, so that a long text is not copied for each of its sentences."""
_SPACES = re.compile(r"[^\S\n]+")


@dataclass(frozen=True, slots=True)
class NoteBlock:
    """A paragraph, heading, list item, table row, message or the like.

    Attributes:
        span: Its range of the text, with its marks. The blocks of a text cover all of it.
        headings: The headings above it, outermost first.
        table: Which table of the text a row is in; -1 for others.
        is_header: Whether it is the header row of a table.
        level: Of a heading, from 1; of a list item, how many lists it is in.
    """

    kind: Kind
    span: Span
    headings: tuple[str, ...] = ()
    table: int = -1
    is_header: bool = False
    level: int = 0


@dataclass(frozen=True, slots=True)
class Reading:
    """A text as blocks, and the pieces of it that are shown.

    Attributes:
        pieces: Ranges of the source with what they show, in order.
        hidden: Comments and what else the program that wrote the note does not show.
        left_out: How many characters of words are hidden, by the reason.
        links: The names of the notes that it links to, each once.
        tags: Those in the text, without "#", each once.
    """

    text: str
    blocks: tuple[NoteBlock, ...]
    pieces: tuple[tuple[int, int, str], ...]
    hidden: tuple[Span, ...]
    left_out: Mapping[str, int]
    links: tuple[str, ...]
    tags: tuple[str, ...]
    _starts: tuple[int, ...]

    def rendered(self, start: int = 0, end: int | None = None) -> str:
        """Return what a reader of the rendered note sees of a range of its source."""
        return _clean(self.shown(start, len(self.text) if end is None else end))

    def shown(self, start: int, end: int) -> str:
        """Return the pieces of a range with the white space at its ends."""
        return _INVISIBLE.sub("", "".join(self._pieces_of(start, end)))

    def columns_at(self, place: int) -> str:
        """Return the names of the columns of the row at a place; empty if it is no row of cells."""
        number = bisect_right(self.blocks, place, key=lambda block: block.span.start) - 1
        row = self.blocks[number] if number >= 0 else None
        if row is None or row.kind != "row" or row.is_header:
            return ""
        headers = (own.span for own in self.blocks if own.is_header and own.table == row.table)
        return next((self.rendered(own.start, own.end) for own in headers), "")

    def visible(self, span: Span) -> Iterator[Span]:
        """Yield a range without its hidden parts, if it has any."""
        start = span.start
        for hidden in sorted(self.hidden, key=lambda own: own.start):
            if start < hidden.start < span.end:
                yield Span(start, hidden.start)
            start = max(start, min(hidden.end, span.end))
        if start < span.end:
            yield Span(start, span.end)

    def shows(self, start: int, end: int) -> bool:
        """Whether a range shows anything."""
        parts = ((at, min(end, at + _PART)) for at in range(start, end, _PART))
        return any(_clean(piece) for part in parts for piece in self._pieces_of(*part))

    def _pieces_of(self, start: int, end: int) -> Iterator[str]:
        for number in range(max(0, bisect_left(self._starts, start) - 1), len(self.pieces)):
            piece_start, piece_end, piece = self.pieces[number]
            if piece_start > end:
                break
            if piece_start == piece_end:  # What parts two blocks or cells belongs to the first.
                if start < piece_start:
                    yield piece
            elif piece_start < end and piece_end - piece_start == len(piece):
                yield piece[max(0, start - piece_start) : end - piece_start]
            elif start <= piece_start < end:
                yield piece


def rendered(text: str) -> str:
    """Return what a reader of the rendered text sees: without marks, entities, hidden characters.

    Property: 64.
    """
    return read(text).rendered()


def _clean(text: str) -> str:
    text = unicodedata.normalize("NFC", _INVISIBLE.sub("", text))
    lines = (
        _SPACES.sub(" ", line).strip() if "\t" not in line else line.strip()
        for line in text.split("\n")
    )
    return re.sub(r"\n{2,}", "\n", "\n".join(lines)).strip()


@lru_cache(maxsize=16)
def read(text: str) -> Reading:
    """Read a text as blocks.

    Property: 64.
    """
    builder = _Builder(text)
    starts = [message.start() for message in _CHAT.finditer(text)]
    if text and starts[:1] != [0]:
        builder.markdown(0, starts[0] if starts else len(text))
    for start, end in pairwise([*starts, len(text)]):
        builder.message(start, end)
    pieces = tuple(_visible(builder.pieces, builder.hidden))
    starts_of_pieces = tuple(piece[0] for piece in pieces)
    reading = Reading(
        text,
        (),
        pieces,
        tuple(builder.hidden),
        builder.left_out,
        tuple(builder.links),
        tuple(builder.tags),
        starts_of_pieces,
    )
    return replace(reading, blocks=tuple(_told(reading, builder.blocks)))


def _told(reading: Reading, opened: list[NoteBlock]) -> Iterator[NoteBlock]:
    """Yield the blocks with their ends; what shows nothing belongs to the block before it."""
    starts = [block.span.start for block in opened[1:]]
    last: NoteBlock | None = None
    for block, (start, end) in zip(opened, pairwise([0, *starts, len(reading.text)]), strict=False):
        shows = reading.shows(start, end)
        if last and (not shows or not reading.shows(last.span.start, last.span.end)):
            kept = block if shows else last
            last = replace(kept, span=Span(last.span.start, end))
            continue
        if last:
            yield last
        last = replace(block, span=Span(start, end))
    if last:
        yield last


@dataclass
class _Builder:
    """Collects blocks and pieces from the events of the parser."""

    text: str
    blocks: list[NoteBlock] = field(default_factory=list)
    pieces: list[tuple[int, int, str]] = field(default_factory=list)
    hidden: list[Span] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    links: dict[str, None] = field(default_factory=dict)
    tags: dict[str, None] = field(default_factory=dict)
    _code: list[Span] = field(default_factory=list)
    _containers: list[Kind] = field(default_factory=list)
    _headings: list[tuple[int, str]] = field(default_factory=list)
    _tables: int = 0
    _shown_before: int = 0  # pieces before the present block
    _pictures: int = 0  # depth inside a picture whose words are its file name or size
    _line_end: int = -1
    _row_end: int = -1
    _has_cells: bool = False  # of the present row of a Markdown table

    def message(self, start: int, end: int) -> None:
        self._open("message", start)
        self.pieces.append((start, end, self.text[start:end]))

    def markdown(self, start: int, end: int) -> None:
        self._open("paragraph", start)
        for event, place in _events(storable(self.text[start:end]), start):
            self._take(*_parsed(event), place)
        for match in self._outside_code(_HIDDEN, start, end):
            self.hidden.append(Span(*match.span()))
            if match[0].startswith("%%"):
                self.left_out["comment"] += len(match[0])
        for match in self._outside_code(_MARKS, start, end):
            self.hidden += [Span(*match.span(part)) for part in _MARKS.groupindex if match[part]]
        self.tags |= dict.fromkeys(
            match[1].strip("/-") for match in self._outside_code(_LABEL, start, end)
        )

    def _outside_code(
        self, pattern: re.Pattern[str], start: int, end: int
    ) -> Iterator[re.Match[str]]:
        for match in pattern.finditer(self.text, start, end):
            after = bisect_left(self._code, match.end(), key=lambda literal: literal.start)
            if after == 0 or self._code[after - 1].end <= match.start():
                yield match

    def _take(self, name: str, detail: Any, is_start: bool, place: Span) -> None:
        if name in {"Image", "Link"} and is_start and "WikiLink" in str(detail["link_type"]):
            note = detail["dest_url"].partition("#")[0].strip()
            if note and not _FILE_OR_SIZE.fullmatch(note):
                self.links[note] = None
        if name == "Image":
            self._picture(detail, is_start, place)
        elif self._pictures:
            pass
        elif name in _KINDS:
            self._structure(name, detail, is_start, place)
        elif name in _VERBATIM:
            if name == "Code":
                self._code.append(place)
            # Formulas with their "$", which may be those of amounts.
            own = self.text[place.start : place.end] if name in _MATH else detail
            self._show(place, own)
        elif name in {"SoftBreak", "HardBreak"}:
            self._break(place)
        elif name == "Html":
            self._html(place)
        else:
            self._small(name, detail, is_start, place)

    def _small(self, name: str, detail: Any, is_start: bool, place: Span) -> None:
        """Take what is in a line or makes no block that shows something."""
        if name == "InlineHtml":
            if detail.startswith("<!--"):
                self.left_out["comment"] += len(detail)
            self.pieces.append((place.start, place.end, _in_place_of_tag(detail)))
        elif name == "TableCell" and is_start:
            if self._has_cells:
                self.pieces.append((place.start, place.start, " | "))
            self._has_cells = True
        elif name == "Table" and is_start:
            self._tables += 1
        elif name == "Rule":
            self._open("rule", place.start)
        elif name in {"Emphasis", "Strong", "Strikethrough"}:
            self._keep_between_digits(place, 1 if name == "Emphasis" else 2, is_start)

    def _picture(self, detail: Any, is_start: bool, place: Span) -> None:
        if not is_start:
            self._pictures = max(0, self._pictures - 1)
            return
        words = self.text[place.start : place.end].partition("](")[0].removeprefix("![")
        is_embed = "WikiLink" in str(detail["link_type"])
        if self._pictures or is_embed or _FILE_OR_SIZE.fullmatch(words):
            self._pictures += 1

    def _structure(self, name: str, detail: Any, is_start: bool, place: Span) -> None:
        kind = _KINDS[name]
        if not is_start:
            self._close(kind, detail)
            return
        if kind in {"item", "quote"}:
            self._containers.append(kind)
        level = self._containers.count("item")
        if kind == "heading":
            level = int(detail["level"][1:])
            while self._headings and self._headings[-1][0] >= level:
                self._headings.pop()
        self._has_cells = False
        if detail == "Indented" and self._own_line(place.start):
            return  # A row whose first cell is empty.
        self._open(kind, place.start, level=level, is_header=name == "TableHead")
        if kind == "code":
            self._code.append(place)
            if isinstance(detail, Mapping) and detail["Fenced"].split(" ")[0] in _QUERIES:
                self.hidden.append(place)
                self.left_out["query"] += place.length
        elif kind == "item" and (number := _NUMBER.match(self.text, place.start)):
            self.pieces.append((place.start, number.end(), f"{number[1]} "))
        elif name == "Paragraph" and (mark := _CALLOUT.match(self.text, place.start)):
            self.hidden.append(Span(*mark.span()))
            self._line_end = self.text.find("\n", mark.end())

    def _close(self, kind: Kind, detail: Any) -> None:
        if kind in {"item", "quote"}:
            self._containers.pop()
        elif kind == "heading":
            self._headings.append((int(detail[1:]), self._shown()))

    def _open(self, kind: Kind, start: int, *, level: int = 1, is_header: bool = False) -> None:
        """Open a block, or say more of the present one if it has nothing but its marks."""
        if kind == "paragraph" and self._containers:
            kind = self._containers[-1]
        if self.text[start - 1 : start] in " \t>":  # its marks belong to it
            line = self.text.rfind("\n", 0, start) + 1
            start = line if not self.text[line:start].strip(" \t>") else start
        block = NoteBlock(
            kind,
            Span(start, start),
            tuple(heading for _, heading in self._headings),
            self._tables if kind == "row" else -1,
            is_header,
            level if kind in {"heading", "item"} else 0,
        )
        last = self.blocks[-1] if self.blocks else None
        if last and len(self.pieces) == self._shown_before and last.kind != "rule":
            kind = last.kind if kind == "paragraph" else kind
            table = self._tables if kind == "row" else -1
            level = block.level if block.kind == kind else last.level
            self.blocks[-1] = replace(block, kind=kind, span=last.span, table=table, level=level)
            return
        self.blocks.append(block)
        self.pieces.append((start, start, "\n"))
        self._shown_before = len(self.pieces)

    def _shown(self) -> str:
        """What the present block shows."""
        return _clean("".join(piece for _, _, piece in self.pieces[self._shown_before :]))

    def _show(self, place: Span, shown: str) -> None:
        start = self.text.find(shown, place.start, place.end)
        start, end = (start, start + len(shown)) if start >= 0 else (place.start, place.end)
        if self.blocks[-1].kind == "paragraph" and len(self.pieces) == self._shown_before:
            self._own_line(start)
        self.pieces.append((start, end, shown))

    def _own_line(self, start: int) -> bool:
        """Whether a line of a paragraph is a row of cells or an entry of a list, by its look."""
        end = self.text.find("\n", start)
        line = self.text[start : len(self.text) if end < 0 else end]
        empty = self.text[self.text.rfind("\n", 0, start) + 1 : start]  # the first cells
        is_next = 0 <= self._row_end == start - len(empty) - 1
        if "\t" in line.strip() or (is_next and "\t" in empty):
            opens = self._row_end < 0 or bool(_BLANK_LINE.search(self.text, self._row_end, start))
            self._tables += opens
            self._row_end = start + len(line)
            cells = [cell.strip() for cell in line.strip().split("\t")]
            self._open("row", start, is_header=opens and looks_like_header(cells))
            if is_next and empty:
                self.pieces.append((start - len(empty), start, empty))
        elif own := _OWN_LINE.match(line):
            self._open("item", start)
            if "::" in own[0]:
                self._line_end = end
        else:
            return False
        return True

    def _break(self, place: Span) -> None:
        after = place.start
        while after < len(self.text) and self.text[after] in " \t\r\n>\\":
            after += 1
        if self._own_line(after):
            return
        if place.start == self._line_end or self.blocks[-1].kind == "row":
            self._open("paragraph", after)
        else:
            self.pieces.append((place.start, place.end, " "))

    def _html(self, place: Span) -> None:
        at = place.start
        for tag in _TAG.finditer(self.text, place.start, place.end):
            if tag[0].startswith("<!--"):
                self.left_out["comment"] += len(tag[0])
            if tag.start() > at:
                self.pieces.append((at, tag.start(), unescape(self.text[at : tag.start()])))
            self.pieces.append((tag.start(), tag.end(), _in_place_of_tag(tag[0])))
            at = tag.end()
        self.pieces.append((at, place.end, unescape(self.text[at : place.end])))

    def _keep_between_digits(self, place: Span, length: int, is_start: bool) -> None:
        """Show the stars of "2*3*4", which are no marks to whoever wrote them."""
        start = place.start if is_start else place.end - length
        mark = self.text[start : start + length]
        around = self.text[max(0, start - 1) : start], self.text[start + length :][:1]
        if all(letter.isdigit() for letter in around):
            self.pieces.append((start, start + length, mark))


def _in_place_of_tag(tag: str) -> str:
    return "" if _INLINE_TAG.match(tag) else " "


def _parsed(event: Any) -> tuple[str, Any, bool]:
    """Return the name of an event, what it says of itself, and whether it opens something."""
    if isinstance(event, str):
        return event, None, False
    ((name, detail),) = event.items()
    if name not in {"Start", "End"}:
        return name, detail, False
    if isinstance(detail, str):
        return detail, None, name == "Start"
    ((tag, own),) = detail.items()
    return tag, own, name == "Start"


def _events(text: str, offset: int) -> Iterator[tuple[Any, Span]]:
    """Yield the events of a text with their ranges in characters; the parser counts bytes."""
    events = events_with_range(text, options=_OPTIONS)
    if text.isascii():
        for event, place in events:
            yield event, Span(offset + place["start"], offset + place["end"])
        return
    characters = [0] * (len(text.encode()) + 1)
    byte = 0
    for number, letter in enumerate(text):
        characters[byte] = number
        byte += 1 if letter < "\x80" else len(letter.encode())
    characters[byte] = len(text)
    for event, place in events:
        yield (
            event,
            Span(offset + characters[place["start"]], offset + characters[place["end"]]),
        )


def _visible(
    pieces: list[tuple[int, int, str]], hidden: list[Span]
) -> Iterator[tuple[int, int, str]]:
    """Yield the pieces without what is hidden."""
    hidden = sorted(hidden, key=lambda span: span.start)
    passed = 0
    for start, end, shown in sorted(pieces, key=lambda piece: piece[:2]):
        while passed < len(hidden) and hidden[passed].end <= start:
            passed += 1
        at = start
        for span in map(hidden.__getitem__, range(passed, len(hidden))):
            if span.start >= end or not shown:
                break
            if end - start != len(shown):
                shown = ""
            elif span.start > at:
                yield at, span.start, shown[at - start : span.start - start]
            at = max(at, span.end)
        if shown and (at < end or start == end):
            yield at, end, shown[at - start :] if end - start == len(shown) else shown
