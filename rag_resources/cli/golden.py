"""`rag golden …`: the golden questions. Files of them are here.

Questions one by one are `cli.golden_entries`; their history and review, `cli.golden_review`.
"""

from pathlib import Path
from typing import Annotated

import typer

from rag_resources.cli import golden_entries, golden_review
from rag_resources.cli.golden_entries import warn_of_source
from rag_resources.cli.output import note, say
from rag_resources.cli.session import application
from rag_resources.cli.usage import command, group
from rag_resources.core.messages import Message

app = group("golden", Message.HELP_GOLDEN)

GoldenFile = Annotated[Path, typer.Argument(metavar="FICHERO", help=Message.HELP_GOLDEN_FILE)]


@command(app, "import", Message.HELP_GOLDEN_IMPORT)
def import_file(
    path: GoldenFile,
    merge: Annotated[bool, typer.Option("--merge", help=Message.HELP_MERGE)] = False,
) -> None:
    """Import a file, all of it or nothing."""
    from rag_resources.core.golden_changes import Operation, count_changes
    from rag_resources.golden.files import import_golden

    with application() as opened:
        changes = import_golden(
            opened.database, path, tenant=opened.settings.tenant, replace=not merge
        )
        counts = count_changes(changes)
        message = Message.GOLDEN_MERGED if merge else Message.GOLDEN_IMPORTED
        say(
            message.format(
                path=path,
                inserted=counts[Operation.INSERT],
                updated=counts[Operation.UPDATE],
                deleted=counts[Operation.DELETE],
            )
        )
        if counts[Operation.DELETE]:
            note(Message.GOLDEN_RECOVER)
        warn_of_source(opened.settings, imported=path)


@command(app, "export", Message.HELP_GOLDEN_EXPORT)
def export_file(
    path: GoldenFile,
    moment: Annotated[
        str | None, typer.Option("--at", metavar="MOMENTO", help=Message.HELP_GOLDEN_AT)
    ] = None,
) -> None:
    """Write the questions to a file."""
    from rag_resources.golden.files import export_golden

    with application() as opened:
        count = export_golden(opened.database, path, moment=moment)
    say(Message.GOLDEN_EXPORTED.format(count=count, path=path))


@command(app, "validate", Message.HELP_GOLDEN_VALIDATE)
def validate_file(path: GoldenFile) -> None:
    """Check a file against the notes there are."""
    from rag_resources.golden.files import read_golden

    with application() as opened:
        entries = read_golden(opened.database, path, tenant=opened.settings.tenant)
    say(Message.GOLDEN_VALID.format(count=len(entries), path=path))


command(app, "list", Message.HELP_GOLDEN_LIST)(golden_entries.list_entries)
command(app, "show", Message.HELP_GOLDEN_SHOW)(golden_entries.show)
command(app, "add", Message.HELP_GOLDEN_ADD)(golden_entries.add)
command(app, "update", Message.HELP_GOLDEN_UPDATE)(golden_entries.update)
command(app, "delete", Message.HELP_GOLDEN_DELETE)(golden_entries.delete)
command(app, "history", Message.HELP_GOLDEN_HISTORY)(golden_review.history)
command(app, "drift", Message.HELP_GOLDEN_DRIFT)(golden_review.drift)
command(app, "suggest", Message.HELP_GOLDEN_SUGGEST)(golden_review.suggest)
