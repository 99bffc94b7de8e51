"""`rag golden import|export|validate`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rag_resources.cli.output import say
from rag_resources.cli.session import application
from rag_resources.cli.usage import command, group
from rag_resources.core.errors import InvalidGoldenDatasetError
from rag_resources.core.messages import Message

if TYPE_CHECKING:
    from rag_resources.application import Application
    from rag_resources.core.golden import GoldenEntry

app = group("golden", Message.HELP_GOLDEN)

GoldenFile = Annotated[Path, typer.Argument(metavar="FICHERO", help=Message.HELP_GOLDEN_FILE)]


@command(app, "import", Message.HELP_GOLDEN_IMPORT)
def import_file(
    path: GoldenFile,
    merge: Annotated[bool, typer.Option("--merge", help=Message.HELP_MERGE)] = False,
) -> None:
    """Import a file, all of it or nothing."""
    from rag_resources.store.golden import write_golden

    with application() as opened:
        entries = _read(opened, path)
        with opened.database.transaction() as connection:
            write_golden(connection, entries, replace=not merge)
    message = Message.GOLDEN_MERGED if merge else Message.GOLDEN_IMPORTED
    say(message.format(count=len(entries), path=path))


@command(app, "export", Message.HELP_GOLDEN_EXPORT)
def export_file(path: GoldenFile) -> None:
    """Write the questions to a file."""
    from rag_resources.evaluation.golden_files import export_golden

    with application() as opened:
        count = export_golden(opened.database, path)
    say(Message.GOLDEN_EXPORTED.format(count=count, path=path))


@command(app, "validate", Message.HELP_GOLDEN_VALIDATE)
def validate_file(path: GoldenFile) -> None:
    """Check a file against the notes there are."""
    with application() as opened:
        entries = _read(opened, path)
    say(Message.GOLDEN_VALID.format(count=len(entries), path=path))


def _read(opened: "Application", path: Path) -> "list[GoldenEntry]":
    """Read a file; an empty one is an error, or importing it would delete everything."""
    from rag_resources.evaluation.golden_files import read_golden

    entries = read_golden(opened.database, path, tenant=opened.settings.tenant)
    if not entries:
        raise InvalidGoldenDatasetError(Message.GOLDEN_FILE_EMPTY.format(path=path), [])
    return entries
