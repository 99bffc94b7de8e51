"""Untrusted text as Markdown that shows it literally, and Markdown text without its marks.

A passage keeps the Markdown marks of its note; only the text that people are shown lacks them.
"""

import re

_MARKS = re.compile(r"([\\`*_{}\[\]()<>#+\-!|~&$])")
_LINKS = re.compile(r"(?:[a-z][a-z0-9+.-]{0,30}://|www\.)\S+|\S+@\S+\.\S+", re.IGNORECASE)

_HEADING = re.compile(r"^ {0,3}(#{1,6}[ \t]+)", re.MULTILINE)
_STARS = re.compile(r"(?<![\\*\w])(\*{1,3})(?=[^\s*])([^\n*]*[^\s*\\])(\1)(?![*\w])")
_WIKI_LINKS = re.compile(r"(\[\[(?:[^\[\]|\n]*\|)?)([^\[\]|\n]+)(\]\])")
_LINES = re.compile(r"(?<![\\_\w])(_{1,3})(?=[^\s_])([^\n]*?[^\s_\\])(\1)(?![_\w])")


def marks_of(text: str) -> frozenset[int]:
    """Return the offsets of the characters that Markdown does not show.

    They are the marks of headings, of bold and of italics, but not stars and underscores in
    numbers, names or lists; and of wiki links all but the words that they show.
    """
    groups = [match.span(1) for match in _HEADING.finditer(text)]
    for pattern in (_STARS, _LINES, _WIKI_LINKS):
        for match in pattern.finditer(text):
            groups += [match.span(1), match.span(3)]
    return frozenset(place for start, end in groups for place in range(start, end))


def without_marks(text: str) -> str:
    """Return a text without the marks of Markdown; see `marks_of`."""
    hidden = marks_of(text)
    return "".join(letter for place, letter in enumerate(text) if place not in hidden)


def plain(text: str) -> str:
    """Return Markdown that shows a text as it is: on one line, without links, images or HTML.

    Renderers also make links of bare addresses, so these become code.
    """
    line = " ".join(text.split())
    parts, end = [], 0
    for link in _LINKS.finditer(line):
        parts.append(_MARKS.sub(r"\\\1", line[end : link.start()]))
        parts.append(f"`{link.group().replace('`', chr(0x2BC))}`")
        end = link.end()
    return "".join((*parts, _MARKS.sub(r"\\\1", line[end:])))
