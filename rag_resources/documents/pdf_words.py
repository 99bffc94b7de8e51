"""Words of a PDF page with box, size and weight, as PDFium finds them in the file's order.

Which of them are shown is decided in `documents.pdf_page`; lines and columns are made in
`documents.pdf_layout`.
"""

import ctypes
import math
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pypdfium2.raw as pdfium_c

from rag_resources.documents.pdf_geometry import Frame, Rectangle

_LIGATURES = str.maketrans(
    {"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st"}
)
_SPACES = frozenset(
    [0, *range(9, 14), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200C), 0x2028, 0x2029, 0x202F]
) | {0x205F, 0x2060, 0x3000, 0xFEFF}
_ACCENTS = {
    "´": "\u0301",
    "`": "\u0300",
    "¨": "\u0308",
    "˜": "\u0303",
    "ˆ": "\u0302",
    "¸": "\u0327",
}
"""Accents that old TeX fonts draw as characters of their own, on top of the letter that follows."""

_LINE_END_HYPHEN = 2
"""PDFium's code for a hyphen at the end of a line."""

_INVISIBLE_MODES = {3, 7}
"""Render modes that paint nothing."""

_LONGEST_UNIT = 3
"""A raised figure after at most this many letters is an exponent; after more, a note's mark."""

_BOLD_FLAG = 1 << 18
_FIXED_PITCH_FLAG = 1
_MAX_FONT_NAME = 128


_FIELD_SIZE = 10.0
"""Size of what is filled in a form, in points; the field says no size that could be relied on."""


@dataclass(frozen=True, slots=True)
class Style:
    """How words are drawn.

    Attributes:
        size: In points, as shown.
        turn: Quarter turns anticlockwise on the page shown.
        painted: Whether it paints anything on the page.
        white: Whether it is white, so that it is visible only on something darker.
    """

    size: float
    bold: bool = False
    mono: bool = False
    turn: int = 0
    painted: bool = True
    white: bool = False


@dataclass(slots=True)
class Word:
    """A word and its box on the page shown.

    Attributes:
        order: Its number in the order in which the file draws the words.
    """

    text: str
    left: float
    top: float
    right: float
    bottom: float
    style: Style
    order: int = 0

    @property
    def box(self) -> Rectangle:
        """Left, top, right, bottom."""
        return self.left, self.top, self.right, self.bottom


@dataclass(slots=True)
class _TextObject:
    """The properties that the characters of one text object share.

    Attributes:
        turn: Quarter turns in PDF space.
        baseline: Where the letters stand, across the direction of the text.
    """

    style: Style
    turn: int
    baseline: float


class _Letters:
    """The letters of one word, with the rectangle in PDF space that they fill."""

    __slots__ = ("bottom", "drawn", "last", "left", "right", "text", "top")

    def __init__(self, drawn: _TextObject) -> None:
        self.text: list[str] = []
        self.drawn = self.last = drawn
        self.left = self.bottom = math.inf
        self.right = self.top = -math.inf

    def add(self, letter: str, drawn: _TextObject, box: Any) -> None:
        """Add a letter with its box."""
        self.text.append(letter)
        self.last = drawn
        if box.left < self.left:
            self.left = box.left
        if box.right > self.right:
            self.right = box.right
        if box.bottom < self.bottom:
            self.bottom = box.bottom
        if box.top > self.top:
            self.top = box.top

    def continues(self, letter: str, drawn: _TextObject, box: Any) -> bool:
        """Whether a letter at this box belongs to the same word."""
        if drawn is self.last or drawn.turn != self.last.turn:
            # Letters of a ligature share one box.
            return drawn is self.last and (drawn.turn > 0 or self._gap(box, 1.2))
        if drawn.turn:
            return True
        raised = drawn.baseline - self.last.baseline
        if abs(raised) >= 0.6 * drawn.style.size or self._is_note(drawn, raised):
            return False
        if letter.isupper() and len(self.text) < 3 and "".join(self.text).isdigit():
            return False  # the number of a footnote, not raised
        return self._gap(box, 0.6)

    def _gap(self, box: Any, back: float) -> bool:
        """Whether a box begins where the word ends, or this many times the size before."""
        size = self.last.style.size
        return bool(-back * size < box.left - self.right < 0.5 * size)

    def _is_note(self, drawn: _TextObject, raised: float) -> bool:
        """Whether the mark of a footnote begins or ends; m² and CO₂ have none."""
        last, size = self.last.style.size, drawn.style.size
        if size < 0.8 * last:
            return raised > 0.15 * last and len(self.text) > _LONGEST_UNIT
        return last < 0.8 * size and raised < -0.15 * size and not "".join(self.text).isalpha()


