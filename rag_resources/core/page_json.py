"""Pages as JSON: the form in which a child process sends them and the database keeps their blocks.

The output of a child process is checked, because the file that it read may have compromised it.
"""

from collections.abc import Sequence
from typing import Any

from pydantic import TypeAdapter

from rag_resources.core.documents import Block, Page, PageFailure, Removal, Run
from rag_resources.core.errors import InvalidParameterError
from rag_resources.languages.messages import _, restored, to_stored

_PAGE = TypeAdapter(Page)
_FAILURE = TypeAdapter(PageFailure)
_PARTS: TypeAdapter[tuple[Block | Removal, ...]] = TypeAdapter(tuple[Block | Removal, ...])
BLOCKS = TypeAdapter(tuple[Block, ...])
REMOVALS = TypeAdapter(tuple[Removal, ...])


def item_to_json(item: Page | PageFailure) -> dict[str, Any]:
    """Return the JSON form of a page or failure; `item_from_json` reads it."""
    if isinstance(item, PageFailure):
        return {"number": item.number, "reason": to_stored(item.reason)}
    made: dict[str, Any] = _PAGE.dump_python(item, mode="json", exclude_defaults=True)
    return made


def item_from_json(value: Any) -> Page | PageFailure:
    """Return what `item_to_json` wrote; characters that PostgreSQL refuses become U+FFFD.

    Raises:
        InvalidParameterError: It is not a page.
    """
    try:
        if "reason" in value:
            return _FAILURE.validate_python({**value, "reason": restored(value["reason"])})
        page = _PAGE.validate_python(value)
        _check_parts(page)
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise InvalidParameterError(
            _("The process that read it returned a malformed page.")
        ) from error
    return page


def _check_parts(page: Page) -> None:
    runs = [run for block in page.blocks for run in block.runs]
    parts: list[Block | Removal | Run] = [*page.blocks, *page.removed, *runs]
    if not all(0 <= each.start <= each.end <= len(page.text) for each in parts):
        raise ValueError(page.number)


def parts_to_json(parts: Sequence[Block | Removal]) -> list[Any]:
    """Return blocks or removed ranges as they are stored."""
    made: list[Any] = _PARTS.dump_python(tuple(parts), mode="json", exclude_defaults=True)
    return made
