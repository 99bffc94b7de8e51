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
from rag_resources.core.messages import Message

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from rag_resources.application import Application
    from rag_resources.store.notes import StoredNote
    from rag_resources.store.tombstones import Tombstone

SHOWN_NOTES = 50
SHOWN_QUESTIONS = 10

app = group("notes", Message.HELP_NOTES)

_IN_OTHER_ROWS = ("createdAtOrigin", "expiresAt")

Name = Annotated[str, typer.Argument(metavar="NOTA", help=Message.HELP_NOTES_NAME)]
Names = Annotated[list[str], typer.Argument(metavar="NOTA...", help=Message.HELP_NOTES_NAME)]
Limit = Annotated[
    int | None, typer.Option("--limit", min=1, metavar="N", help=Message.HELP_NOTES_LIMIT)
]


@command(app, "list", Message.HELP_NOTES_LIST)
def list_notes(
    deleted: Annotated[bool, typer.Option("--deleted", help=Message.HELP_NOTES_DELETED)] = False,
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
        (Message.COLUMN_NOTE, Message.COLUMN_DELETED_AT, Message.COLUMN_REASON, Message.COLUMN_KEPT)
        if deleted
        else (Message.COLUMN_NOTE, Message.COLUMN_DATE, Message.COLUMN_TITLE, Message.COLUMN_SOURCE)
    )
    if rows:
        print_table(columns, cells, prose=True, named=True)
    message = Message.NOTES_DELETED_LISTED if deleted else Message.NOTES_LISTED
    say(message.format(count=total, shown=len(rows)))


@command(app, "show", Message.HELP_NOTES_SHOW)
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
        rows.append((Message.COLUMN_QUESTIONS, "\n".join(asked)))
    print_table((Message.COLUMN_FIELD, Message.COLUMN_VALUE), rows, prose=True)
    if content:
        say(content)


@command(app, "delete", Message.HELP_NOTES_DELETE)
def delete(
    names: Names,
    reason: Annotated[
        str, typer.Option("--reason", metavar="MOTIVO", help=Message.HELP_NOTES_REASON)
    ] = "",
    yes: Annotated[bool, typer.Option("--yes", help=Message.HELP_NOTES_YES)] = False,
    as_json: JsonOption = False,
) -> None:
    """Delete notes after confirmation by a person."""
    from rag_resources.store.notes import StoredNote

    with application() as opened:
        found = [opened.notes.find(name) for name in names]
        stored = {each.note_id: each for each in found if isinstance(each, StoredNote)}
        for gone in found:
            if not isinstance(gone, StoredNote):
                note(Message.NOTE_ALREADY_DELETED.format(name=gone.external_id))
        questions = opened.notes.questions_naming(stored)
        if stored and not (yes or _confirmed(list(stored.values()), len(questions))):
            raise InvalidParameterError(Message.NOTES_DELETE_UNCONFIRMED)
        deleted = opened.notes.delete(list(stored), reason=clean(reason))
        days = opened.notes.deleted_days
    told = {
        "deleted": deleted,
        "restorableDays": days,
        "goldenQuestions": list(questions.values()),
        "goldenIds": list(questions),
    }
    conclude(Message.NOTES_DELETED.format(count=len(deleted)), told, as_json=as_json)
    if deleted and not as_json:
        say(Message.NOTES_RECOVER.format(days=days))
    if questions:
        warn(Message.NOTES_DELETED_GOLDEN.format(count=len(questions)))
        for golden_id, question in list(questions.items())[:SHOWN_QUESTIONS]:
            warn(f"  - {question} ({golden_id})")


