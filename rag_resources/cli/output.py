"""How commands write: results on stdout, everything else on stderr, credentials nowhere."""

import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rag_resources.core.messages import Message

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

JsonOption = Annotated[bool, typer.Option("--json", help=Message.HELP_JSON)]

PIPED_COLUMNS = 120
"""Width of tables that go to a file or a pipe."""

_MIN_SECRET_CHARS = 4


def say(text: str) -> None:
    """Write a line of the result."""
    typer.echo(clean(text))


def note(text: str) -> None:
    """Write a line beside the result, on stderr."""
    typer.echo(clean(text), err=True)


def warn(text: str) -> None:
    """Write on stderr, in yellow where there are colours, what the result goes without."""
    typer.secho(clean(text), fg=typer.colors.YELLOW, err=True)


def fail(text: str) -> None:
    """Write an error on stderr, in red where there are colours, without credentials."""
    typer.secho(clean(masked(text)), fg=typer.colors.RED, err=True)


def write_json(value: Any) -> None:
    """Write a result as JSON."""
    typer.echo(json.dumps(value, ensure_ascii=False, indent=2))


def console(*, err: bool = False) -> "Console":
    """Return a console for tables; nothing in a text is taken for markup."""
    from rich.console import Console

    stream = sys.stderr if err else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else PIPED_COLUMNS
    return Console(stderr=err, markup=False, emoji=False, highlight=False, width=width)


def table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    title: str = "",
    prose: bool = False,
) -> "Table":
    """Return a table, its first column to the left, the others to the right but for prose."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    made = Table(title=Text(title) if title else None, title_justify="left", box=box.SIMPLE_HEAD)
    for index, column in enumerate(columns):
        made.add_column(
            Text(column),
            justify="right" if index and not prose else "left",
            overflow="fold",
            no_wrap=index == 0 and not prose,
        )
    for row in rows:
        made.add_row(*(Text(clean(cell)) for cell in row))
    return made


@contextmanager
def working(message: str) -> Iterator[None]:
    """Show on a terminal that something takes its time."""
    screen = console(err=True)
    if not screen.is_terminal:
        yield
        return
    with screen.status(message):
        yield


@contextmanager
def progress(message: str, *, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """Show progress on stderr if that is a terminal.

    Args:
        message: What is being done.
        total: How much there is to do, if that is known.

    Yields:
        What to call with the number of things done since the last call.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    screen = console(err=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(
        *columns,
        TimeElapsedColumn(),
        console=screen,
        transient=True,
        disable=not screen.is_terminal,
    ) as bar:
        task = bar.add_task(message, total=total)
        yield lambda done: bar.advance(task, done)


def clean(text: str) -> str:
    """Replace what would steer a terminal or could not be written, character by character."""
    steering = re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", "\ufffd", text)
    return steering.encode("utf-8", "replace").decode()


def masked(text: str) -> str:
    """Hide passwords of database URLs."""
    for name in ("DATABASE_URL", "DAGSTER_PG_URL"):
        credentials = os.environ.get(name, "").partition("://")[2].rpartition("@")[0]
        password = credentials.partition(":")[2]
        if len(password) >= _MIN_SECRET_CHARS:
            text = text.replace(password, "***")
    text = re.sub(r"(://[^\s:/@]*):(?!contraseña@)\S*@", r"\1:***@", text)
    # A password with an unescaped "@" makes the driver quote its rest as part of the host.
    return re.sub(r"(?<=host ')[^']*@", "***@", text)


def address(url: str) -> str:
    """Return where a database is, without its password."""
    from psycopg import Error
    from psycopg.conninfo import conninfo_to_dict

    try:
        parts = conninfo_to_dict(url)
    except Error:
        return Message.CLI_ADDRESS_UNKNOWN
    host, port = parts.get("host") or "localhost", parts.get("port") or 5432
    return f"{host}:{port}/{parts.get('dbname') or parts.get('user') or ''}"
