"""`rag golden …`: golden questions. This module handles files of them.

Single questions are in `cli.golden_entries`.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rag_resources.cli import golden_entries
from rag_resources.cli.golden_entries import Reason, warn_of_source, warn_of_withdrawn
from rag_resources.cli.output import JsonOption, conclude, note, say, warn, write_json
from rag_resources.cli.session import application
from rag_resources.cli.usage import command, group
from rag_resources.languages.messages import _

if TYPE_CHECKING:
    from rag_resources.core.golden_changes import GoldenChange, Operation

app = group("golden", _("The golden questions: files, one by one, and their review."))

GoldenFile = Annotated[Path, typer.Argument(metavar="FICHERO", help=_("JSON file of questions."))]


@command(
    app,
    "import",
    _(
        "Imports a file of questions, whole or not at all. Deletes those that the same file "
        "brought before and no longer has. What a person wrote stays as it is."
    ),
)
def import_file(
    path: GoldenFile,
    replace: Annotated[
        bool,
        typer.Option(
            "--replace",
            help=_(
                "Makes the questions those of the file, also those that a person wrote; what was "
                "there stays in the history."
            ),
        ),
    ] = False,
    reason: Reason = "",
    as_json: JsonOption = False,
) -> None:
    """Import a whole file or nothing of it."""
    from rag_resources.core.golden_changes import Operation

    with application() as opened:
        imported = opened.golden.import_file(path, replace=replace, reason=reason)
        others = {
            "kept": [entry.query for entry in imported.kept],
            "leftOut": imported.deleted,
            "orphaned": imported.orphaned,
            "drafts": imported.drafts,
            "unknownKeys": imported.unknown,
        }
        counts = _tell_changes(
            _(
                "{path}: new questions: {inserted}; changed: {updated}; deleted: {deleted}. The "
                "others were like that already."
            ),
            imported.changes,
            others if as_json else None,
            path=path,
        )
        for message, queries in (
            (
                _(
                    "Questions that a person wrote or changed and the file states differently: "
                    "{count}. They stay as they are; with “rag golden import FILE --replace” the "
                    "file rules."
                ),
                [entry.query for entry in imported.kept],
            ),
            (
                _(
                    "Questions of the file that a person deleted: {count}. They do not come back; "
                    "restore them with “rag golden restore DATE”, or with “rag golden import FILE "
                    "--replace”."
                ),
                imported.deleted,
            ),
            (
                _(
                    "Questions of the file that name deleted notes: {count}. They are not "
                    "imported; those that were there stay as they were. Restore the note with "
                    "“rag notes restore NOTE”, or change the question."
                ),
                imported.orphaned,
            ),
        ):
            if queries:
                note(message.format(count=len(queries)))
                for query in queries:
                    note(f"  - {query}")
        if imported.drafts:
            note(
                _(
                    "Draft questions, without an answer yet: {count}. They do not count until "
                    "somebody writes it in “expectedAnswer”."
                ).format(count=len(imported.drafts))
            )
        _tell_unknown(imported.unknown)
        if counts[Operation.DELETE]:
            note(_("What was there is in the history: get it back with “rag golden restore DATE”."))
        warn_of_source(opened.golden.source, imported=path)
        warn_of_withdrawn(opened.golden)


@command(app, "restore", _("Makes the questions what they were at a moment of their history."))
def restore(
    moment: Annotated[
        str,
        typer.Argument(
            metavar="MOMENTO",
            help=_(
                "A date (UTC; without a time the start of the day), or the hash of an evaluation."
            ),
        ),
    ],
    as_json: JsonOption = False,
) -> None:
    """Restore the questions as they were at an earlier moment."""
    with application() as opened:
        changes = opened.golden.restore(moment)
        _tell_changes(
            _(
                "The questions are as in “{moment}”: brought back {inserted}; changed {updated}; "
                "deleted {deleted}."
            ),
            changes,
            {} if as_json else None,
            moment=moment,
        )
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


@command(app, "export", _("Writes the questions to a JSON file."))
def export_file(
    path: GoldenFile,
    moment: Annotated[
        str | None,
        typer.Option(
            "--at",
            metavar="MOMENTO",
            help=_(
                "A date (UTC; without a time the start of the day), or the hash of an evaluation."
            ),
        ),
    ] = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help=_(
                "Replaces the file if it exists with other content; the former one is kept with "
                "the suffix .anterior."
            ),
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Write the questions to a file."""
    with application() as opened:
        count = opened.golden.export(path, moment=moment, force=force)
    message = _("Questions written to {path}: {count}.").format(count=count, path=path)
    conclude(message, {"path": str(path), "questions": count}, as_json=as_json)


@command(app, "validate", _("Checks a file of questions against the notes, and stores nothing."))
def validate_file(path: GoldenFile, as_json: JsonOption = False) -> None:
    """Check a file against the stored notes."""
    with application() as opened:
        read = opened.golden.read_file(path)
    message = _("Valid questions in {path}: {count}.").format(count=len(read.entries), path=path)
    counts = {
        "questions": len(read.entries),
        "drafts": len(read.drafts),
        "orphaned": read.orphaned,
        "unknownKeys": read.unknown,
    }
    conclude(message, counts, as_json=as_json)
    _tell_unknown(read.unknown)
    if read.orphaned:
        note(
            _(
                "Questions of the file that name deleted notes: {count}. They are not imported; "
                "those that were there stay as they were. Restore the note with “rag notes "
                "restore NOTE”, or change the question."
            ).format(count=len(read.orphaned))
        )
        for query in read.orphaned:
            note(f"  - {query}")
    if read.drafts:
        note(
            _(
                "Draft questions, without an answer yet: {count}. They do not count until "
                "somebody writes it in “expectedAnswer”."
            ).format(count=len(read.drafts))
        )


@command(
    app,
    "drift",
    _(
        "Says which questions should be reviewed: notes gone or edited, lost places and mix of "
        "categories."
    ),
)
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


command(app, "list", _("Lists the questions."))(golden_entries.list_entries)
command(app, "show", _("Shows a question with everything that is known of it."))(
    golden_entries.show
)
command(
    app,
    "add",
    _(
        "Add a question: with its note (--note), answer (--answer), category (--category) and "
        "difficulty (--difficulty)."
    ),
)(golden_entries.add)
command(app, "update", _("Changes the given fields of a question."))(golden_entries.update)
command(app, "delete", _("Deletes questions, after asking."))(golden_entries.delete)
