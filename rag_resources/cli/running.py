"""Runs a command line and turns errors into messages for its reader and exit codes."""

import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer
from typer.exceptions import Abort, TyperException

from rag_resources.cli.output import answer_in, clean, fail, masked, note, told, warn
from rag_resources.cli.usage import explain
from rag_resources.core.errors import InvalidInputError, RagError
from rag_resources.languages.messages import _

INTERRUPTED = 130

ENV_FILE_TOLD = "RAG_ENV_FILE_TOLD"
"""Set for a program that replaces one that has already told what is wrong with `.env`."""


def run_app(
    app: typer.Typer, arguments: Sequence[str], *, program: str, debug: bool = False
) -> int:
    """Run a command and return its exit code.

    Args:
        app: The commands.
        arguments: Without the program's name.
        program: The program's name in help pages.
        debug: Whether to print the stack trace of an error.

    Returns:
        0 done, 1 failure, 2 bad input, 130 interrupted; or the command's own code.
    """
    answer_in(None)
    if os.environ.pop(ENV_FILE_TOLD, None) is None:
        _tell_of_env_file()
    root: Any = typer.main.get_command(app)
    try:
        code = root.main(args=list(arguments), prog_name=program, standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has closed the pipe: nothing can be written, and nothing flushed at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (KeyboardInterrupt, Abort):
        code = INTERRUPTED
    except TyperException as error:
        typer.echo(clean(told(explain(error))), err=True)  # An error, so that --quiet shows it too.
        return error.exit_code
    except RagError as error:
        fail(_("Error: {message}").format(message=error.message))
        if debug:
            _trace()
        return 2 if isinstance(error, InvalidInputError) else 1
    except Exception as error:  # noqa: BLE001 - last resort: show one line instead of a stack trace
        # Further lines are for developers: a driver quotes the statement there.
        first, *__ = str(error).strip().splitlines() or [_("it does not say which")]
        reason = " ".join(first.split())
        fail(
            _(
                "Unexpected error: {reason}. Repeat the command as “rag --debug …” to see the "
                "details."
            ).format(reason=reason)
        )
        if debug:
            _trace()
        return 1
    if code == INTERRUPTED:
        note(_("Interrupted. What was already written is kept; repeat the command to continue."))
    return code if isinstance(code, int) else 0


def _tell_of_env_file() -> None:
    if not Path(".env").is_file():
        return
    from rag_resources.settings import env_file_problems

    for problem in env_file_problems():
        warn(problem)


def _trace() -> None:
    """Print the stack trace of the present error, without credentials."""
    note(masked(traceback.format_exc()))
