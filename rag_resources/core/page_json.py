"""Pages as JSON: the form in which a child process sends them and the database keeps their blocks.

The output of a child process is checked, because the file that it read may have compromised it.
"""

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from rag_resources.core.documents import (
    Block,
    BlockKind,
    Page,
    PageFailure,
    Removal,
    Route,
    Run,
)
from rag_resources.core.errors import InvalidParameterError
from rag_resources.core.places import Box
from rag_resources.core.text import storable
from rag_resources.languages.messages import _, restored, to_stored

T = TypeVar("T")
MAX_PAGE_NUMBER = 10_000_000


def item_to_json(item: Page | PageFailure) -> dict[str, Any]:
    """Return the JSON form of a page or failure; `item_from_json` reads it."""
    if isinstance(item, PageFailure):
        return {"number": item.number, "reason": to_stored(item.reason)}
    return {
        "number": item.number,
        "text": item.text,
        "route": item.route.value,
        "sheet": item.sheet,
        "blocks": blocks_to_json(item.blocks),
        "removed": removals_to_json(item.removed),
        "words": None if item.words is None else base64.b64encode(item.words).decode(),
        "quality": item.quality,
        "flags": [item.has_images, item.has_tables, item.has_multiple_columns],
        "notices": list(item.notices),
        "leftOut": dict(item.left_out),
        "metadata": dict(item.metadata),
    }


def item_from_json(value: Any) -> Page | PageFailure:
    """Return what `item_to_json` wrote; characters that PostgreSQL refuses become U+FFFD.

    Raises:
        InvalidParameterError: It is not a page.
    """
    try:
        if "reason" in value:
            return PageFailure(_number(value["number"]), restored(value["reason"]))
        return _page(value)
    except (AttributeError, KeyError, TypeError, ValueError, IndexError, binascii.Error) as error:
        raise InvalidParameterError(
            _("The process that read it returned a malformed page.")
        ) from error


def blocks_to_json(blocks: Sequence[Block]) -> list[Any]:
    """Return blocks as `[kind, start, end, level, [[start, end, place], …]]`.

    The place of a run is a box of four numbers, rounded to 1/100 point, cells as text, or null.
    """
    return [
        [b.kind.value, b.start, b.end, b.level, [[r.start, r.end, _place(r)] for r in b.runs]]
        for b in blocks
    ]


def blocks_from_json(value: Any, text_length: int) -> tuple[Block, ...]:
    """Return the blocks of a page whose text has this length; see `blocks_to_json`."""
    return tuple(
        Block(
            *_range(start, end, text_length),
            BlockKind(kind),
            _in_range(level, 100),
            tuple(_run(run, text_length) for run in runs),
        )
        for kind, start, end, level, runs in value
    )


def removals_to_json(removed: Sequence[Removal]) -> list[dict[str, Any]]:
    """Return the removed ranges as they are stored."""
    return [{"start": r.start, "end": r.end, "reason": r.reason} for r in removed]


def removals_from_json(value: Any, text_length: int) -> tuple[Removal, ...]:
    """Return the removed ranges of a page whose text has this length."""
    return tuple(
        Removal(*_range(each["start"], each["end"], text_length), _text(each["reason"]))
        for each in value
    )


def _page(value: Mapping[str, Any]) -> Page:
    text, words, quality = _text(value["text"]), value["words"], value["quality"]
    images, tables, columns = value["flags"]
    return Page(
        number=_number(value["number"]),
        text=text,
        route=Route(value["route"]),
        sheet=None if value["sheet"] is None else _text(value["sheet"]),
        blocks=blocks_from_json(value["blocks"], len(text)),
        removed=removals_from_json(value["removed"], len(text)),
        words=None if words is None else base64.b64decode(words, validate=True),
        quality=None if quality is None else min(1.0, max(0.0, float(quality))),
        has_images=images is True,
        has_tables=tables is True,
        has_multiple_columns=columns is True,
        notices=tuple(_text(notice) for notice in value["notices"]),
        metadata={_text(key): _plain(each) for key, each in dict(value["metadata"]).items()},
        left_out={_text(key): int(count) for key, count in dict(value["leftOut"]).items()},
    )


def _run(value: Sequence[Any], text_length: int) -> Run:
    start, end, place = value
    box = Box(*(float(edge) for edge in place)) if isinstance(place, list) else None
    cells = _text(place) if isinstance(place, str) else None
    return Run(*_range(start, end, text_length), box=box, cells=cells)


def _place(run: Run) -> list[float] | str | None:
    if run.box is None:
        return run.cells
    box = run.box
    return [round(edge, 2) for edge in (box.left, box.top, box.right, box.bottom)]


def _range(start: Any, end: Any, length: int) -> tuple[int, int]:
    if not 0 <= _in_range(start, length) <= _in_range(end, length):
        raise ValueError(start)
    return start, end


def _in_range(value: Any, most: int) -> int:
    if not isinstance(value, int) or not 0 <= value <= most:
        raise ValueError(value)
    return value


def _number(value: Any) -> int:
    if _in_range(value, MAX_PAGE_NUMBER) < 1:
        raise ValueError(value)
    return int(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return storable(value)


def _plain(value: Any) -> str | int | float | bool | None:
    if isinstance(value, str):
        return _text(value)
    return value if isinstance(value, int | float) else None
