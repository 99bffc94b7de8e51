"""Says which filters no note meets, if a question found nothing."""

import json
from collections.abc import Iterator
from typing import Any

from rag_resources.core.deadline import Deadline
from rag_resources.core.filters import RetrievalFilters
from rag_resources.core.quoting import shown
from rag_resources.database.pool import Connection
from rag_resources.database.readers import Reads
from rag_resources.languages.messages import Text, _
from rag_resources.store.notes import FilterValues, filter_values
from rag_resources.store.search import any_visible


def unmet_filters(
    database: Reads, tenant: str, filters: RetrievalFilters, deadline: Deadline
) -> tuple[Text, ...]:
    """Return a sentence for each filter that no note meets; one if no note meets all of them.

    Args:
        database: Where the notes are.
        tenant: The notes' tenant.
        filters: The question's filters.
        deadline: The question's deadline.

    Returns:
        Nothing if some note meets all of them.

    Raises:
        RagError: The database cannot be read in time.
    """
    with database.snapshot(deadline) as connection:
        if _meets(connection, tenant, filters):
            return ()
        unmet = [own for own in _each(filters) if not _meets(connection, tenant, own)]
        if not unmet:
            return (_("Each filter is met by some note, but no note meets all of them.").format(),)
        known = filter_values(connection)
        return tuple(_told(own, known) + _meant_type(connection, tenant, own) for own in unmet)


def _meets(connection: Connection, tenant: str, filters: RetrievalFilters) -> bool:
    """Whether any note meets filters."""
    return any_visible(connection, tenant=tenant, filters=filters)


def _each(filters: RetrievalFilters) -> Iterator[RetrievalFilters]:
    """Yield each condition as filters of its own."""
    if filters.source:
        yield RetrievalFilters(source=filters.source)
    if filters.date_source:
        yield RetrievalFilters(date_source=filters.date_source)
    for tag in filters.tags:
        yield RetrievalFilters(tags=(tag,))
    if filters.note_ids:
        yield RetrievalFilters(note_ids=filters.note_ids)
    if filters.created_from or filters.created_until:
        yield RetrievalFilters(
            created_from=filters.created_from, created_until=filters.created_until
        )
    for key, value in filters.metadata.items():
        yield RetrievalFilters(metadata={key: value})


def _meant_type(connection: Connection, tenant: str, condition: RetrievalFilters) -> str:
    """Say how to write a metadata value if notes have it as a text and not a number, or reverse."""
    meant = _with_other_type(condition)
    if meant is None or not _meets(connection, tenant, meant):
        return ""
    [value] = meant.metadata.values()
    template = (
        _(" As a text there is: {value}, with the quotes.")
        if isinstance(value, str)
        else _(" Without quotes there is: {value}.")
    )
    return template.format(value=json.dumps(value, ensure_ascii=False))


def _with_other_type(condition: RetrievalFilters) -> RetrievalFilters | None:
    """Return a condition with the number, truth value or null of its text, or the text of these."""
    for key, value in condition.metadata.items():
        try:
            other = json.loads(value) if isinstance(value, str) else json.dumps(value)
            return RetrievalFilters(metadata={key: other})
        except (ValueError, RecursionError):
            return None
    return None


def _not_with(key: str, value: Any) -> Text:
    return _("No note has “{key}” with the value “{value}”.").format(key=key, value=shown(value))


def _told(condition: RetrievalFilters, known: FilterValues) -> Text:
    if condition.source:
        told = _("No note comes from the source “{value}”.").format(value=condition.source)
        return told + _(" They come from: {sources}.").format(sources=", ".join(known.sources))
    if condition.tags:
        (tag,) = condition.tags
        return _("No note has the tag “{value}”.").format(value=tag)
    if condition.note_ids:
        return _("No note has that id.").format()
    if condition.date_source:
        return _not_with("date_source", condition.date_source)
    if condition.metadata:
        [(key, value)] = condition.metadata.items()
        if key in known.lists:
            return _(
                "“{key}” is a list in some notes, and filters take no lists but texts, numbers, "
                "true, false or null. To filter by each value, write them into “tags”."
            ).format(key=key)
        if key in known.keys:
            return _not_with(key, value)
        return _("No note has “{key}” in its metadata.").format(key=key)
    if known.first is None or known.last is None:
        return _("There is no note.").format()
    return _("No note is of those dates: there are notes from {first} to {last}.").format(
        first=f"{known.first:%Y-%m-%d}", last=f"{known.last:%Y-%m-%d}"
    )
