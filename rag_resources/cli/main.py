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
from rag_resources.cli.output import QuietOption, be_quiet, say
from rag_resources.cli.running import run_app
from rag_resources.cli.usage import command, group, passing_on
from rag_resources.languages.messages import _
from rag_resources.logs import log_to_stderr

app = group(
    "rag",
    _(
        "Prepares, asks and evaluates retrieval over your notes. The state lives in RAG_HOME; "
        "with DATABASE_URL your own PostgreSQL is used."
    ),
)


def _show_version(wanted: bool) -> None:
    if not wanted:
        return
    from rag_resources.database.schema import schema_version
    from rag_resources.packaged import product_version

    say(
        _("brain-sync-rag {version} (schema {schema})").format(
            version=product_version(), schema=schema_version()
        )
    )
    raise typer.Exit


@app.callback()
def options(
    debug: Annotated[
        bool,
        typer.Option(
            "--debug", help=_("Shows the whole error if something fails. Goes before the command.")
        ),
    ] = False,
    quiet: QuietOption = False,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            help=_("Shows the version of the program and of the schema that it uses, and ends."),
            callback=_show_version,
            is_eager=True,
        ),
    ] = False,
) -> None:
    """Accept the global options; `main` reads them itself, before anything can fail."""


command(
    app,
    "init",
    _(
        "Looks at a folder of notes, says what would be read and what not, and writes a commented "
        ".env and a file of questions to fill in. It stores no notes and starts nothing."
    ),
)(init.init)
command(
    app,
    "run",
    _(
        "The main job: ingests, indexes, evaluates and promotes; what is done is not repeated. "
        "The same as “make run”."
    ),
)(launch.run)
command(
    app, "ui", _("Opens the Dagster UI, with its daemon, until interrupted. The same as “make ui”.")
)(launch.ui)
passing_on(
    app,
    "dagster",
    _(
        "Runs Dagster's own command line with the database and the instance of this RAG_HOME: "
        "“rag dagster job execute …”, “rag dagster asset materialize …”."
    ),
)(launch.dagster)
command(
    app,
    "up",
    _(
        "Starts the embedded PostgreSQL and brings the schema up to date. With DATABASE_URL only "
        "the latter."
    ),
)(server.up)
command(app, "down", _("Stops the embedded PostgreSQL. The data are kept."))(server.down)
command(
    app,
    "status",
    _(
        "Says what runs, how much is in the database and which configuration serves. It starts "
        "and changes nothing."
    ),
)(status.status)
command(
    app,
    "doctor",
    _(
        "Checks the installation, the settings, the database and the model servers, and says what "
        "fails and what to do. It starts and changes nothing."
    ),
)(doctor.doctor)
command(
    app,
    "ingest",
    _(
        "Reads notes from a folder or a file and stores them. Repeating it duplicates nothing: a "
        "note is known by its source and its identifier."
    ),
)(ingest.ingest)
command(app, "ask", _("Answers a question with sentences of your notes, each with its citation."))(
    ask.ask
)
command(app, "feedback", _("Says whether an answer, or one of its citations, is good or not."))(
    feedback.feedback
)
command(
    app,
    "retrieve",
    _("Searches the passages that answer a question, with the configuration that serves."),
)(retrieve.retrieve)
command(
    app, "evaluate", _("Runs all golden questions through a configuration and stores the metrics.")
)(evaluate.evaluate)
command(
    app,
    "calibrate",
    _("Measures on the golden questions how much confidence the results deserve, and stores it."),
)(calibrate.calibrate)
command(
    app,
    "promote",
    _(
        "Lets a configuration serve that passes the gate, with an evaluation of what is searched "
        "now; evaluates it first if need be."
    ),
)(promote.promote)
command(
    app,
    "rollback",
    _("Withdraws the configuration that serves and goes back to the one before, with its model."),
)(promote.rollback)
command(
    app,
    "compare",
    _(
        "Compares two evaluations question by question: which is better, by how much, which "
        "questions change and what was different."
    ),
)(compare.compare)
command(
    app, "serve", _("Serves the HTTP API (API_HOST, API_PORT, API_WORKERS) until it is stopped.")
)(server.serve)
command(
    app,
    "report",
    _(
        "Writes the evaluation report, an HTML page that opens in any browser without a "
        "connection: configurations, comparison with what serves, history and questions not found."
    ),
)(report.report)
command(
    app,
    "experiment",
    _(
        "Tries all configurations of a YAML file, chooses the best with some questions and judges "
        "it with others."
    ),
)(experiment.experiment)
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
