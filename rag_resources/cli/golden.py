"""`rag golden …`: golden questions. This module handles files of them.

Single questions are in `cli.golden_entries`.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rag_resources.cli import golden_entries
from rag_resources.cli.golden_entries import warn_of_source
from rag_resources.cli.output import JsonOption, conclude, note, say, warn, write_json
from rag_resources.cli.session import application
from rag_resources.cli.usage import command, group
from rag_resources.core.messages import Message

if TYPE_CHECKING:
    from rag_resources.core.golden_changes import GoldenChange, Operation

app = group("golden", Message.HELP_GOLDEN)

GoldenFile = Annotated[Path, typer.Argument(metavar="FICHERO", help=Message.HELP_GOLDEN_FILE)]


@command(app, "import", Message.HELP_GOLDEN_IMPORT)
def import_file(
    path: GoldenFile,
    replace: Annotated[bool, typer.Option("--replace", help=Message.HELP_GOLDEN_REPLACE)] = False,
    as_json: JsonOption = False,
) -> None:
    """Import a whole file or nothing of it."""
    from rag_resources.core.golden_changes import Operation

    with application() as opened:
        imported = opened.golden.import_file(path, replace=replace)
        others = {
            "kept": [entry.query for entry in imported.kept],
            "leftOut": imported.deleted,
            "orphaned": imported.orphaned,
            "drafts": imported.drafts,
            "unknownKeys": imported.unknown,
        }
        counts = _tell_changes(
            Message.GOLDEN_IMPORTED, imported.changes, others if as_json else None, path=path
        )
        for message, queries in (
            (Message.GOLDEN_KEPT, [entry.query for entry in imported.kept]),
            (Message.GOLDEN_LEFT_OUT, imported.deleted),
            (Message.GOLDEN_ORPHANED, imported.orphaned),
        ):
            if queries:
                note(message.format(count=len(queries)))
                for query in queries:
                    note(f"  - {query}")
        if imported.drafts:
            note(Message.GOLDEN_DRAFTS.format(count=len(imported.drafts)))
        _tell_unknown(imported.unknown)
        if counts[Operation.DELETE]:
            note(Message.GOLDEN_RECOVER)
        warn_of_source(opened.golden.source, imported=path)


@command(app, "restore", Message.HELP_GOLDEN_RESTORE)
def restore(
    moment: Annotated[str, typer.Argument(metavar="MOMENTO", help=Message.HELP_GOLDEN_MOMENT)],
    as_json: JsonOption = False,
) -> None:
    """Restore the questions as they were at an earlier moment."""
    with application() as opened:
        changes = opened.golden.restore(moment)
        _tell_changes(Message.GOLDEN_RESTORED, changes, {} if as_json else None, moment=moment)
        warn_of_source(opened.golden.source)


def _tell_changes(
    message: str,
    changes: "Sequence[GoldenChange]",
    others: dict[str, Any] | None,
    **values: object,
) -> "Counter[Operation]":
    """Write the changes: as a sentence, or as JSON together with `others`, if there are any."""
    from rag_resources.core.golden_changes import Operation, count_changes

    counts = count_changes(changes)
    told = {
        "inserted": counts[Operation.INSERT],
        "updated": counts[Operation.UPDATE],
        "deleted": counts[Operation.DELETE],
    }
    conclude(
        message.format(**told, **values), {**told, **(others or {})}, as_json=others is not None
    )
    return counts


@command(app, "export", Message.HELP_GOLDEN_EXPORT)
def export_file(
    path: GoldenFile,
    moment: Annotated[
        str | None, typer.Option("--at", metavar="MOMENTO", help=Message.HELP_GOLDEN_AT)
    ] = None,
    force: Annotated[bool, typer.Option("--force", help=Message.HELP_GOLDEN_FORCE)] = False,
    as_json: JsonOption = False,
) -> None:
    """Write the questions to a file."""
    with application() as opened:
        count = opened.golden.export(path, moment=moment, force=force)
    message = Message.GOLDEN_EXPORTED.format(count=count, path=path)
    conclude(message, {"path": str(path), "questions": count}, as_json=as_json)


@command(app, "validate", Message.HELP_GOLDEN_VALIDATE)
def validate_file(path: GoldenFile, as_json: JsonOption = False) -> None:
    """Check a file against the stored notes."""
    with application() as opened:
        read = opened.golden.read_file(path)
    message = Message.GOLDEN_VALID.format(count=len(read.entries), path=path)
    counts = {
        "questions": len(read.entries),
        "drafts": len(read.drafts),
        "orphaned": read.orphaned,
        "unknownKeys": read.unknown,
    }
    conclude(message, counts, as_json=as_json)
    _tell_unknown(read.unknown)
    if read.orphaned:
        note(Message.GOLDEN_ORPHANED.format(count=len(read.orphaned)))
        for query in read.orphaned:
            note(f"  - {query}")
    if read.drafts:
        note(Message.GOLDEN_DRAFTS.format(count=len(read.drafts)))


@command(app, "drift", Message.HELP_GOLDEN_DRIFT)
def drift(as_json: JsonOption = False) -> None:
    """List the questions that need review."""
    with application() as opened:
        found = opened.golden.drift()
    if as_json:
        write_json(found.to_json())
        return
    for finding in found.findings:
        say(f"- {finding}")
    say(found.summary)


def _tell_unknown(unknown: "Sequence[str]") -> None:
    for problem in unknown:
        warn(problem)


command(app, "list", Message.HELP_GOLDEN_LIST)(golden_entries.list_entries)
command(app, "show", Message.HELP_GOLDEN_SHOW)(golden_entries.show)
command(app, "add", Message.HELP_GOLDEN_ADD)(golden_entries.add)
command(app, "update", Message.HELP_GOLDEN_UPDATE)(golden_entries.update)
command(app, "delete", Message.HELP_GOLDEN_DELETE)(golden_entries.delete)
