"""`rag ingest`: stores notes and reports the outcome."""

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rag_resources.cli.output import (
    JsonOption,
    MixesOption,
    conclude,
    consented,
    note,
    picked,
    progress,
    say,
    write_json,
)
from rag_resources.cli.session import application
from rag_resources.cli.survey_report import (
    SHOWN,
    show_moved,
    show_rejected,
    show_some,
    show_undated,
)
from rag_resources.core.errors import InvalidSourceError, MixedSourcesError
from rag_resources.languages.messages import _

if TYPE_CHECKING:
    from rag_resources.application import Application
    from rag_resources.core.types import NoteRecord, RejectedRecord
    from rag_resources.ingestion.ingest import IngestReport

SourceName = Annotated[
    str | None,
    typer.Option(
        "--source-name",
        metavar="NOMBRE",
        help=_(
            "Name of the source, part of the identity of each note. By default NOTES_SOURCE_NAME."
        ),
    ),
]


def ingest(
    path: Annotated[
        Path,
        typer.Argument(metavar="RUTA", help=_("Folder or file: Markdown or text, JSONL or CSV.")),
    ],
    source_name: SourceName = None,
    yes: MixesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Store the notes of a folder or file."""
    from rag_resources.core.quoting import printable
    from rag_resources.ingestion.export import is_export
    from rag_resources.ingestion.sources import READERS, iter_source

    if is_export(path):
        _read_export(path, as_json=as_json)
        return
    records = iter_source(path)
    with application() as app:
        source = _source(app, path, source_name, mixes=yes)
        report = _store(app, records, source, path)
        first_month, is_read = app.notes.first_month, app.notes.is_read_by_runs(path, source)
        moved = app.notes.moved(path, source=source)
    if as_json:
        named = [picked(each, "before", "now") for each in moved]
        write_json({**_as_json(report, source), "moved": named})
    elif report.by_month or report.rejected or report.left_out:
        _show(report, source)
    if not (report.by_month or report.left_out):
        message = (
            _("No note was stored: all were rejected ({count}).")
            if report.rejected
            else _(
                "There is no note in {path}. Files {suffixes} are looked for, in subfolders, too; "
                "hidden ones are not."
            )
        )
        raise InvalidSourceError(
            message.format(
                count=report.rejected_count, path=printable(str(path)), suffixes=" ".join(READERS)
            ),
            path=str(path),
        )
    if not as_json:
        show_moved(moved)
        if absent := report.absent_besides(moved):
            note(absent)
        _advise(
            report,
            first_month,
            _(
                "Next step: “rag run” (or “make run”) chunks and indexes those months; while the "
                "Dagster UI is open (“rag ui”) they are indexed by themselves."
            )
            if is_read
            else _(
                "Next step: “NOTES_SOURCE= GOLDEN_SOURCE= rag run” (or “… make run”) chunks and "
                "indexes those months without reading any other folder; the other notes and the "
                "questions stay as they are. While the Dagster UI is open (“rag ui”) they are "
                "indexed by themselves."
            ),
        )


def _source(app: "Application", path: Path, name: str | None, *, mixes: bool) -> str:
    """Return the source of a path's notes; a person must name it or consent before it mixes."""
    source = app.notes.source_of(path, name=name)
    if name is None and not mixes:
        try:
            app.notes.require_unmixed(source)
        except MixedSourcesError as error:
            consented(error)
    return source


def _store(
    app: "Application", records: "Iterable[NoteRecord | RejectedRecord]", source: str, path: Path
) -> "IngestReport":
    with progress(_("Storing notes")) as advance:
        return app.notes.ingest(records, source=source, root=path, progress=advance)


def _read_export(path: Path, *, as_json: bool) -> None:
    """Store the notes and deletions that `rag notes export` wrote."""
    with application() as app, progress(_("Storing notes")) as advance:
        reading = app.notes.read_export(path, progress=advance)
    told = {
        "notes": reading.inserted["note"],
        "deletions": reading.inserted.total() - reading.inserted["note"],
        "present": reading.present.total(),
        "rejected": reading.rejected_count,
    }
    rejections = [
        {"location": rejected.location, "reason": rejected.reason} for rejected in reading.rejected
    ]
    message = _(
        "Read {path}: new notes: {notes}; new deletions: {deletions}; there before: {present}; "
        "rejected lines: {rejected}."
    ).format(path=path, **told)
    conclude(message, {**told, "rejections": rejections}, as_json=as_json)
    if not as_json:
        show_rejected(reading.rejected, reading.rejected_count)
        say(
            _(
                "Next step: “rag run” (or “make run”) chunks and indexes those months; while the "
                "Dagster UI is open (“rag ui”) they are indexed by themselves."
            )
        )


def _counts(report: "IngestReport") -> dict[str, int]:
    from rag_resources.store.notes import Upsert

    return {outcome.value: report.count(outcome) for outcome in Upsert}


def _changed_months(report: "IngestReport") -> list[str]:
    from rag_resources.store.notes import Upsert

    return sorted(
        month
        for month, counts in report.by_month.items()
        if counts[Upsert.INSERTED] or counts[Upsert.UPDATED]
    )


def _show(report: "IngestReport", source: str) -> None:
    say(
        _(
            "Notes of “{source}”: {inserted} new, {updated} updated, {unchanged} unchanged, "
            "{rejected} rejected."
        ).format(source=source, rejected=report.rejected_count, **_counts(report))
    )
    left_out = [(item.external_id, item.reason) for item in report.left_out[:SHOWN]]
    columns = (_("Note"), _("Reason"))
    show_some(
        columns,
        left_out,
        _("Deleted, and not brought back while their content is the same ({count})"),
        _("… and {count} more; all with their reason, in --json."),
        report.left_out_count,
    )
    if report.left_out:
        say(_("To bring one back: “rag notes restore NOTE”."))
    show_rejected(report.rejected, report.rejected_count)
    show_undated(report.undated, report.undated_count)


def _advise(report: "IngestReport", first_month: str, next_step: str) -> None:
    months = _changed_months(report)
    if months:
        say(_("Months with changes: {months}.").format(months=", ".join(months)))
    before = [month for month in months if month < first_month]
    if before:
        note(
            _(
                "There are notes from before FIRST_MONTH ({first}) that no month processes: set "
                "FIRST_MONTH={month}."
            ).format(first=first_month, month=before[0])
        )
    this_month = f"{datetime.now(UTC):%Y-%m}"
    after = [month for month in months if month > this_month]
    if after:
        note(
            _(
                "There are notes with a future date ({months}) that no month processes yet: if it "
                "is wrong, correct it in the file; the next run takes the note to its month."
            ).format(months=", ".join(after))
        )
    if months:
        say(next_step)


def _as_json(report: "IngestReport", source: str) -> dict[str, Any]:
    return {
        "source": source,
        **_counts(report),
        "rejected": report.rejected_count,
        "changedMonths": _changed_months(report),
        "rejections": [picked(each, "location", "reason") for each in report.rejected],
        "undated": [picked(each, "location", "created_at") for each in report.undated],
        "leftOut": report.left_out_count,
        "deletedNotes": [picked(each, "external_id", "reason") for each in report.left_out],
        "absent": report.absent_count,
        "absentNotes": report.absent,
    }
