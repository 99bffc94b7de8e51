"""Shows what was read of a folder of notes, and what not: `rag init`, `rag ingest`, `rag run`."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from rag_resources.cli.output import print_table, say, warn
from rag_resources.languages.labels import label
from rag_resources.languages.messages import _

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from rag_resources.ingestion.survey import Survey

SHOWN = 20
MENDED_FIRST = 5
"""Rejected and undated notes that a survey names: it is to fit on a screen."""


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

    say(
        _("Notes of {path}: {notes} would be read and {rejected} rejected.").format(
            path=folder, notes=found.notes, rejected=found.rejected_count
        )
    )
    documents = Counter({name: count for name, count in found.other.items() if name in SUFFIXES})
    rows = [
        (_("Files of notes"), _counted(found.read)),
        (_("Documents, which are read if DOCUMENTS_SOURCE is their folder"), _counted(documents)),
        (_("Other files, which are not read"), _counted(found.other - documents)),
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
    if found.rejected or found.undated or found.unclosed:
        say(_("To mend first (all of it: --json):"))
    show_rejected(found.rejected[:MENDED_FIRST], found.rejected_count)
    show_undated(found.undated[:MENDED_FIRST], len(found.undated))
    if found.unclosed:
        warn(
            _("Front matter that is not closed with “---” is read as text: {notes}.").format(
                notes=", ".join(found.unclosed[:MENDED_FIRST])
            )
        )


def show_rejected(rejected: "Sequence[_Rejected]", count: int) -> None:
    """Show the first rejected records with their reasons, and count the others."""
    rows = [(item.location, item.reason) for item in rejected[:SHOWN]]
    show_some((_("Where"), _("Reason")), rows, _("Rejected ({count})").format(count=count))


def show_unread(unread: "Sequence[_Rejected]") -> None:
    """Show some documents that could not be read, with their reasons."""
    show_some((_("Document"), _("Reason")), [(each.location, each.reason) for each in unread])


def show_undated(undated: "Sequence[Undated]", count: int) -> None:
    """Show the first notes without a date, and the date that each gets from its file."""
    rows = [(item.label, f"{item.created_at:%Y-%m-%d}") for item in undated[:SHOWN]]
    title = _("Without a date ({count}): they get that of their file.").format(count=count)
    show_some((_("Note"), _("Date that it gets")), rows, title)


def show_some(columns: "Sequence[str]", rows: "Sequence[Sequence[str]]", title: str = "") -> None:
    """Show the first rows of a table whose title counts them; nothing without rows."""
    if rows:
        print_table(columns, rows, title=title, prose=True)


def _counted(counts: Counter[str]) -> str:
    named = [f"{name or _('no suffix')} ({count})" for name, count in counts.most_common(SHOWN)]
    return ", ".join(named) or _("none found")


def _labelled(kind: str, counts: Counter[str]) -> str:
    named = [f"{label(f'{kind}_{name}')} ({count})" for name, count in (+counts).most_common()]
    return ", ".join(named) or _("none found")
