"""`rag ingest`: stores notes and reports the outcome."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rag_resources.cli.output import (
    JsonOption,
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
    show_rejected,
    show_some,
    show_undated,
)
from rag_resources.core.errors import InvalidSourceError, MixedSourcesError
from rag_resources.languages.messages import _

if TYPE_CHECKING:
    from rag_resources.application.notes import Notes
    from rag_resources.ingestion.ingest import IngestReport
    from rag_resources.ingestion.mirror import MirrorReport


def ingest(
    path: Annotated[
        Path,
        typer.Argument(metavar="RUTA", help=_("Folder or file: Markdown or text, JSONL or CSV.")),
    ],
    source_name: Annotated[
        str | None,
        typer.Option(
            "--source-name",
            metavar="NOMBRE",
            help=_("Instead of {setting}.").format(setting="NOTES_SOURCE_NAME"),
        ),
    ] = None,
    mirrored: Annotated[
        bool,
        typer.Option(
            "--mirror",
            help=_(
                "The folder is the whole source: renamed files keep their notes, and those of "
                "files that are gone are deleted after MIRROR_GRACE days."
            ),
        ),
    ] = False,
    yes: Annotated[
        bool,
        typer.Option(
            "--yes", help=_("Mixes sources, and with --mirror lets many notes go, without asking.")
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Store the notes of a folder or file."""
    from rag_resources.ingestion.export import is_export
    from rag_resources.ingestion.sources import READERS, iter_source

    if is_export(path):
        _read_export(path, as_json=as_json)
        return
    records = iter_source(path)
    with application() as app:
        source = app.notes.source_of(path, name=source_name)
        if source_name is None and not yes:
            try:
                app.notes.require_unmixed(source)
            except MixedSourcesError as error:
                consented(error)
        followed = _mirror(app.notes, path, source, yes=yes) if mirrored else None
        with progress(_("Storing notes")) as advance:
            report = app.notes.ingest(
                records,
                source=source,
                root=path,
                copies=followed.copies if followed else None,
                progress=advance,
            )
    if as_json:
        mirror = (
            {
                "moved": [picked(each, "before", "now") for each in followed.moved],
                "copies": followed.copies,
                "missing": followed.missing,
                "deletedAbsent": followed.deleted,
            }
            if followed
            else {}
        )
        write_json({**_as_json(report, source), **mirror})
    elif report.by_month or report.rejected or report.left_out:
        _show(report, source)
    if not (report.by_month or report.left_out):
        raise InvalidSourceError(
            _(
                "There are no notes to read in {path} (rejected: {count}). Files {suffixes} are "
                "read."
            ).format(path=path, count=report.rejected_count, suffixes=" ".join(READERS)),
            path=str(path),
        )
    if not as_json:
        for sentence in [*(followed.sentences() if followed else ()), *report.sentences()]:
            note(sentence)
        if _changed_months(report):
            say(_("Next step: “rag run”."))


def _mirror(notes: "Notes", path: Path, source: str, *, yes: bool) -> "MirrorReport":
    """Let notes follow their files; ask if many of them are gone."""
    from rag_resources.ingestion.mirror import SourceShrankError

    try:
        return notes.mirror(path, source=source, may_shrink=yes)
    except SourceShrankError as error:
        consented(error)
        return notes.mirror(path, source=source, may_shrink=True)


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
    rejections = [picked(each, "location", "reason") for each in reading.rejected]
    message = _(
        "Read {path}: new notes: {notes}; new deletions: {deletions}; there before: {present}; "
        "rejected lines: {rejected}."
    ).format(path=path, **told)
    conclude(message, {**told, "rejections": rejections}, as_json=as_json)
    if not as_json:
        show_rejected(reading.rejected, reading.rejected_count)


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
    title = _("Deleted, and not brought back while their content is the same ({count})")
    show_some((_("Note"), _("Reason")), left_out, title.format(count=report.left_out_count))
    show_rejected(report.rejected, report.rejected_count)
    show_undated(report.undated, report.undated_count)


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
        "conflicts": report.conflicts,
    }
