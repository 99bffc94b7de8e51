"""Output of commands: results on stdout, the rest on stderr, credentials nowhere.

Messages are written in the language of operators, or of a reader (`answer_in`).
"""

import json
import os
import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, date, datetime
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from rag_resources.core.errors import InvalidInputError, InvalidParameterError
from rag_resources.core.query import check_language
from rag_resources.core.tables import ReportTable
from rag_resources.languages.messages import _, render

if TYPE_CHECKING:
    from rich.console import Console

JsonOption = Annotated[
    bool, typer.Option("--json", help=_("Writes the result as JSON, and nothing else."))
]
MixesOption = Annotated[
    bool, typer.Option("--yes", help=_("Mixes notes of several sources without asking."))
]
YesOption = Annotated[bool, typer.Option("--yes", help=_("Deletes without asking."))]
ReasonOption = Annotated[
    str, typer.Option("--reason", metavar="MOTIVO", help=_("Why; it is stored."))
]
LimitOption = Annotated[
    int | None, typer.Option("--limit", min=1, metavar="N", help=_("How many at most."))
]
QuietOption = Annotated[
    bool,
    typer.Option(
        "--quiet", "-q", help=_("Writes only the result and errors. Goes before the command.")
    ),
]
SampleOption = Annotated[
    bool,
    typer.Option("--sample", help=_("Reads the sample instead of NOTES_SOURCE and GOLDEN_SOURCE.")),
]

SHOWN = 50
"""Rows of a list, if nobody says how many."""

_WIDEST = 400
PIPED_COLUMNS = 120
"""Width of passages written to a file or a pipe; tables are as wide as their cells."""

_MIN_SECRET_CHARS = 4
_CELL_EDGES = 2
_TABLE_EDGES = 1
"""Characters between the columns of a table, and around it."""


_quiet = ContextVar("quiet", default=False)
_language: ContextVar[str | None] = ContextVar("language", default=None)


def be_quiet(quiet: bool) -> None:
    """Set whether this process writes only results and errors."""
    _quiet.set(quiet)


def is_quiet() -> bool:
    """Whether only results and errors are written."""
    return _quiet.get()


def answer_in(language: str | None) -> None:
    """Set the language of all further output; None is the language of operators.

    Raises:
        InvalidParameterError: The product does not have this language.
    """
    if language is not None:
        check_language(language)
    _language.set(language)


def told(text: str) -> str:
    """Return a text in the reader's language."""
    language = _language.get()
    return render(text, language) if language else str(text)


def told_day(moment: date) -> str:
    """Return a date as the reader writes it."""
    from rag_resources.languages.formats import day

    language = _language.get()
    return day(moment, language) if language else f"{moment:%Y-%m-%d}"


def told_number(value: float, decimals: int) -> str:
    """Return a number as the reader writes it."""
    from rag_resources.languages.formats import number

    language = _language.get()
    return number(value, decimals, language) if language else f"{value:.{decimals}f}"


def say(text: str) -> None:
    """Write a line of the result."""
    typer.echo(clean(told(text)))


def note(text: str) -> None:
    """Write a line that is not part of the result on stderr, unless `--quiet` is set."""
    if _quiet.get():
        return
    typer.echo(clean(told(text)), err=True)


def warn(text: str) -> None:
    """Write a warning on stderr, in yellow if colours are available, unless `--quiet` is set."""
    if not _quiet.get():
        typer.secho(clean(told(text)), fg=typer.colors.YELLOW, err=True)


def fail(text: str) -> None:
    """Write an error on stderr without credentials, in red if colours are available."""
    typer.secho(clean(masked(told(text))), fg=typer.colors.RED, err=True)


def write_json(value: Any) -> None:
    """Write a result as JSON: names in camelCase, identifiers and moments (UTC) as text."""
    typer.echo(json.dumps(_plain(value), ensure_ascii=False, indent=2))


def picked(item: Any, *names: str, **renamed: str) -> dict[str, Any]:
    """Return attributes of an object for `write_json`.

    Args:
        item: The object.
        names: Attributes that keep their name.
        renamed: New names, each with that of its attribute.
    """
    pairs = [*zip(names, names, strict=True), *renamed.items()]
    return {_camel(name): getattr(item, attribute) for name, attribute in pairs}


def _plain(value: Any) -> Any:
    names = getattr(value, "__dataclass_fields__", None) or getattr(
        type(value), "model_fields", None
    )
    if names and not isinstance(value, type):
        return {_camel(name): _plain(getattr(value, name)) for name in names}
    if isinstance(value, Mapping):
        return {str(key): _plain(own) for key, own in value.items()}
    if isinstance(value, Collection) and not isinstance(value, str | bytes):
        return [_plain(own) for own in value]
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, bytes):
        return value.hex()
    return str(value) if isinstance(value, UUID | PurePath) else value


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.title() for word in others)


def conclude(text: str, value: Any, *, as_json: bool) -> None:
    """Write how a command ended: as a sentence, or as JSON."""
    if as_json:
        write_json(value)
    else:
        say(text)


def confirmed(question: str, *, about: Sequence[str] = (), err: bool = False) -> bool:
    """Ask a person at a terminal, after lines about the question; False without a terminal."""
    if not sys.stdin.isatty():
        return False
    for line in about:
        (note if err else say)(line)
    answer: str = typer.prompt(question, default="", show_default=False, err=err)
    return answer.strip().casefold() in _("y yes").split()


