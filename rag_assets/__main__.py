"""`python -m rag_assets run|ui`: the main job, and Dagster's webserver and daemon."""

import sys

import typer

from rag_resources.core.errors import InvalidInputError, RagError
from rag_resources.core.messages import Message
from rag_resources.logs import log_to_stderr
from rag_resources.settings import load_settings

app = typer.Typer(add_completion=False, help=Message.HELP_ASSETS, no_args_is_help=True)


@app.command(help=Message.HELP_RUN)
def run() -> None:
    """Do the main job through the Dagster instance."""
    from rag_assets.instance import prepare

    prepare(load_settings())
    from rag_assets.main_job import main_job

    main_job()


@app.command(help=Message.HELP_UI)
def ui() -> None:
    """Serve the Dagster UI until interrupted."""
    from rag_assets.instance import prepare

    settings = load_settings()
    prepare(settings)
    from rag_assets.webserver import serve

    raise typer.Exit(serve(settings))


def main() -> None:
    """Run a command; an error of ours is one message on stderr."""
    log_to_stderr()
    try:
        app()
    except RagError as error:
        print(error.message, file=sys.stderr)  # noqa: T201 - the message of a command
        sys.exit(2 if isinstance(error, InvalidInputError) else 1)


if __name__ == "__main__":
    main()
