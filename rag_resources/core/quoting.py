"""What a message shows of a value, whatever the value is."""

import reprlib
from collections.abc import Collection

_SHOWN_CHARS = 80
_INNER_VALUES = 10

# A value may be a thousand levels deep, or a list that holds itself.
_BRIEF = reprlib.Repr()
_BRIEF.maxstring = _BRIEF.maxother = _SHOWN_CHARS
_BRIEF.maxlist = _BRIEF.maxtuple = _BRIEF.maxset = _BRIEF.maxdict = _INNER_VALUES


def shown(value: object) -> str:
    """Return the beginning of a value on one line, fit for a message, whatever the value is."""
    try:
        if isinstance(value, str):
            text = value[: 4 * _SHOWN_CHARS]
        else:
            text = _BRIEF.repr(value) if isinstance(value, Collection) else str(value)
    except ValueError:  # A number of more digits than Python writes.
        return "…"
    text = " ".join(printable(text).replace("\0", " ").split())
    return text if len(text) <= _SHOWN_CHARS else text[: _SHOWN_CHARS - 1] + "…"


def printable(text: str) -> str:
    """Return a text with what UTF-8 cannot hold spelled out."""
    return text.encode("utf-8", "backslashreplace").decode()
