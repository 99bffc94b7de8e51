"""`rag report`: all evaluations on one page."""

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from rag_resources.cli.output import JsonOption, conclude, working
from rag_resources.cli.session import application
from rag_resources.languages.messages import _

OutputOption = Annotated[
    Path | None,
    typer.Option(
        "--output",
        metavar="FICHERO.html",
        help=_("File to write. By default reports/evaluation.html in RAG_HOME."),
    ),
]


def report(
    output: OutputOption = None,
    open_it: Annotated[
        bool, typer.Option("--open", help=_("Also opens the report in the browser."))
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Write the report of the stored evaluations, and say where it is."""
    with application() as opened, working(_("Preparing the report…")):
        where = opened.evaluations.write_report(opened.evaluations.report(), output)
    conclude(_("Report written to {path}").format(path=where), {"report": where}, as_json=as_json)
    if open_it:
        webbrowser.open(where if "://" in where else Path(where).as_uri())
