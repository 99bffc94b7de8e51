"""The entry point: dispatches to the commands; shows errors in Spanish with an exit code.

Exit codes: 0 done, 1 failure, 2 bad input, 130 interrupted.
"""

import io
import logging
import sys
from collections.abc import Sequence
from itertools import takewhile
from typing import Annotated, NoReturn

import typer

from rag_resources.cli import (
    ask,
    calibrate,
    compare,
    doctor,
    documents,
    evaluate,
    experiment,
    feedback,
    golden,
    ingest,
    init,
    key,
    launch,
    migration,
    notes,
    promote,
    report,
    retrieve,
    server,
    status,
    tenant,
)
from rag_resources.cli.output import be_quiet, say
from rag_resources.cli.running import run_app
from rag_resources.cli.usage import command, group, passing_on
from rag_resources.core.messages import Message
from rag_resources.logs import log_to_stderr

app = group("rag", Message.HELP_RAG)


def _show_version(wanted: bool) -> None:
    if not wanted:
        return
    from rag_resources.database.schema import schema_version
    from rag_resources.packaged import product_version

    say(Message.CLI_VERSION.format(version=product_version(), schema=schema_version()))
    raise typer.Exit


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help=Message.HELP_DEBUG)] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help=Message.HELP_QUIET)] = False,
    version: Annotated[
        bool,
        typer.Option("--version", help=Message.HELP_VERSION, callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    """Accept the global options; `main` reads them itself, before anything can fail."""


command(app, "init", Message.HELP_INIT)(init.init)
command(app, "run", Message.HELP_RUN_COMMAND)(launch.run)
command(app, "ui", Message.HELP_UI_COMMAND)(launch.ui)
passing_on(app, "dagster", Message.HELP_DAGSTER)(launch.dagster)
command(app, "up", Message.HELP_UP)(server.up)
command(app, "down", Message.HELP_DOWN)(server.down)
command(app, "status", Message.HELP_STATUS)(status.status)
command(app, "doctor", Message.HELP_DOCTOR)(doctor.doctor)
command(app, "ingest", Message.HELP_INGEST)(ingest.ingest)
command(app, "ask", Message.HELP_ASK)(ask.ask)
command(app, "feedback", Message.HELP_FEEDBACK)(feedback.feedback)
command(app, "retrieve", Message.HELP_RETRIEVE)(retrieve.retrieve)
command(app, "evaluate", Message.HELP_EVALUATE)(evaluate.evaluate)
command(app, "calibrate", Message.HELP_CALIBRATE)(calibrate.calibrate)
command(app, "promote", Message.HELP_PROMOTE)(promote.promote)
command(app, "rollback", Message.HELP_ROLLBACK)(promote.rollback)
command(app, "compare", Message.HELP_COMPARE)(compare.compare)
command(app, "serve", Message.HELP_SERVE)(server.serve)
command(app, "report", Message.HELP_REPORT)(report.report)
command(app, "experiment", Message.HELP_EXPERIMENT)(experiment.experiment)
app.add_typer(notes.app)
app.add_typer(documents.app)
app.add_typer(golden.app)
app.add_typer(feedback.app)
app.add_typer(key.app)
app.add_typer(tenant.app)
app.add_typer(migration.app)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit.

    Args:
        arguments: Without the program's name; by default those of the process.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    options = set(takewhile(lambda word: word.startswith("-"), given))
    debug = "--debug" in options
    be_quiet(bool(options & {"--quiet", "-q"}))
    if not debug:  # logs are in English and not for users
        logging.basicConfig(handlers=[logging.NullHandler()])
    log_to_stderr(level=logging.DEBUG if debug else logging.CRITICAL)
    sys.exit(run_app(app, given, program="rag", debug=debug))
