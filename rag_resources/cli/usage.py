"""Typer in the language of operators: help pages, wrong calls, errors and exit codes.

Typer contains its own copy of click, without translations; the exceptions come from that copy.
"""

import os
import re
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from typer._click.exceptions import NoArgsIsHelpError
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption
from typer.exceptions import Abort, TyperException

from rag_resources.cli.output import answer_in, clean, fail, masked, note, told, warn
from rag_resources.core.errors import InvalidInputError, RagError
from rag_resources.languages.messages import _

Function = TypeVar("Function", bound=Callable[..., Any])

INTERRUPTED = 130
ENV_FILE_TOLD = "RAG_ENV_FILE_TOLD"
"""Set for a program that replaces one that has already told what is wrong with `.env`."""

_CONTEXT = {"help_option_names": ["--help", "-h"]}
_PROBLEMS = (
    (r"Missing argument '(?P<name>.+)'", _("The argument “{name}” is missing.")),
    (r"Missing command", _("The command is missing.")),
    (
        r"No such command (['\"])(?P<name>.*?)\1\. Did you mean '(?P<known>.*)'\?",
        _("“{name}” does not exist. Did you mean {known}?"),
    ),
    (r"No such command (['\"])(?P<name>.*?)\1", _("“{name}” does not exist.")),
    (
        r"No such option: (?P<name>\S+) \(Possible options: (?P<known>.*)\)",
        _("“{name}” does not exist. Did you mean {known}?"),
    ),
    (r"No such option: (?P<name>\S+)", _("“{name}” does not exist.")),
    (r"Option '(?P<name>.*)' does not take", _("The option “{name}” takes no value.")),
    (r"Option '(?P<name>.*)' requires", _("The option “{name}” needs a value.")),
    (
        r"Got unexpected extra argument(?:s|\(s\))? \((?P<arguments>.*)\)",
        _(
            "Too many arguments: {arguments}. If the question or the path has spaces, put it in "
            "quotes."
        ),
    ),
    (
        r"Invalid value for '(?P<name>.+?)': (?P<reason>.*)",
        _("Invalid value for “{name}”: {reason}."),
    ),
)
"""What click says of a wrong call, and what is said in its place."""


class _Translated:
    """A help page in the language of operators, for commands and groups."""

    def format_usage(self: Any, ctx: Any, formatter: Any) -> None:
        """Write the usage line."""
        pieces = self.collect_usage_pieces(ctx)
        formatter.write_usage(ctx.command_path, " ".join(pieces), prefix=_("Usage: "))

    def format_options(self: Any, ctx: Any, formatter: Any) -> None:
        """Write arguments and options, and the commands of a group."""
        found = self.get_params(ctx)
        commands = getattr(self, "commands", {})
        arguments = [(str(a.metavar), a.help or "") for a in found if isinstance(a, TyperArgument)]
        options = [_option(item) for item in found if isinstance(item, TyperOption)]
        named = [(name, command.help or "") for name, command in commands.items()]
        for title, rows in (
            (_("Arguments"), arguments),
            (_("Options"), options),
            (_("Commands"), named),
        ):
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


class TranslatedCommand(_Translated, TyperCommand):
    """A command whose help page is in the language of operators."""


class TranslatedGroup(_Translated, TyperGroup):
    """A group of commands whose help page is in the language of operators."""


def group(name: str, description: str) -> typer.Typer:
    """Create an empty group of commands."""
    return typer.Typer(
        name=name,
        help=description,
        cls=TranslatedGroup,
        options_metavar=_("[OPTIONS]"),
        context_settings=_CONTEXT,
        subcommand_metavar=_("COMMAND [ARGUMENTS]..."),
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )


def command(app: typer.Typer, name: str, description: str) -> Callable[[Function], Function]:
    """Return the decorator that adds a function to a group as a command."""
    return app.command(
        name, cls=TranslatedCommand, help=description, options_metavar=_("[OPTIONS]")
    )


PassedOn = Annotated[
    list[str] | None,
    typer.Argument(metavar="ARGUMENTOS…", help=_("What one would tell “dagster”.")),
]
"""What is passed on."""


def passing_on(app: typer.Typer, name: str, description: str) -> Callable[[Function], Function]:
    """Return the decorator that adds a command whose options are those of another program.

    They are an argument of the function, as is `--help`.
    """
    return app.command(
        name,
        cls=TranslatedCommand,
        help=description,
        options_metavar="",
        add_help_option=False,
        context_settings={"ignore_unknown_options": True},
    )


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
    if os.environ.pop(ENV_FILE_TOLD, None) is None and Path(".env").is_file():
        from rag_resources.settings import env_file_problems

        for problem in env_file_problems():
            warn(problem)
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
        typer.echo(clean(told(_explain(error))), err=True)  # --quiet shows errors too.
        return error.exit_code
    except Exception as error:  # noqa: BLE001 - last resort: show one line instead of a stack trace
        fail(_in_a_line(error))
        if debug:
            note(masked(traceback.format_exc()))
        return 2 if isinstance(error, InvalidInputError) or _is_of_a_file(error) else 1
    if code == INTERRUPTED:
        tell_interruption()
    return code if isinstance(code, int) else 0


def tell_interruption() -> None:
    """Say on stderr that the command was interrupted."""
    note(_("Interrupted. What was already written is kept; repeat the command to continue."))


def _is_of_a_file(error: Exception) -> bool:
    return isinstance(error, OSError) and error.filename is not None


def _in_a_line(error: Exception) -> str:
    if isinstance(error, RagError):
        return _("Error: {message}").format(message=error.message)
    if isinstance(error, OSError) and _is_of_a_file(error):
        return _("Error: {path} cannot be read or written: {reason}.").format(
            path=error.filename, reason=error.strerror
        )
    # Further lines are for developers: a driver quotes the statement there.
    first, *__ = str(error).strip().splitlines() or [type(error).__name__]
    return _(
        "Unexpected error: {reason}. Repeat the command as “rag --debug …” to see the details."
    ).format(reason=" ".join(first.split()))


def _explain(error: TyperException) -> str:
    """Explain a wrong call: its usage, the problem, and where help is."""
    if isinstance(error, NoArgsIsHelpError):
        return error.message
    context = getattr(error, "ctx", None)
    problem = _("Error: {message}").format(message=_problem(error))
    if context is None:
        return problem
    hint = _("Help: {command} --help").format(command=context.command_path)
    return "\n".join((context.get_usage(), problem, hint))


def _problem(error: TyperException) -> str:
    from pydantic import ValidationError

    from rag_resources.core.validation import describe_problems

    said = error.format_message()
    for pattern, sentence in _PROBLEMS:
        if found := re.match(pattern, said):
            values = found.groupdict()
            if isinstance(error.__cause__, ValidationError):
                problems = describe_problems(error.__cause__)
                values["reason"] = "; ".join(each.removeprefix(".: ") for each in problems)
                values["reason"] = values["reason"].rstrip(".")
            return sentence.format(**values)
    return said


def _option(option: TyperOption) -> tuple[str, str]:
    name = ", ".join([*option.opts, *option.secondary_opts])
    if option.name == "help":
        return name, _("Shows this help and ends.")
    return f"{name} {option.metavar or ''}".rstrip(), option.help or ""
