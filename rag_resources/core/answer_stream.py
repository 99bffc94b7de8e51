"""Sentences of an answer in JSON while it is being written."""

import json
import re
from typing import Any

_BEGINNING = re.compile(r"\s*\{\s*\"sentences\"\s*:\s*\[")
_BETWEEN = re.compile(r"[\s,]*")


class SentenceReader:
    """Reads `{"sentences": [...]}` piece by piece, and returns each item as soon as it is complete.

    Other JSON gives no items; the caller must check whether the whole is valid.
    """

    def __init__(self) -> None:
        self._decoder = json.JSONDecoder()
        self._position: int | None = None
        self.text = ""

    def add(self, piece: str) -> list[Any]:
        """Take the next piece, and return the items that it completes."""
        self.text += piece
        if self._position is None:
            beginning = _BEGINNING.match(self.text)
            if not beginning:
                return []
            self._position = beginning.end()
        found: list[Any] = []
        while (item := self._next(self._position)) is not None:
            value, self._position = item
            found.append(value)
        return found

    def _next(self, position: int) -> tuple[Any, int] | None:
        between = _BETWEEN.match(self.text, position)
        start = between.end() if between else position
        # Anything but an object could still grow: a number may get another digit.
        if not self.text.startswith("{", start):
            return None
        try:
            return self._decoder.raw_decode(self.text, start)
        except (ValueError, RecursionError):
            return None
