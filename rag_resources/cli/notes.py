"""`rag notes …`: the stored notes, deleting and restoring them. Storing them is `cli.ingest`."""

import json
import sys
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rag_resources.cli.output import (
    JsonOption,
    clean,
    conclude,
    confirmed,
    note,
    picked,
    print_table,
    progress,
    say,
    warn,
    write_json,
)
from rag_resources.cli.session import application
from rag_resources.cli.usage import command, group
from rag_resources.core.errors import InvalidParameterError, RagError
from rag_resources.languages.labels import label
from rag_resources.languages.messages import _

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from rag_resources.application import Application
    from rag_resources.store.notes import StoredNote
    from rag_resources.store.tombstones import Tombstone

SHOWN_NOTES = 50
SHOWN_QUESTIONS = 10

app = group("notes", _("The stored notes: see, delete and restore them."))

_IN_OTHER_ROWS = ("createdAtOrigin", "expiresAt")

Name = Annotated[
    str, typer.Argument(metavar="NOTA", help=_("A note, by its identifier or that of its source."))
]
Names = Annotated[
    list[str],
    typer.Argument(metavar="NOTA...", help=_("A note, by its identifier or that of its source.")),
]
Limit = Annotated[
    int | None, typer.Option("--limit", min=1, metavar="N", help=_("How many at most."))
]


@command(app, "list", _("Lists the notes, the newest first."))
def list_notes(
    deleted: Annotated[
        bool,
        typer.Option("--deleted", help=_("The deleted ones, instead of those that are there.")),
    ] = False,
    limit: Limit = None,
    as_json: JsonOption = False,
) -> None:
    """List the notes, or the deleted ones."""
    most = limit if as_json or limit else SHOWN_NOTES
    with application() as opened:
        if deleted:
            tombstones, total = opened.notes.deleted(limit=most)
            rows = [_deleted_json(each) for each in tombstones]
            cells = [_deleted_cells(each, opened.notes.deleted_days) for each in tombstones]
        else:
            notes, total = opened.notes.newest(limit=most)
            rows = [_json(each) for each in notes]
            cells = [_cells(each) for each in notes]
    if as_json:
        write_json({"notes": rows, "total": total})
        return
    columns = (
        (_("Note"), _("Deleted on"), _("Reason"), _("Restorable"))
        if deleted
        else (_("Note"), _("Date"), _("Title"), _("Source"))
    )
    if rows:
        print_table(columns, cells, prose=True, named=True)
    message = _("{shown} of {count} are shown.")
    say(message.format(count=total, shown=len(rows)))


@command(app, "show", _("Shows a note, or its deletion, with everything that is known of it."))
def show(name: Name, as_json: JsonOption = False) -> None:
    """Show everything known about a note, or about its deletion."""
    from rag_resources.store.notes import StoredNote

    with application() as opened:
        found = opened.notes.find(name)
        questions = opened.notes.questions_naming([found.note_id])
        asked = list(questions.values())
        days = opened.notes.deleted_days
        if isinstance(found, StoredNote):
            content = opened.notes.content(found.note_id).content
            shown = _json(found) | {"goldenQuestions": asked, "content": content}
        else:
            shown = _deleted_json(found) | {"goldenQuestions": asked}
            content = found.note["content"] if found.note else ""
    if as_json:
        write_json(shown)
        return
    rows = _rows(found) if isinstance(found, StoredNote) else _deleted_rows(found, days)
    if questions:
        rows.append((_("Questions that name it"), "\n".join(asked)))
    print_table((_("Field"), _("Value")), rows, prose=True)
    if content:
        say(content)


