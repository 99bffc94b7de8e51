"""Cuts the blocks of a Spanish text into sentences with exact offsets.

`core.blocks` finds the blocks. The words are in `languages/es/rules/sentences.toml`; building
chunks belongs in `core.chunking`.
`tests/data/sentences.txt` shows what ends a sentence and what does not.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from rag_resources.core.blocks import read
from rag_resources.core.rules import rules
from rag_resources.core.text import Span

_RULES = rules().sentences


def _any_of(words: Sequence[str]) -> str:
    return f"(?:{'|'.join(words)})"


# The number or letter of a list entry or heading: "3.", "2.1.", "b)", "IV.", "A.".
_NUMBER = r"(?:\d{1,3}(?:\.\d{1,3})*[.)]|[IVXLC]{1,5}[.)]|\w[.)])"
_MARKER = r"(?:[-*+•·–—]|\d{1,3}[.)]|[^\W\d_]\))[^\S\r\n]+(?:\[[ xX]\][^\S\r\n]+)?"

_CLOSERS = r"""["'”’»)\]*_`~]"""
_OPENERS = r"""["'“‘«(\[*_`~¿¡—–-]"""
# What may end a sentence: marks, with what they close, before white space. Between words without
# white space ("Hola.Luego") a full stop ends one only after small letters and before a capital.
# Marks are tried once, as a whole: of a run of them no part can be one where the whole is none, and
# trying all parts would take the square of its length.
_CANDIDATE = re.compile(
    rf"(?<![.!?…])(?P<marks>[.!?…]++)(?:(?P<closers>{_CLOSERS}*+)(?=\s)"
    rf"|(?<=[{_RULES.small_letters}]{{2}}[.!?…])(?=[¿¡]|[A-ZÁÉÍÓÚÑ][{_RULES.small_letters}\s]))"
)
_NEXT = re.compile(rf"\s*(?P<openers>(?:{_OPENERS}|\s)*)(?P<word>\w*)(?P<after>\.?)")
_START = re.compile(
    rf"(?:\s|>)*(?:{_MARKER}|#{{1,6}}\s+)?(?:{_OPENERS}|\s)*(?:{_NUMBER}\s*)?(?:{_OPENERS}|\s)*"
)
_RUN_IN = re.compile(rf"(?:\s|>)*(?:{_MARKER})*(?P<bold>\*{{1,3}}|_{{1,3}})(?=\S)")
_ADDRESS = re.compile(r"[@/]|www\.", re.IGNORECASE)

# Abbreviations, the whole word before a full stop. After an opening one (a title or a reference)
# the sentence always goes on. After any other it goes on only before a small letter or a digit.
_ABBREVIATION = re.compile(
    rf"(?P<opening>{'|'.join(_RULES.opening)})|{'|'.join(_RULES.closing)}", re.IGNORECASE
)
_WORD_AT_END = re.compile(r"\w+$")
_INITIAL = re.compile(r"(?<![\w°'’])[^\W\d_]$")
_LAST_WORD = re.compile(r"(\S+)\s+\S+$")
_STARTERS = frozenset(_RULES.starters)
_LETTERED = re.compile(rf"{_any_of(_RULES.lettered)}|\d+(?:\.?[ºª])?", re.IGNORECASE)
_ROMAN = re.compile(r"[IVXLCDM]+")
_PAIRS = {"(": ")", "[": "]", "«": "»", "“": "”"}
_PAIR_MARK = re.compile(r'[()\[\]«»“”"]')

_WHOLE = {"row", "code", "message"}
"""Kinds of blocks that are one sentence."""
_ABBREVIATION_CHARS = 40
"""Enough for the longest abbreviation and the word before it."""
_START_CHARS = 60
"""The longest marks, number and white space with which a sentence may begin."""
_ENCLOSED_CHARS = 1_000
"""A quotation or aside longer than this is cut into its sentences."""
_RUN_IN_CHARS = 80
"""The longest run-in heading, such as "**Mortero.** Se retoma el lunes."."""


def sentences(text: str) -> list[Span]:
    """Cut a Spanish text into sentences.

    A quotation or text in brackets stays whole, and so do list numbers, run-in headings, rows of
    tables, code and messages.

    Returns:
        Spans in order, none blank, trimmed of surrounding white space; every character outside
        them is white space.
    """
    return list(iter_sentences(text))


def iter_sentences(text: str) -> Iterator[Span]:
    """Yield the spans of `sentences` one by one: the first costs less than all."""
    reading = read(text)
    for block in reading.blocks:
        start, end = block.span.start, block.span.end
        for border in () if block.kind in _WHOLE else _borders(text, block.span):
            if reading.shows(start, border) and reading.shows(border, end):
                yield _trimmed(text, start, border)
                start = border
        if text[start:end].strip():
            yield _trimmed(text, start, end)


def _trimmed(text: str, start: int, end: int) -> Span:
    piece = text[start:end]
    left = len(piece) - len(piece.lstrip())
    return Span(start + left, max(start + left, start + len(piece.rstrip())))


def _borders(text: str, block: Span) -> Iterator[int]:
    enclosed = _enclosed(text, block)
    starts = [span.start for span in enclosed]
    run_in = _run_in_end(text, block)
    start = block.start
    for match in _CANDIDATE.finditer(text, block.start, block.end):
        if run_in in (match.start(), match.end()):
            continue
        place = bisect_right(starts, match.end() - 1) - 1
        if place >= 0 and match.end() < enclosed[place].end:
            continue
        if _ends_sentence(text, start, match, block.end):
            start = match.end()
            yield start


def _enclosed(text: str, block: Span) -> list[Span]:
    """Outermost quotations and bracketed texts of a block, in order."""
    found: list[Span] = []
    open_marks: list[tuple[str, int]] = []
    for match in _PAIR_MARK.finditer(text, block.start, block.end):
        mark = match[0]
        closed = next(
            (
                number
                for number in range(len(open_marks) - 1, max(len(open_marks) - 9, -1), -1)
                if open_marks[number][0] == mark
            ),
            None,
        )
        if closed is None:
            if mark == '"' or mark in _PAIRS:
                open_marks.append((_PAIRS.get(mark, mark), match.start()))
            continue
        span = Span(open_marks[closed][1], match.end())
        del open_marks[closed:]
        if span.length <= _ENCLOSED_CHARS:
            while found and found[-1].start > span.start:
                found.pop()
            found.append(span)
    return found


def _run_in_end(text: str, block: Span) -> int:
    """The end of emphasised words with which a block begins as with a heading; -1 if none."""
    opening = _RUN_IN.match(text, block.start, block.end)
    if not opening:
        return -1
    bold = opening["bold"]
    limit = min(block.end, opening.end() + _RUN_IN_CHARS)
    end = text.find(bold, opening.end(), limit)
    return end + len(bold) if end >= 0 else -1


def _ends_sentence(text: str, start: int, match: re.Match[str], limit: int) -> bool:
    """Whether the marks of a candidate end the sentence that began at `start`."""
    following = _NEXT.match(text, match.end(), limit)
    word = following["word"] if following else ""
    dot = match.start()
    if word[:1].islower() and (match["closers"] or match["marks"] != "."):
        return False
    if match["marks"] != ".":
        return True
    if dot - start <= _START_CHARS and _START.fullmatch(text, start, match.end("marks")):
        return False
    if match["closers"] is None:
        return not _ADDRESS.search(_token(text, dot, limit))
    opener = following["openers"].strip() if following else ""
    return not _is_abbreviated(
        text, start, dot, opener, word, bool(following and following["after"])
    )


def _token(text: str, place: int, limit: int) -> str:
    """The characters around a place up to white space, at most 100 on either side."""
    left = text[max(0, place - 100) : place].split()[-1:]
    right = text[place : min(limit, place + 100)].split()[:1]
    return "".join((*left, *right))


def _is_abbreviated(
    text: str, start: int, dot: int, opener: str, word: str, word_is_initial: bool
) -> bool:
    """Whether a full stop belongs to an abbreviation, and the sentence goes on after it."""
    tail = text[max(start, dot - _ABBREVIATION_CHARS) : dot].rstrip()
    tail = unicodedata.normalize("NFC", tail)
    first = word[:1]
    initial = _INITIAL.search(tail)
    if initial and initial[0].isupper() and first.isupper() and not opener:
        return _is_name_initial(tail, word, word_is_initial)
    word_at_end = _WORD_AT_END.search(tail)
    abbreviation = word_at_end and _ABBREVIATION.fullmatch(word_at_end[0])
    if abbreviation and abbreviation["opening"]:
        return True
    if not abbreviation and not initial:
        return False
    return (
        first.islower()
        or first.isdigit()
        or (initial is not None and initial[0].islower() and bool(_ROMAN.fullmatch(word)))
    )


def _is_name_initial(tail: str, word: str, word_is_initial: bool) -> bool:
    """Whether a capital letter before a capitalised word is a name's initial, not a "plan B"."""
    if word_is_initial and len(word) == 1:
        return True
    if word.casefold() in _STARTERS:
        return False
    before = _LAST_WORD.search(tail)
    return not (before and _LETTERED.fullmatch(before[1]))
