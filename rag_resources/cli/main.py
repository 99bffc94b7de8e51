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
    bench,
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
    migration,
    model,
    notes,
    promote,
    retrieve,
    server,
    status,
    tenant,
)
from rag_resources.cli.output import QuietOption, be_quiet, say
from rag_resources.cli.usage import command, group, passing_on, run_app
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


for _name, _run, _help in (
    ("init", init.init, _("Surveys a folder of notes, and writes .env and draft questions.")),
    ("run", server.run, _("The main job: ingests, indexes, evaluates and promotes.")),
    ("ui", server.ui, _("Opens the Dagster UI, with its daemon, until interrupted.")),
    ("up", server.up, _("Starts the embedded PostgreSQL, and brings the schema up to date.")),
    ("down", server.down, _("Stops the embedded PostgreSQL. The data are kept.")),
    ("status", status.status, _("Says what runs, what is stored and what serves.")),
    ("doctor", doctor.doctor, _("Checks the installation, and says what fails and what to do.")),
    ("ingest", ingest.ingest, _("Stores the notes of a folder or file; repeating it is safe.")),
    ("ask", ask.ask, _("Answers a question with sentences of your notes, each with its citation.")),
    ("feedback", feedback.feedback, _("Says whether an answer or citation is good or not.")),
    ("retrieve", retrieve.retrieve, _("Searches the passages that answer a question.")),
    ("evaluate", evaluate.evaluate, _("Asks all golden questions, and stores the metrics.")),
    ("calibrate", calibrate.calibrate, _("Measures how much confidence the results deserve.")),
    ("promote", promote.promote, _("Lets a configuration serve that passes the gate.")),
    ("rollback", promote.rollback, _("Goes back to the configuration that served before.")),
    ("compare", compare.compare, _("Compares two evaluations question by question.")),
    ("serve", server.serve, _("Serves the HTTP API until it is stopped.")),
    ("report", evaluate.report, _("Writes all evaluations to an HTML page.")),
    ("bench", bench.bench, _("Measures configurations on a public question set.")),
    ("experiment", experiment.experiment, _("Tries all configurations of a YAML file.")),
):
    command(app, _name, _help)(_run)
passing_on(
    app, "dagster", _("Runs Dagster's own command line with the instance of this RAG_HOME.")
)(server.dagster)
for _group in (notes, documents, golden, feedback, key, tenant, migration, model):
    app.add_typer(_group.app)


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
