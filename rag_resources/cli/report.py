"""`rag report`: everything the evaluations say, as one page."""

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from rag_resources.cli.output import say, working
from rag_resources.cli.session import application
from rag_resources.core.messages import Message

OutputOption = Annotated[
    Path | None, typer.Option("--output", metavar="FICHERO.html", help=Message.HELP_REPORT_OUTPUT)
]


def report(
    output: OutputOption = None,
    open_it: Annotated[bool, typer.Option("--open", help=Message.HELP_REPORT_OPEN)] = False,
) -> None:
    """Write the report of the evaluations there are, and say where."""
    from rag_resources.files import LocalFiles, open_files
    from rag_resources.reporting.page import write_report
    from rag_resources.reporting.reading import read_report

    with application() as opened, working(Message.REPORT_WRITING):
        found = read_report(opened.database, opened.configurations, gate=opened.settings.gate)
        if output:
            path = output.absolute()
            where = write_report(found, LocalFiles(path.parent), path.name)
        else:
            where = write_report(found, open_files(opened.settings.files_address))
    say(Message.REPORT_WRITTEN.format(path=where))
    if open_it:
        webbrowser.open(where if "://" in where else Path(where).as_uri())
