"""Shows the survey of a folder of notes, for people and as JSON."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from rag_resources.cli.env_file import assignment
from rag_resources.cli.output import picked, print_table, say, warn
from rag_resources.languages.labels import label
from rag_resources.languages.messages import _

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from rag_resources.ingestion.ingest import MovedNote
    from rag_resources.ingestion.survey import Survey
    from rag_resources.languages.messages import Text

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

    say(
        _("Notes of {path}: {notes} would be read and {rejected} rejected.").format(
            path=folder, notes=found.notes, rejected=found.rejected_count
        )
    )
    documents = {name: count for name, count in found.other.items() if name in SUFFIXES}
    rows = [
        (_("Files of notes"), _counted(found.read)),
        (
            _("Documents, which are read if DOCUMENTS_SOURCE is their folder"),
            _counted(Counter(documents)),
        ),
        (_("Other files, which are not read"), _counted(found.other - Counter(documents))),
    ]
    if found.notes:
        days = [each.created_at for each in found.openings]
        dates = _("{first:%Y-%m-%d} to {last:%Y-%m-%d} (months: {months})").format(
            first=min(days), last=max(days), months=len(found.months)
        )
        rows += [
            (_("Dates"), dates),
            (_("Where the dates are from"), _labelled("date_from", found.dates)),
            (_("Left out of the text, by notes"), _labelled("left_out", found.left_out)),
            (_("Other fields (metadata: they filter, but do not answer)"), _counted(found.fields)),
            (_("Languages"), _counted(found.languages)),
        ]
    print_table((_("Field"), _("Value")), rows, prose=True)
    show_rejected(found.rejected, found.rejected_count)
    show_undated(found.undated, len(found.undated))
    if found.unclosed:
        warn(
            _(
                "They begin with “---” and a field but do not close it, so that their header is "
                "read as text: {notes}. Close it with another line “---”."
            ).format(notes=_first(found.unclosed))
        )
    if found.long_gap:
        before, after = found.long_gap
        count = found.count_until(before)
        warn(
            _(
                "Between {before} and {after} there is no note, and each run goes over those "
                "months too, so it takes longer. With “--first-month {after}” it does not; the "
                "earlier notes ({count}) are stored and found, but whole."
            ).format(before=before, after=after, count=count)
        )
    if found.future:
        warn(
            _(
                "Notes with a date in the future: {count}. No run processes them until their "
                "month comes: they are found, but whole. If the date is wrong, correct it in its "
                "file."
            ).format(count=found.future)
        )
    for name in found.fields:
        if name in KNOWN_FIELDS:
            warn(
                _(
                    "The field “{name}” becomes metadata, because the same record has another one "
                    "with the same meaning."
                ).format(name=name)
            )
    if found.languages and found.languages["es"] * 2 < found.languages.total():
        warn(
            _(
                "Most of the notes do not seem to be Spanish. They are read all the same, but "
                "sentences and words are treated by the rules of Spanish."
            )
        )


def show_rejected(rejected: "Sequence[_Rejected]", count: int, *, shown: int = SHOWN) -> None:
    """Show the first rejected records with their reasons, and count the others."""
    rows = [(item.location, item.reason) for item in rejected[:shown]]
    columns = (_("Where"), _("Reason"))
    show_some(
        columns,
        rows,
        _("Rejected ({count})"),
        _("… and {count} more; all with their reason, in --json."),
        count,
    )


def show_unread(unread: "Sequence[_Rejected]") -> None:
    """Show some documents that could not be read, with their reasons."""
    if unread:
        columns = (_("Document"), _("Reason"))
        print_table(columns, [(item.location, item.reason) for item in unread], prose=True)


def show_undated(undated: "Sequence[Undated]", count: int, *, shown: int = SHOWN) -> None:
    """Show the first notes without a date, and the date that each gets from its file."""
    columns = (_("Note"), _("Date that it gets"))
    rows = [
        (item.label, _("{date:%Y-%m-%d}, when the file was changed").format(date=item.created_at))
        for item in undated[:shown]
    ]
    show_some(
        columns,
        rows,
        _(
            "Without a date ({count}): they get that of their file. To give the right one, write "
            "“date: YYYY-MM-DD” in the front matter, or fill in the field “date” (in CSV and "
            "JSONL)."
        ),
        _("… and {count} more."),
        count,
    )


def show_moved(moved: "Sequence[MovedNote]") -> None:
    """Show the notes whose file was moved or renamed, with the name that each has now."""
    columns = (_("Before"), _("Now"))
    rows = [(item.before, item.now) for item in moved[:SHOWN]]
    show_some(
        columns,
        rows,
        _(
            "Moved or renamed, it seems: they are still stored under both names ({count}). Delete "
            "the former with “rag notes delete NOTE”."
        ),
        _("… and {count} more."),
        len(moved),
    )


def show_some(
    columns: "Sequence[str]",
    rows: "Sequence[Sequence[str]]",
    title: "Text",
    more: "Text",
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
    named = [f"{name or _('no suffix')} ({count})" for name, count in counts.most_common(SHOWN)]
    return ", ".join(named) or _("none found")


def _labelled(kind: str, counts: Counter[str]) -> str:
    named = [f"{label(f'{kind}_{name}')} ({count})" for name, count in (+counts).most_common()]
    return ", ".join(named) or _("none found")


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
        "dates": dict(found.dates),
        "leftOut": dict(+found.left_out),
        "rejected": found.rejected_count,
        "rejections": [picked(each, "location", "reason") for each in found.rejected],
        "undated": [picked(each, "location", "created_at") for each in found.undated],
        "settings": values,
        "env": [assignment(name, value) for name, value in values.items()],
        "written": written,
    }