@command(
    app,
    "delete",
    _(
        "Deletes notes, after asking. They stop being found at once, and their source does not "
        "bring them back while their content is the same."
    ),
)
def delete(
    names: Names,
    reason: Annotated[
        str,
        typer.Option(
            "--reason",
            metavar="MOTIVO",
            help=_("Why they are deleted; it is stored with the deletion."),
        ),
    ] = "",
    yes: Annotated[bool, typer.Option("--yes", help=_("Deletes without asking."))] = False,
    as_json: JsonOption = False,
) -> None:
    """Delete notes after confirmation by a person."""
    from rag_resources.store.notes import StoredNote

    with application() as opened:
        found = [opened.notes.find(name) for name in names]
        stored = {each.note_id: each for each in found if isinstance(each, StoredNote)}
        for gone in found:
            if not isinstance(gone, StoredNote):
                note(_("“{name}” was deleted already.").format(name=gone.external_id))
        questions = opened.notes.questions_naming(stored)
        if stored and not (yes or _confirmed(list(stored.values()), len(questions))):
            raise InvalidParameterError(
                _("Nothing was deleted. To delete without being asked, add --yes.")
            )
        deleted = opened.notes.delete(list(stored), reason=clean(reason))
        days = opened.notes.deleted_days
    told = {
        "deleted": deleted,
        "restorableDays": days,
        "goldenQuestions": list(questions.values()),
        "goldenIds": list(questions),
    }
    conclude(_("Notes deleted: {count}.").format(count=len(deleted)), told, as_json=as_json)
    if deleted and not as_json:
        say(
            _(
                "They can be restored for {days} days: “rag notes list --deleted” and “rag notes "
                "restore NOTE”."
            ).format(days=days)
        )
    if questions:
        warn(
            _(
                "Golden questions that lose a relevant note: {count}. Change them with “rag "
                "golden update ID”, delete them with “rag golden delete ID” or bring the note "
                "back with “rag notes restore NOTE”; “rag golden drift” remembers them."
            ).format(count=len(questions))
        )
        for golden_id, question in list(questions.items())[:SHOWN_QUESTIONS]:
            warn(f"  - {question} ({golden_id})")


@command(
    app,
    "restore",
    _(
        "Restores deleted notes. Of an expired one nothing is kept: it comes back when its source "
        "brings it."
    ),
)
def restore(names: Names, as_json: JsonOption = False) -> None:
    """Restore deleted notes."""
    from rag_resources.ingestion.deletion import Restoration

    messages = {
        Restoration.RESTORED: _("“{name}” is among the notes again."),
        Restoration.EXPIRED: _(
            "“{name}” is among the notes again, but it has expired: questions do not find it, and "
            "it will be deleted for good. To keep it, change or remove its expiry in the file and "
            "run “rag run”."
        ),
        Restoration.LIFTED: _(
            "Nothing of “{name}” was kept; now its source may bring it: “rag ingest” or “make run”."
        ),
        Restoration.NOT_DELETED: _("“{name}” is not deleted."),
    }
    with application() as opened:
        restored = opened.notes.restore(names)
        if not as_json:
            for each in restored:
                say(messages[each.outcome].format(name=each.external_id))
        back = [each.note_id for each in restored if each.outcome is Restoration.RESTORED]
        is_indexed = bool(back) and _indexed_again(opened, back)
    if as_json:
        outcomes = [picked(each, "external_id", "outcome") for each in restored]
        write_json({"notes": outcomes, "indexed": is_indexed})
    elif back:
        say(
            _("Indexed again: it is found as before the deletion.")
            if is_indexed
            else _(
                "A configuration that searches words finds it already: whole, and it may come "
                "further down than before. By its chunks and by its meaning it is found once it "
                "is indexed again. Until then an evaluation may count it as not found. Next step: "
                "“rag run” (or “make run”); with the Dagster UI open it is indexed by itself."
            )
        )


@command(
    app,
    "export",
    _(
        "Writes the notes and deletions to a JSONL file, which “rag ingest” reads into another "
        "database."
    ),
)
def export(
    path: Annotated[
        Path, typer.Argument(metavar="FICHERO", help=_("The file; “-” writes to the output."))
    ],
    as_json: JsonOption = False,
) -> None:
    """Write the notes and deletions for another database."""
    counts: Counter[str] = Counter()
    with application() as opened:
        if str(path) == "-":
            sys.stdout.buffer.writelines(opened.notes.export_lines(counts))
            return
        counts = opened.notes.export(path)
    told = {"notes": counts["note"], "deletions": counts["deletion"] + counts["documentDeletion"]}
    message = _(
        "Written to {path}: notes: {notes}; deletions: {deletions}. Questions (“rag golden "
        "export”) go apart, and so do documents, which are read again."
    ).format(path=path, **told)
    conclude(message, {"path": str(path), **told}, as_json=as_json)


