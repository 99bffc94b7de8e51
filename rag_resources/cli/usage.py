"""Typer in Spanish: help pages and error messages about wrong calls.

Typer contains its own copy of click, without translations; the exceptions come from that copy.
"""

import re
from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypeVar

import typer
from typer._click.core import Context
from typer._click.exceptions import (
    BadOptionUsage,
    BadParameter,
    MissingParameter,
    NoArgsIsHelpError,
    NoSuchOption,
)
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption
from typer.exceptions import TyperException

from rag_resources.languages.messages import _

Function = TypeVar("Function", bound=Callable[..., Any])

_CONTEXT = {"help_option_names": ["--help", "-h"]}


class _InSpanish:
    """A help page in Spanish, for commands and groups."""

    def format_usage(self: Any, ctx: Any, formatter: Any) -> None:
        """Write the usage line."""
        pieces = self.collect_usage_pieces(ctx)
        formatter.write_usage(ctx.command_path, " ".join(pieces), prefix=_("Usage: "))

    def format_options(self: Any, ctx: Any, formatter: Any) -> None:
        """Write arguments and options, and the commands of a group."""
        found = self.get_params(ctx)
        arguments = [item for item in found if isinstance(item, TyperArgument)]
        commands = getattr(self, "commands", {})
        for title, rows in (
            (_("Arguments"), [(str(a.metavar), a.help or "") for a in arguments]),
            (
                _("Options"),
                [_option(item) for item in found if isinstance(item, TyperOption)],
            ),
            (
                _("Commands"),
                [(name, command.help or "") for name, command in commands.items()],
            ),
        ):
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


class SpanishCommand(_InSpanish, TyperCommand):
    """A command whose help page is in Spanish."""


class SpanishGroup(_InSpanish, TyperGroup):
    """A group of commands whose help page is in Spanish."""


def group(name: str, description: str) -> typer.Typer:
    """Create an empty group of commands."""
    return typer.Typer(
        name=name,
        help=description,
        cls=SpanishGroup,
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
    return app.command(name, cls=SpanishCommand, help=description, options_metavar=_("[OPTIONS]"))


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
        cls=SpanishCommand,
        help=description,
        options_metavar="",
        add_help_option=False,
        context_settings={"ignore_unknown_options": True},
    )


def explain(error: TyperException) -> str:
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
    if isinstance(error, MissingParameter):
        return _("The argument {name} is missing.").format(name=_parameter(error))
    if isinstance(error, BadParameter):
        reason = _reason(error)
        return _("Invalid value for {name}: {reason}.").format(
            name=_parameter(error), reason=reason
        )
    if isinstance(error, NoSuchOption) and error.ctx and _is_global(error.option_name, error.ctx):
        __, __, order = error.ctx.command_path.partition(" ")
        return _("The option “{name}” goes before the command: “rag {name} {command} …”.").format(
            name=error.option_name, command=order
        )
    if isinstance(error, NoSuchOption):
        known = _did_you_mean(error.possibilities)
        return _("There is no option “{name}”.").format(name=error.option_name) + known
    if isinstance(error, BadOptionUsage):
        takes_none = "does not take" in error.message
        message = (
            _("The option “{name}” takes no value.")
            if takes_none
            else _("The option “{name}” needs a value.")
        )
        return message.format(name=error.option_name)
    return _other_problem(error)


def _is_global(option: str, context: Context) -> bool:
    """Whether an option belongs to `rag` itself, and so before the command."""
    return any(option in parameter.opts for parameter in context.find_root().command.params)


def _other_problem(error: TyperException) -> str:
    """Translate problems that have no exception class of their own, by their message."""
    context = getattr(error, "ctx", None)
    commands = context.command.commands if context and hasattr(context.command, "commands") else {}
    if error.message.startswith("Missing command"):
        return _("The command is missing. There are: {known}.").format(known=", ".join(commands))
    unknown = re.match(r"No such command (['\"])(.*?)\1", error.message)
    if unknown:
        known = _(" There are: {known}.").format(known=", ".join(commands))
        return _("There is no command “{name}”.").format(name=unknown[2]) + known
    extra = re.match(r"Got unexpected extra argument(?:s|\(s\))? \((.*)\)", error.message)
    if extra:
        takes_some = context and any(
            isinstance(own, TyperArgument) for own in context.command.params
        )
        message = (
            _(
                "Too many arguments: {arguments}. If the question or the path has spaces, put it "
                "in quotes."
            )
            if takes_some
            else _("{arguments} is too much: this command takes only options.")
        )
        return message.format(arguments=extra[1])
    return error.message


def _parameter(error: BadParameter) -> str:
    parameter = error.param
    if parameter is None:
        return "?"
    return f"«{parameter.opts[0] if isinstance(parameter, TyperOption) else parameter.metavar}»"


def _reason(error: BadParameter) -> str:
    """Return the reason of the validation error that caused this one; it is in Spanish."""
    from pydantic import ValidationError

    from rag_resources.core.validation import describe_problems

    reason = error.message
    if isinstance(error.__cause__, ValidationError):
        problems = describe_problems(error.__cause__)
        reason = "; ".join(problem.removeprefix(".: ") for problem in problems)
    choice = re.match(r"(['\"])(.*?)\1 is not one of (.*?)\.*$", reason)
    if choice:
        return _("“{value}” is not one of the options: {expected}").format(
            value=choice[2], expected=choice[3]
        )
    return reason.rstrip(".")


def _did_you_mean(possibilities: Sequence[str] | None) -> str:
    return _(" Did you mean {name}?").format(name=possibilities[0]) if possibilities else ""


def _option(option: TyperOption) -> tuple[str, str]:
    name = ", ".join([*option.opts, *option.secondary_opts])
    if option.name == "help":
        return name, _("Shows this help and ends.")
    return f"{name} {option.metavar or ''}".rstrip(), option.help or ""
