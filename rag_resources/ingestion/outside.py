"""What is said of the notes that no month processes."""

from datetime import UTC

from rag_resources.core.types import TimeWindow
from rag_resources.languages.messages import Text, _, joined
from rag_resources.settings import EARLIEST_MONTH
from rag_resources.store.notes import OutsideNotes


def outside_in_words(outside: OutsideNotes, window: TimeWindow) -> Text:
    """Say which notes no month processes, and which setting or correction brings them into one.

    Args:
        outside: At least one note.
        window: All months.
    """
    said: list[str] = [
        _(
            "Notes that no month processes: {count} ({first} … {last}). They are found, but "
            "whole: {examples}."
        ).format(
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
            _(
                " Those from before 1900 seem to be a mistake: correct the date in their file, "
                "and the next run takes the note to its month."
            )
            if is_ancient
            else _(" To include the earlier ones, set FIRST_MONTH={month}.").format(month=month)
        )
    if outside.latest >= window.end:
        said.append(
            _(
                " If the date of the future ones is wrong, correct it in their file: the next run "
                "takes the note to its month."
            )
        )
    return joined("", said)