def _indexed_again(opened: "Application", note_ids: "Sequence[UUID]") -> bool:
    """Index restored notes, and return whether that is done; they are restored in any case."""
    try:
        with progress(_("Indexing again")):
            return opened.indexing.index_like_their_months(note_ids)
    except RagError as error:
        warn(_("It cannot be indexed now: {reason}").format(reason=error.message))
        return False


def _confirmed(notes: "Sequence[StoredNote]", questions: int) -> bool:
    about = [f"{each.external_id}  {each.title}" for each in notes]
    if questions:
        about.append(_("Golden questions that name them: {count}.").format(count=questions))
    return confirmed(_("To delete: {count}. Go on? (y/N)").format(count=len(notes)), about=about)


def _cells(stored: "StoredNote") -> tuple[str, ...]:
    return stored.external_id, f"{stored.created_at:%Y-%m-%d}", stored.title, stored.source


def _deleted_cells(tombstone: "Tombstone", days: int) -> tuple[str, ...]:
    return (
        tombstone.external_id,
        _moment(tombstone.deleted_at),
        _why(tombstone),
        _until(tombstone, days) if tombstone.note else _("no"),
    )


def _until(tombstone: "Tombstone", days: int) -> str:
    return _("until {until:%Y-%m-%d}").format(
        until=tombstone.deleted_at.astimezone(UTC) + timedelta(days=days)
    )


def _why(tombstone: "Tombstone") -> str:
    from rag_resources.store.tombstones import Deletion

    if tombstone.kind is Deletion.PURGED:
        return _("expired")
    return tombstone.reason or _("no reason written")


def _rows(stored: "StoredNote") -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = [
        (_("Note"), stored.external_id),
        (_("Id"), str(stored.note_id)),
        (_("Source"), stored.source),
        (_("Title"), stored.title),
        (_("Created"), _created(stored)),
        (_("Updated"), _moment(stored.updated_at)),
        (_("Tags"), ", ".join(stored.tags)),
    ]
    if metadata := _metadata(stored):
        rows.append((_("Metadata"), metadata))
    if stored.expires_at:
        rows.append((_("Expires"), _moment(stored.expires_at)))
    return rows


def _metadata(stored: "StoredNote") -> str:
    """Return the further fields of a note, one a line; what other rows say is left out."""
    own = {key: value for key, value in stored.metadata.items() if key not in _IN_OTHER_ROWS}
    return "\n".join(
        f"{key}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for key, value in own.items()
    )


def _created(stored: "StoredNote") -> str:
    """Return the date of a note, and where the date is from if the source states none."""
    origin = stored.metadata.get("createdAtOrigin")
    if origin is None:
        return _moment(stored.created_at)
    return f"{_moment(stored.created_at)}, {label(f'date_from_{origin}')}"


def _deleted_rows(tombstone: "Tombstone", days: int) -> list[tuple[str, str]]:
    note_, deleted_at, why, kept = _deleted_cells(tombstone, days)
    return [
        (_("Note"), note_),
        (_("Id"), str(tombstone.note_id)),
        (_("Source"), tombstone.source),
        (_("Deleted on"), deleted_at),
        (_("Reason"), why),
        (_("Restorable"), kept),
    ]


def _json(stored: "StoredNote") -> dict[str, Any]:
    return picked(
        stored,
        *("source", "external_id", "title", "created_at", "updated_at", "expires_at", "chunked"),
        *("tags", "metadata"),
        id="note_id",
    )


def _deleted_json(tombstone: "Tombstone") -> dict[str, Any]:
    return picked(
        tombstone,
        *("source", "external_id", "content_sha256", "kind", "reason", "deleted_at", "note"),
        id="note_id",
    )


def _moment(moment: "datetime") -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
