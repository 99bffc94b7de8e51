"""Says which filters no note meets, if a question found nothing."""

import json
from collections.abc import Iterator
from shlex import quote

from rag_resources.core.deadline import Deadline
from rag_resources.core.filters import RetrievalFilters
from rag_resources.core.messages import Message
from rag_resources.core.quoting import shown
from rag_resources.core.texts import Text
from rag_resources.database.pool import Connection
from rag_resources.database.readers import Reads
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
            return (Message.FILTERS_TOGETHER.format(),)
        known = filter_values(connection)
        return tuple(_told(own, known) + _meant_type(connection, tenant, own) for own in unmet)


def _meets(connection: Connection, tenant: str, filters: RetrievalFilters) -> bool:
    """Whether any note meets filters."""
    return any_visible(connection, tenant=tenant, filters=filters)


def _each(filters: RetrievalFilters) -> Iterator[RetrievalFilters]:
    """Yield each condition as filters of its own."""
    if filters.source:
        yield RetrievalFilters(source=filters.source)
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
    [(key, value)] = meant.metadata.items()
    written = json.dumps(value, ensure_ascii=False)
    as_text = isinstance(value, str)
    template = Message.FILTER_MEANT_TEXT if as_text else Message.FILTER_MEANT_NO_TEXT
    return template.format(value=written, option=quote(f"{key}={written}"))


def _with_other_type(condition: RetrievalFilters) -> RetrievalFilters | None:
    """Return a condition with the number, truth value or null of its text, or the text of these."""
    for key, value in condition.metadata.items():
        try:
            other = json.loads(value) if isinstance(value, str) else json.dumps(value)
            return RetrievalFilters(metadata={key: other})
        except (ValueError, RecursionError):
            return None
    return None


def _told(condition: RetrievalFilters, known: FilterValues) -> Text:
    if condition.source:
        told = Message.FILTER_NO_SOURCE.format(value=condition.source)
        return told + Message.FILTER_SOURCES.format(sources=", ".join(known.sources))
    if condition.tags:
        (tag,) = condition.tags
        return Message.FILTER_NO_TAG.format(value=tag)
    if condition.note_ids:
        return Message.FILTER_NO_NOTE.format()
    if condition.metadata:
        [(key, value)] = condition.metadata.items()
        if key in known.lists:
            return Message.FILTER_LIST.format(key=key)
        if key in known.keys:
            return Message.FILTER_NO_VALUE.format(key=key, value=shown(value))
        return Message.FILTER_NO_KEY.format(key=key)
    if known.first is None or known.last is None:
        return Message.FILTER_NO_NOTES.format()
    return Message.FILTER_NO_PERIOD.format(
        first=f"{known.first:%Y-%m-%d}", last=f"{known.last:%Y-%m-%d}"
    )
