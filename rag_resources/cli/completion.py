"""`rag completion SHELL`: writes the script that lets a shell complete commands and options."""

import os
from typing import Annotated, Literal

import typer

from rag_resources.core.messages import Message

PROGRAM = "rag"
VARIABLE = "_RAG_COMPLETE"
"""The variable by which the shell's script requests completions."""


def prepare() -> None:
    """Prepare this process to answer the shell's script with completions."""
    if VARIABLE in os.environ:
        from typer._completion_classes import completion_init

        completion_init()


def completion(
    shell: Annotated[
        Literal["bash", "zsh", "fish"],
        typer.Argument(metavar="SHELL", help=Message.HELP_COMPLETION_SHELL),
    ],
) -> None:
    """Write the script for a shell."""
    from typer._completion_shared import get_completion_script

    script = get_completion_script(prog_name=PROGRAM, complete_var=VARIABLE, shell=shell)
    typer.echo(script)
