"""Shows the survey of a folder of notes, for people and as JSON."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from rag_resources.cli.env_file import assignment
from rag_resources.cli.output import picked, print_table, say, warn
from rag_resources.core.messages import Message

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from rag_resources.core.texts import Template
    from rag_resources.ingestion.moved import MovedNote
    from rag_resources.ingestion.survey import Survey

SHOWN = 20


class _Rejected(Protocol):
    """A record or document that was not read: where it is, and why."""

    @property
    def location(self) -> str:
        """File, or file and line."""

    @property
    def reason(self) -> str:
        """The reason, in Spanish."""


class Undated(Protocol):
    """A note without a date."""

    @property
    def label(self) -> str:
        """The note's name for people, with its line if it is one of many in a file."""

    @property
    def created_at(self) -> "datetime":
        """The date that it gets."""


def show_survey(folder: Path, found: "Survey") -> None:
    """Show which records of a folder would be read, which not and why, and their dates."""
    from rag_resources.documents.media_types import SUFFIXES
    from rag_resources.ingestion.records import KNOWN_FIELDS

    say(Message.INIT_TITLE.format(path=folder, notes=found.notes, rejected=found.rejected_count))
    documents = {name: count for name, count in found.other.items() if name in SUFFIXES}
    rows = [
        (Message.INIT_FORMATS, _counted(found.read)),
        (Message.INIT_DOCUMENT_FILES, _counted(Counter(documents))),
        (Message.INIT_OTHER, _counted(found.other - Counter(documents))),
    ]
    if found.notes:
        days = [each.created_at for each in found.openings]
        dates = Message.INIT_DATES_RANGE.format(
            first=min(days), last=max(days), months=len(found.months)
        )
        rows += [
            (Message.INIT_DATES, dates),
            (Message.INIT_UNDATED, str(len(found.undated))),
            (Message.INIT_FIELDS, _counted(found.fields)),
            (Message.INIT_LANGUAGES, _counted(found.languages)),
        ]
    print_table((Message.COLUMN_FIELD, Message.COLUMN_VALUE), rows, prose=True)
    show_rejected(found.rejected, found.rejected_count)
    show_undated(found.undated, len(found.undated))
    if found.unclosed:
        warn(Message.INIT_UNCLOSED.format(notes=_first(found.unclosed)))
    if found.long_gap:
        before, after = found.long_gap
        count = found.count_until(before)
        warn(Message.INIT_LONG_GAP.format(before=before, after=after, count=count))
    if found.future:
        warn(Message.INIT_FUTURE.format(count=found.future))
    for name in found.fields:
        if name in KNOWN_FIELDS:
            warn(Message.INIT_DOUBLED.format(name=name))
    if found.languages and found.languages["es"] * 2 < found.languages.total():
        warn(Message.INIT_LANGUAGE_OTHER)


def show_rejected(rejected: "Sequence[_Rejected]", count: int, *, shown: int = SHOWN) -> None:
    """Show the first rejected records with their reasons, and count the others."""
    rows = [(item.location, item.reason) for item in rejected[:shown]]
    columns = (Message.COLUMN_WHERE, Message.COLUMN_REASON)
    show_some(columns, rows, Message.REJECTED_TITLE, Message.REJECTED_MORE, count)


def show_unread(unread: "Sequence[_Rejected]") -> None:
    """Show some documents that could not be read, with their reasons."""
    if unread:
        columns = (Message.COLUMN_DOCUMENT, Message.COLUMN_REASON)
        print_table(columns, [(item.location, item.reason) for item in unread], prose=True)


def show_undated(undated: "Sequence[Undated]", count: int, *, shown: int = SHOWN) -> None:
    """Show the first notes without a date, and the date that each gets from its file."""
    columns = (Message.COLUMN_NOTE, Message.COLUMN_GIVEN_DATE)
    rows = [
        (item.label, Message.UNDATED_FROM_CHANGE.format(date=item.created_at))
        for item in undated[:shown]
    ]
    show_some(columns, rows, Message.UNDATED_TITLE, Message.UNDATED_MORE, count)


def show_moved(moved: "Sequence[MovedNote]") -> None:
    """Show the notes whose file was moved or renamed, with the name that each has now."""
    columns = (Message.COLUMN_MOVED_FROM, Message.COLUMN_MOVED_TO)
    rows = [(item.before, item.now) for item in moved[:SHOWN]]
    show_some(columns, rows, Message.MOVED_TITLE, Message.UNDATED_MORE, len(moved))


def show_some(
    columns: "Sequence[str]",
    rows: "Sequence[Sequence[str]]",
    title: "Template",
    more: "Template",
    count: int,
) -> None:
    """Show the first rows of a table, and count the others; nothing without rows."""
    if not rows:
        return
    print_table(columns, rows, title=title.format(count=count), prose=True)
    if count > len(rows):
        say(more.format(count=count - len(rows)))


def _first(names: "Sequence[str]") -> str:
    return ", ".join([*names[:SHOWN], *(["…"] if len(names) > SHOWN else [])])


def _counted(counts: Counter[str]) -> str:
    named = [
        f"{name or Message.INIT_NO_SUFFIX} ({count})" for name, count in counts.most_common(SHOWN)
    ]
    return ", ".join(named) or Message.INIT_NONE


def survey_json(
    folder: Path, found: "Survey", values: dict[str, str], written: list[Path]
) -> dict[str, Any]:
    """Return a survey, the settings made from it and the files written, as JSON."""
    return {
        "folder": folder,
        "notes": found.notes,
        "files": dict(found.read),
        "otherFiles": dict(found.other),
        "months": dict(sorted(found.months.items())),
        "fields": dict(found.fields),
        "languages": dict(found.languages),
        "rejected": found.rejected_count,
        "rejections": [picked(each, "location", "reason") for each in found.rejected],
        "undated": [picked(each, "location", "created_at") for each in found.undated],
        "settings": values,
        "env": [assignment(name, value) for name, value in values.items()],
        "written": written,
    }