def require_consent(question: str, *, yes: bool, about: Sequence[str] = ()) -> None:
    """Ask a person whether to delete, unless that was said before.

    Raises:
        InvalidParameterError: The person refused, or there is none.
    """
    if not (yes or confirmed(question, about=about)):
        raise InvalidParameterError(
            _("Nothing was deleted. To delete without being asked, add --yes.")
        )


def consented(doubt: InvalidInputError) -> bool:
    """Ask a person whether to go on in spite of a doubt: mixed sources, many notes gone.

    Raises:
        InvalidInputError: The doubt; the person refused, or there is none.
    """
    if not confirmed(doubt.message, err=True):
        raise doubt
    return True


def console(*, err: bool = False) -> "Console":
    """Return a console for tables that never interprets text as markup."""
    from rich.console import Console

    stream = sys.stderr if err else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else PIPED_COLUMNS
    return Console(stderr=err, markup=False, emoji=False, highlight=False, width=width)


def print_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    title: str = "",
    prose: bool = False,
) -> None:
    """Print a table below its title; the first column and prose are aligned left, others right.

    On a terminal it fits the screen without breaking a word: what is too wide as a table is shown
    as a block of lines for each row. Elsewhere a line holds a whole row.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    screen = console()
    cells = [[clean(cell) for cell in row] for row in rows]
    widths = _widths([columns, *cells], screen.width) if screen.is_terminal else None
    if title:  # A title of the table itself would be wrapped at the width of the table.
        screen.print(Text(title, style="table.title"))
    if screen.is_terminal and widths is None:
        for row in cells:
            lines = [f"{name}: {cell}" for name, cell in zip(columns, row, strict=True)]
            screen.print("\n".join(lines), end="\n\n")
        return
    made = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0) if widths else (0, 1))
    for index, column in enumerate(columns):
        made.add_column(
            Text(column),
            justify="right" if index and not prose else "left",
            overflow="fold",
            width=widths[index] if widths else None,
        )
    for row in cells:
        made.add_row(*map(Text, row))
    if widths is None:
        wide = screen.options.update(width=_WIDEST)
        screen.width = max(screen.width, screen.measure(made, options=wide).maximum)
    screen.print(made)


def _widths(rows: Sequence[Sequence[str]], width: int) -> list[int] | None:
    """Share the screen among the columns of a table; None if their longest words do not fit."""
    from rich.cells import cell_len

    columns = list(zip(*rows, strict=True))
    least = [max(map(cell_len, " ".join(own).split()), default=1) for own in columns]
    wanted = [max(1, *map(cell_len, "\n".join(own).split("\n"))) for own in columns]
    left = width - _TABLE_EDGES - len(columns) * _CELL_EDGES - sum(least)
    if left < 0:
        return None
    made = list(least)
    by_need = sorted(range(len(made)), key=lambda index: wanted[index] - least[index])
    for place, index in enumerate(by_need):
        more = min(wanted[index] - least[index], left // (len(made) - place))
        made[index] += more
        left -= more
    return made


def show_table(shown: ReportTable) -> None:
    """Print a table of the product."""
    print_table(shown.columns, shown.rows, title=shown.title, prose=shown.is_prose)


def show_list(columns: Sequence[str], rows: Sequence[Sequence[str]], total: int) -> None:
    """Print the first rows of a list, and say how many there are."""
    if rows:
        print_table(columns, rows, prose=True)
    say(_("{shown} of {count} are shown.").format(count=total, shown=len(rows)))


@contextmanager
def working(message: str) -> Iterator[Callable[[str], None]]:
    """Show on a terminal that something is being worked on.

    Yields:
        A function that shows another message instead.
    """
    screen = console(err=True)
    if not screen.is_terminal or _quiet.get():
        yield lambda _: None
        return
    with screen.status(told(message)) as status:
        yield lambda text: status.update(told(text))


@contextmanager
def progress(message: str, *, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """Show progress on stderr if it is a terminal.

    Args:
        message: What is being done.
        total: The amount of work, if known.

    Yields:
        A function to call with the number of things done since the last call.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    screen = console(err=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(
        *columns,
        TimeElapsedColumn(),
        console=screen,
        transient=True,
        disable=not screen.is_terminal or _quiet.get(),
    ) as bar:
        task = bar.add_task(message, total=total)
        yield lambda done: bar.advance(task, done)


def clean(text: str) -> str:
    """Replace control characters and unencodable characters, one by one."""
    steering = re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", "\ufffd", text)
    return steering.encode("utf-8", "replace").decode()


def masked(text: str) -> str:
    """Hide the passwords in database URLs."""
    for name in ("DATABASE_URL", "DAGSTER_PG_URL"):
        credentials = os.environ.get(name, "").partition("://")[2].rpartition("@")[0]
        password = credentials.partition(":")[2]
        if len(password) >= _MIN_SECRET_CHARS:
            text = text.replace(password, "***")
    text = re.sub(r"(://[^\s:/@]*):(?!contraseña@)\S*@", r"\1:***@", text)
    # If a password has an unescaped "@", the driver's message quotes its rest as part of the host.
    return re.sub(r"(?<=host ')[^']*@", "***@", text)


def address(url: str) -> str:
    """Return a database's address without its password."""
    from psycopg import Error
    from psycopg.conninfo import conninfo_to_dict

    try:
        parts = conninfo_to_dict(url)
    except Error:
        return _("an address that cannot be understood")
    host, port = parts.get("host") or "localhost", parts.get("port") or 5432
    return f"{host}:{port}/{parts.get('dbname') or parts.get('user') or ''}"
