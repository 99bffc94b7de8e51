"""What is said of the notes that no month processes."""

from datetime import UTC

from rag_resources.core.messages import Message
from rag_resources.core.texts import Text, joined
from rag_resources.core.types import TimeWindow
from rag_resources.settings import EARLIEST_MONTH
from rag_resources.store.notes import OutsideNotes


def outside_in_words(outside: OutsideNotes, window: TimeWindow) -> Text:
    """Say which notes no month processes, and which setting or correction brings them into one.

    Args:
        outside: At least one note.
        window: All months.
    """
    said: list[str] = [
        Message.OUTSIDE_NOTES.format(
            count=outside.count,
            first=f"{outside.earliest:%Y-%m-%d}",
            last=f"{outside.latest:%Y-%m-%d}",
            examples=", ".join(outside.examples),
        )
    ]
    if outside.earliest < window.start:
        month = f"{outside.earliest.astimezone(UTC):%Y-%m}"
        is_ancient = month < EARLIEST_MONTH
        said.append(
            Message.OUTSIDE_ANCIENT if is_ancient else Message.OUTSIDE_EARLY.format(month=month)
        )
    if outside.latest >= window.end:
        said.append(Message.OUTSIDE_FUTURE)
    return joined("", said)
