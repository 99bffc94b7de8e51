"""Untrusted text as Markdown that shows it literally. Reading Markdown belongs in `core.blocks`."""

import re

_MARKS = re.compile(r"([\\`*_{}\[\]()<>#+\-!|~&$])")
_LINKS = re.compile(r"(?:[a-z][a-z0-9+.-]{0,30}://|www\.)\S+|\S+@\S+\.\S+", re.IGNORECASE)


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