def read_words(text_page: Any, frame: Frame) -> list[Word]:
    """Return the words of a page in the order of the file."""
    words: list[Word] = []
    for letters in _letters_of_words(text_page, frame.quarter_turns):
        text = _composed("".join(letters.text))
        if text:
            words.append(_word(text, letters, frame, len(words)))
    return words


def form_words(page: Any, frame: Frame, order: int) -> list[Word]:
    """Return what is filled in the fields of a form on a page, as words in their fields."""
    words: list[Word] = []
    for index in range(pdfium_c.FPDFPage_GetAnnotCount(page)):
        field = pdfium_c.FPDFPage_GetAnnot(page, index)
        box = pdfium_c.FS_RECTF()
        is_field = pdfium_c.FPDFAnnot_GetSubtype(field) == pdfium_c.FPDF_ANNOT_WIDGET
        if is_field and pdfium_c.FPDFAnnot_GetRect(field, box):
            value = _composed(_field_value(field))
            letters = len(value) or 1
            size = min(_FIELD_SIZE, box.top - box.bottom)
            middle, at = (box.top + box.bottom) / 2, 0
            for text in value.split():
                left, right = (
                    box.left + (box.right - box.left) * place / letters
                    for place in (at, at + len(text))
                )
                sides = left, middle - size / 2, right, middle + size / 2
                words.append(Word(text, *frame.rectangle(*sides), Style(size), order + len(words)))
                at += len(text) + 1
        pdfium_c.FPDFPage_CloseAnnot(field)
    return words


def _field_value(field: Any) -> str:
    """Return the value of a field; a box that is ticked is ☒."""
    values = {}
    for key in (b"AS", b"V"):
        size = pdfium_c.FPDFAnnot_GetStringValue(field, key, None, 0)
        buffer = ctypes.create_string_buffer(size)
        shown = ctypes.cast(buffer, ctypes.POINTER(pdfium_c.FPDF_WCHAR))
        pdfium_c.FPDFAnnot_GetStringValue(field, key, shown, size)
        values[key] = buffer.raw.decode("utf-16-le", "replace").rstrip("\0")
    if values[b"AS"]:
        return "" if values[b"AS"] == "Off" else "☒"
    return values[b"V"]


def _word(text: str, letters: _Letters, frame: Frame, order: int) -> Word:
    """Give a word its box: the same height above and below the line in every font."""
    drawn, size = letters.drawn, letters.drawn.style.size
    # Text of turn 1 stands on a vertical line, with its letters to the left.
    sign = 1 if drawn.turn in (0, 3) else -1
    up, down = drawn.baseline + sign * 0.8 * size, drawn.baseline - sign * 0.2 * size
    if drawn.turn in (1, 3):
        sides = up, letters.bottom, down, letters.top
    else:
        sides = letters.left, down, letters.right, up
    return Word(text, *frame.rectangle(*sides), drawn.style, order)


def _composed(text: str) -> str:
    """Return letters as a reader of the page would type them: ligatures apart, accents joined."""
    return unicodedata.normalize("NFC", text.translate(_LIGATURES))


def _letters_of_words(text_page: Any, page_turns: int) -> Iterator[_Letters]:
    """Cut the characters of a page at white space and where the pen jumps."""
    objects: dict[int, _TextObject] = {}
    box = pdfium_c.FS_RECTF()
    by_box = ctypes.byref(box)
    object_of = pdfium_c.FPDFText_GetTextObject
    place = pdfium_c.FPDFText_GetLooseCharBox
    word: _Letters | None = None
    accent = ""
    for index, code in _codes(text_page):
        if code in _SPACES:
            if word:
                yield word
            word, accent = None, ""
            continue
        pointer = object_of(text_page, index)
        if not pointer:
            continue
        address = ctypes.addressof(pointer.contents)
        drawn = objects.get(address)
        if drawn is None:
            drawn = objects[address] = _text_object(text_page, index, pointer, page_turns)
        place(text_page, index, by_box)
        letter = _letter(code)
        if word and not word.continues(letter, drawn, box):
            yield word
            word = None
        word = word or _Letters(drawn)
        if accent and letter.isalpha():
            word.text.pop()
            letter = ("i" if letter == "ı" else letter) + _ACCENTS[accent]
        accent = letter if letter in _ACCENTS and _is_over_next(text_page, index, box) else ""
        word.add(letter, drawn, box)
        if code == _LINE_END_HYPHEN:
            yield word
            word = None
    if word:
        yield word


