"""Formats values of any kind for messages."""

import reprlib
from collections.abc import Collection

_SHOWN_CHARS = 80
_INNER_VALUES = 10

# A value may be a thousand levels deep, or a list that contains itself.
_BRIEF = reprlib.Repr()
_BRIEF.maxstring = _BRIEF.maxother = _SHOWN_CHARS
_BRIEF.maxlist = _BRIEF.maxtuple = _BRIEF.maxset = _BRIEF.maxdict = _INNER_VALUES


def shown(value: object) -> str:
    """Return the beginning of any value on one line, as its author wrote it."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    try:
        if isinstance(value, str):
            text = value[: 4 * _SHOWN_CHARS]
        else:
            text = _BRIEF.repr(value) if isinstance(value, Collection) else str(value)
    except ValueError:  # A number with more digits than Python prints.
        return "…"
    text = " ".join(printable(text).replace("\0", " ").split())
    return text if len(text) <= _SHOWN_CHARS else text[: _SHOWN_CHARS - 1] + "…"


def printable(text: str) -> str:
    """Return a text with characters that UTF-8 cannot encode escaped."""
    return text.encode("utf-8", "backslashreplace").decode()
