"""Runs a command line: every error of a call or of ours becomes Spanish and an exit code."""

import os
import sys
import traceback
from collections.abc import Sequence
from typing import Any

import typer
from typer.exceptions import Abort, TyperException

from rag_resources.cli.output import fail, masked, note
from rag_resources.cli.usage import explain
from rag_resources.core.errors import InvalidInputError, RagError
from rag_resources.core.messages import Message

INTERRUPTED = 130


def run_app(
    app: typer.Typer, arguments: Sequence[str], *, program: str, debug: bool = False
) -> int:
    """Run a command and return its exit code.

    Args:
        app: The commands.
        arguments: Without the program's name.
        program: That name, as help shows it.
        debug: Whether to print where an error came from.

    Returns:
        0 done, 1 failure, 2 bad input, 130 interrupted; or what the command returned.
    """
    root: Any = typer.main.get_command(app)
    try:
        code = root.main(args=list(arguments), prog_name=program, standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has gone: nothing to tell, and nothing to flush at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (KeyboardInterrupt, Abort):
        code = INTERRUPTED
    except TyperException as error:
        note(explain(error))
        return error.exit_code
    except RagError as error:
        fail(Message.CLI_ERROR.format(message=error.message))
        if debug:
            _trace()
        return 2 if isinstance(error, InvalidInputError) else 1
    except Exception as error:  # noqa: BLE001 - the last resort: a line instead of a stack
        reason = " ".join(str(error).split())
        fail(Message.CLI_UNEXPECTED.format(kind=type(error).__name__, reason=reason))
        if debug:
            _trace()
        return 1
    if code == INTERRUPTED:
        note(Message.CLI_INTERRUPTED)
    return code if isinstance(code, int) else 0


def _trace() -> None:
    """Print where the error being handled came from, without credentials."""
    note(masked(traceback.format_exc()))