def _codes(text_page: Any) -> Iterator[tuple[int, int]]:
    """Return index and code of each character; past U+FFFF PDFium gives two, as UTF-16 has them."""
    code_of, half = pdfium_c.FPDFText_GetUnicode, 0
    for index in range(pdfium_c.FPDFText_CountChars(text_page)):
        code = code_of(text_page, index)
        if 0xD800 <= code < 0xDC00:
            half = code
            continue
        if half and 0xDC00 <= code < 0xE000:
            code = 0x10000 + ((half - 0xD800) << 10) + code - 0xDC00
        half = 0
        yield index, code


def _letter(code: int) -> str:
    if code == _LINE_END_HYPHEN:
        return "-"
    if 0x80 <= code < 0xA0:
        return bytes([code]).decode("cp1252", "replace")
    if code < 32 or 0xD800 <= code < 0xE000 or code & 0xFFFE == 0xFFFE or code > 0x10FFFF:
        return "\ufffd"
    return chr(code)


def _is_over_next(text_page: Any, index: int, box: Any) -> bool:
    """Whether a character is drawn over the one that follows."""
    following = pdfium_c.FS_RECTF()
    if not pdfium_c.FPDFText_GetLooseCharBox(text_page, index + 1, ctypes.byref(following)):
        return False
    middle = (box.left + box.right) / 2
    return bool(following.left < middle < following.right)


def _text_object(text_page: Any, index: int, pointer: Any, page_turns: int) -> _TextObject:
    """Look up the properties that the characters of a text object share."""
    matrix = pdfium_c.FS_MATRIX()
    pdfium_c.FPDFText_GetMatrix(text_page, index, ctypes.byref(matrix))
    size = pdfium_c.FPDFText_GetFontSize(text_page, index) * math.hypot(matrix.c, matrix.d)
    turn = round(math.atan2(matrix.b, matrix.a) / (math.pi / 2)) % 4
    name, flags = _font(text_page, index)
    weight = pdfium_c.FPDFText_GetFontWeight(text_page, index)
    mode = pdfium_c.FPDFTextObj_GetTextRenderMode(pointer)
    painted, white = _paint(text_page, index)
    style = Style(
        size=round(abs(size), 1) or 1.0,
        bold=_is_bold(name) or weight >= 700 or bool(flags & _BOLD_FLAG),
        mono=bool(flags & _FIXED_PITCH_FLAG) or _is_mono(name),
        turn=(turn - page_turns) % 4,
        painted=painted and mode not in _INVISIBLE_MODES,
        white=white and mode == 0,
    )
    return _TextObject(style, turn, matrix.e if turn % 2 else matrix.f)


def _paint(text_page: Any, index: int) -> tuple[bool, bool]:
    """Whether a character's colour is not transparent, and whether it is white."""
    red, green, blue, alpha = (ctypes.c_uint() for _ in range(4))
    found = pdfium_c.FPDFText_GetFillColor(
        text_page, index, *map(ctypes.byref, (red, green, blue, alpha))
    )
    if not found:
        return True, False
    return alpha.value > 0, min(red.value, green.value, blue.value) >= 250


def _font(text_page: Any, index: int) -> tuple[bytes, int]:
    """Return name and flags of a character's font."""
    buffer = ctypes.create_string_buffer(_MAX_FONT_NAME)
    flags = ctypes.c_int()
    pdfium_c.FPDFText_GetFontInfo(text_page, index, buffer, _MAX_FONT_NAME, ctypes.byref(flags))
    return buffer.value, flags.value


@lru_cache(maxsize=1_000)
def _is_bold(font_name: bytes) -> bool:
    name = font_name.lower()
    return any(part in name for part in (b"bold", b"black", b"heavy", b"-bd", b",bd"))


@lru_cache(maxsize=1_000)
def _is_mono(font_name: bytes) -> bool:
    name = font_name.lower()
    return any(part in name for part in (b"mono", b"courier", b"consol", b"typewriter", b"lmtt"))
