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
    SHOWN,
    JsonOption,
    LimitOption,
    ReasonOption,
    YesOption,
    clean,
    conclude,
    note,
    picked,
    print_table,
    progress,
    require_consent,
    say,
    show_list,
    warn,
    write_json,
)
from rag_resources.cli.session import application
from rag_resources.cli.usage import command, group
from rag_resources.core.errors import RagError
from rag_resources.languages.labels import label
from rag_resources.languages.messages import _

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from rag_resources.application import Application
    from rag_resources.store.notes import StoredNote
    from rag_resources.store.tombstones import Tombstone

app = group("notes", _("The stored notes: see, delete and restore them."))

Name = Annotated[
    str, typer.Argument(metavar="NOTA", help=_("A note, by its identifier or that of its source."))
]
Names = Annotated[
    list[str],
    typer.Argument(metavar="NOTA...", help=_("A note, by its identifier or that of its source.")),
]


@command(app, "list", _("Lists the notes, the newest first."))
def list_notes(
    deleted: Annotated[bool, typer.Option("--deleted", help=_("Lists the deleted ones."))] = False,
    limit: LimitOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the notes, or the deleted ones."""
    most = limit if as_json or limit else SHOWN
    columns = (_("Note"), _("Date"), _("Title"), _("Source"))
    with application() as opened:
        if deleted:
            tombstones, total = opened.notes.deleted(limit=most)
            shown = [_deleted_json(each) for each in tombstones]
            columns = (_("Note"), _("Deleted on"), _("Reason"), _("Restorable"))
            cells = [_deleted_cells(each, opened.notes.deleted_days) for each in tombstones]
        else:
            notes, total = opened.notes.newest(limit=most)
            shown = [_json(each) for each in notes]
            cells = [
                (each.external_id, f"{each.created_at:%Y-%m-%d}", each.title, each.source)
                for each in notes
            ]
    if as_json:
        write_json({"notes": shown, "total": total})
    else:
        show_list(columns, cells, total)


@command(app, "show", _("Shows everything that is known of it."))
def show(name: Name, as_json: JsonOption = False) -> None:
    """Show everything known about a note, or about its deletion."""
    from rag_resources.store.notes import StoredNote

    with application() as opened:
        found = opened.notes.find(name)
        asked = list(opened.notes.questions_naming([found.note_id]).values())
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
    if asked:
        rows.append((_("Questions that name it"), "\n".join(asked)))
    print_table((_("Field"), _("Value")), rows, prose=True)
    if content:
        say(content)


@command(app, "delete", _("Deletes notes; their source does not bring them back unchanged."))
def delete(
    names: Names, reason: ReasonOption = "", yes: YesOption = False, as_json: JsonOption = False
) -> None:
    """Delete notes after confirmation by a person."""
    from rag_resources.store.notes import StoredNote

    with application() as opened:
        found = [opened.notes.find(name) for name in names]
        stored = {each.note_id: each for each in found if isinstance(each, StoredNote)}
        for gone in found:
            if not isinstance(gone, StoredNote):
                note(_("“{name}”: there is nothing to do.").format(name=gone.external_id))
        questions = opened.notes.questions_naming(stored)
        if stored:
            about = [f"{each.external_id}  {each.title}" for each in stored.values()]
            question = _("To delete: {count}. Go on? (y/N)").format(count=len(stored))
            require_consent(question, yes=yes, about=about)
        deleted = opened.notes.delete(list(stored), reason=clean(reason))
        days = opened.notes.deleted_days
    result = {
        "deleted": deleted,
        "restorableDays": days,
        "goldenQuestions": list(questions.values()),
        "goldenIds": list(questions),
    }
    message = _(
        "Notes deleted: {count}. For {days} days “rag notes restore NOTE” brings them back."
    ).format(count=len(deleted), days=days)
    conclude(message, result, as_json=as_json)
    if questions:
        warn(
            _(
                "Golden questions that lose a relevant note: {count}. Change or delete them: “rag "
                "golden drift”."
            ).format(count=len(questions))
        )


@command(app, "restore", _("Restores deleted notes; of an expired one nothing is kept."))
def restore(names: Names, as_json: JsonOption = False) -> None:
    """Restore deleted notes."""
    from rag_resources.ingestion.deletion import Restoration

    messages = {
        Restoration.RESTORED: _("“{name}” is among the notes again."),
        Restoration.EXPIRED: _(
            "“{name}” is among the notes again, but it has expired: questions do not find it."
        ),
        Restoration.LIFTED: _("Nothing of “{name}” was kept; now its source may bring it."),
        Restoration.NOT_DELETED: _("“{name}”: there is nothing to do."),
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
            else _("Its words find it already; “rag run” indexes it again.")
        )


@command(app, "export", _("Writes notes and deletions to a JSONL file for “rag ingest”."))
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
    message = _("Written to {path}: notes: {notes}; deletions: {deletions}.").format(
        path=path, **told
    )
    conclude(message, {"path": path, **told}, as_json=as_json)


def _indexed_again(opened: "Application", note_ids: "Sequence[UUID]") -> bool:
    """Index restored notes, and return whether that is done; they are restored in any case."""
    try:
        with progress(_("Indexing again")):
            return opened.indexing.index_like_their_months(note_ids)
    except RagError as error:
        warn(_("It cannot be indexed now: {reason}").format(reason=error.message))
        return False


def _deleted_cells(tombstone: "Tombstone", days: int) -> tuple[str, ...]:
    from rag_resources.store.tombstones import Deletion

    until = tombstone.deleted_at.astimezone(UTC) + timedelta(days=days)
    return (
        tombstone.external_id,
        _moment(tombstone.deleted_at),
        _("expired") if tombstone.kind is Deletion.PURGED else tombstone.reason,
        _("until {until:%Y-%m-%d}").format(until=until) if tombstone.note else _("no"),
    )


def _rows(stored: "StoredNote") -> list[tuple[str, str]]:
    origin = stored.date_source
    created = _moment(stored.created_at)
    rows: list[tuple[str, str]] = [
        (_("Note"), stored.external_id),
        (_("Id"), str(stored.note_id)),
        (_("Source"), stored.source),
        (_("Title"), stored.title),
        (_("Created"), f"{created}, {label(f'date_from_{origin}')}" if origin else created),
        (_("Updated"), _moment(stored.updated_at)),
        (_("Tags"), ", ".join(stored.tags)),
        (_("Expires"), _moment(stored.expires_at) if stored.expires_at else _("no")),
    ]
    return rows + [
        (key, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        for key, value in stored.metadata.items()
        if key != "expiresAt"
    ]


def _deleted_rows(tombstone: "Tombstone", days: int) -> list[tuple[str, str]]:
    fields = (_("Note"), _("Deleted on"), _("Reason"), _("Restorable"))
    return [
        *zip(fields, _deleted_cells(tombstone, days), strict=True),
        (_("Id"), str(tombstone.note_id)),
        (_("Source"), tombstone.source),
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