@command(app, "restore", Message.HELP_NOTES_RESTORE)
def restore(names: Names, as_json: JsonOption = False) -> None:
    """Restore deleted notes."""
    from rag_resources.ingestion.deletion import Restoration

    messages = {
        Restoration.RESTORED: Message.NOTE_RESTORED,
        Restoration.EXPIRED: Message.NOTE_RESTORED_EXPIRED,
        Restoration.LIFTED: Message.NOTE_LIFTED,
        Restoration.NOT_DELETED: Message.NOTE_NOT_DELETED,
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
        say(Message.NOTE_RESTORED_INDEXED if is_indexed else Message.NOTE_RESTORED_NEXT)


@command(app, "export", Message.HELP_NOTES_EXPORT)
def export(
    path: Annotated[Path, typer.Argument(metavar="FICHERO", help=Message.HELP_NOTES_EXPORT_FILE)],
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
    message = Message.NOTES_EXPORTED.format(path=path, **told)
    conclude(message, {"path": str(path), **told}, as_json=as_json)


def _indexed_again(opened: "Application", note_ids: "Sequence[UUID]") -> bool:
    """Index restored notes, and return whether that is done; they are restored in any case."""
    try:
        with progress(Message.NOTES_INDEXED_AGAIN):
            return opened.indexing.index_like_their_months(note_ids)
    except RagError as error:
        warn(Message.NOTES_NOT_INDEXED.format(reason=error.message))
        return False


def _confirmed(notes: "Sequence[StoredNote]", questions: int) -> bool:
    about = [f"{each.external_id}  {each.title}" for each in notes]
    if questions:
        about.append(Message.NOTES_NAMED_BY.format(count=questions))
    return confirmed(Message.NOTES_CONFIRM.format(count=len(notes)), about=about)


def _cells(stored: "StoredNote") -> tuple[str, ...]:
    return stored.external_id, f"{stored.created_at:%Y-%m-%d}", stored.title, stored.source


def _deleted_cells(tombstone: "Tombstone", days: int) -> tuple[str, ...]:
    return (
        tombstone.external_id,
        _moment(tombstone.deleted_at),
        _why(tombstone),
        _until(tombstone, days) if tombstone.note else Message.NOTE_NOT_KEPT,
    )


def _until(tombstone: "Tombstone", days: int) -> str:
    return Message.NOTE_KEPT.format(
        until=tombstone.deleted_at.astimezone(UTC) + timedelta(days=days)
    )


def _why(tombstone: "Tombstone") -> str:
    from rag_resources.store.tombstones import Deletion

    if tombstone.kind is Deletion.PURGED:
        return Message.NOTE_EXPIRED
    return tombstone.reason or Message.NOTE_DELETED


def _rows(stored: "StoredNote") -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = [
        (Message.COLUMN_NOTE, stored.external_id),
        (Message.COLUMN_ID, str(stored.note_id)),
        (Message.COLUMN_SOURCE, stored.source),
        (Message.COLUMN_TITLE, stored.title),
        (Message.COLUMN_CREATED, _created(stored)),
        (Message.COLUMN_UPDATED, _moment(stored.updated_at)),
        (Message.COLUMN_TAGS, ", ".join(stored.tags)),
    ]
    if metadata := _metadata(stored):
        rows.append((Message.COLUMN_METADATA, metadata))
    if stored.expires_at:
        rows.append((Message.COLUMN_EXPIRES_AT, _moment(stored.expires_at)))
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
    is_named = origin == "file_name"
    message = Message.UNDATED_FROM_NAME if is_named else Message.UNDATED_FROM_CHANGE
    return message.format(date=stored.created_at.astimezone(UTC))


def _deleted_rows(tombstone: "Tombstone", days: int) -> list[tuple[str, str]]:
    note_, deleted_at, why, kept = _deleted_cells(tombstone, days)
    return [
        (Message.COLUMN_NOTE, note_),
        (Message.COLUMN_ID, str(tombstone.note_id)),
        (Message.COLUMN_SOURCE, tombstone.source),
        (Message.COLUMN_DELETED_AT, deleted_at),
        (Message.COLUMN_REASON, why),
        (Message.COLUMN_KEPT, kept),
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
