"""`python -m rag_assets run|ui`: the main job, and Dagster's webserver and daemon."""

import sys
from typing import Any

import typer
from typer.exceptions import Abort, TyperException

from rag_resources.cli.output import note
from rag_resources.cli.usage import command, explain, group
from rag_resources.core.errors import InvalidInputError, RagError
from rag_resources.core.messages import Message
from rag_resources.logs import log_to_stderr
from rag_resources.settings import load_settings

PROGRAM = "python -m rag_assets"
INTERRUPTED = 130

app = group("rag_assets", Message.HELP_ASSETS)


@command(app, "run", Message.HELP_RUN)
def run() -> None:
    """Do the main job through the Dagster instance."""
    from rag_assets.instance import prepare

    prepare(load_settings())
    from rag_assets.main_job import main_job

    main_job()


@command(app, "ui", Message.HELP_UI)
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
    sys.exit(_run())


def _run() -> int:
    root: Any = typer.main.get_command(app)
    try:
        code = root.main(prog_name=PROGRAM, standalone_mode=False)
    except (KeyboardInterrupt, Abort):
        note(Message.CLI_INTERRUPTED)
        return INTERRUPTED
    except TyperException as error:
        note(explain(error))
        return error.exit_code
    except RagError as error:
        note(error.message)
        return 2 if isinstance(error, InvalidInputError) else 1
    return code if isinstance(code, int) else 0


if __name__ == "__main__":
    main()
