"""`python -m rag_assets run|ui`: the main job, and Dagster's webserver and daemon."""

import logging
import sys
from collections.abc import Iterable
from typing import Annotated

import typer

from rag_resources.cli.content_settings import AcceptOption
from rag_resources.cli.output import note, warn
from rag_resources.cli.running import run_app
from rag_resources.cli.usage import command, group
from rag_resources.core.messages import Message
from rag_resources.logs import log_to_stderr
from rag_resources.settings import load_settings

app = group("rag_assets", Message.HELP_ASSETS)


@command(app, "run", Message.HELP_RUN)
def run(
    sample: Annotated[bool, typer.Option("--sample", help=Message.HELP_SAMPLE)] = False,
    accept_settings: AcceptOption = False,
) -> None:
    """Run the main job on the Dagster instance."""
    from rag_assets.instance import prepare
    from rag_resources.application import open_application
    from rag_resources.cli.content_settings import confirm_settings

    settings = load_settings()
    _tell(prepare(settings, migrating=True))
    with open_application(settings) as application:
        source = confirm_settings(application, sample=sample, accept=accept_settings)
    if source.notice:
        warn(source.notice)
    from rag_assets.main_job import main_job

    main_job(settings, source)


@command(app, "ui", Message.HELP_UI)
def ui() -> None:
    """Serve the Dagster UI until interrupted."""
    from rag_assets.instance import prepare

    settings = load_settings()
    _tell(prepare(settings))
    from rag_assets.webserver import serve

    raise typer.Exit(serve(settings))


def _tell(notices: Iterable[str]) -> None:
    for notice in notices:
        note(notice)


def _is_news(record: logging.LogRecord) -> bool:
    """Whether a record of the root logger is more than one of Dagster's attempts to reconnect."""
    return not record.getMessage().startswith("Retrying failed database connection")


def main() -> None:
    """Run a command; one of our own errors becomes a message on stderr."""
    log_to_stderr()
    logging.getLogger().addFilter(_is_news)
    logging.getLogger("psycopg.pool").setLevel(logging.ERROR)  # It warns of each attempt as well.
    sys.exit(run_app(app, sys.argv[1:], program="python -m rag_assets"))


if __name__ == "__main__":
    main()
