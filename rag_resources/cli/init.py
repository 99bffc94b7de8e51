"""`rag init`: surveys a folder of notes, and writes first settings and draft questions."""

import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rag_resources.cli.env_file import differing, env_lines
from rag_resources.cli.output import JsonOption, note, say, write_json
from rag_resources.cli.survey_report import show_rejected, show_survey, survey_json
from rag_resources.core.errors import InvalidParameterError, InvalidSourceError
from rag_resources.core.golden_drafts import DRAFTS
from rag_resources.core.messages import Message
from rag_resources.core.quoting import shown
from rag_resources.env_file import ENV_FILE, present_values

if TYPE_CHECKING:
    from rag_resources.ingestion.survey import Survey

MAX_DRAFTS = 200
QUESTIONS_FILE = Path("preguntas.json")
DEFAULT_HOME = Path(".rag")
OWN_HOME = Path(".rag-notas")


def init(
    folder: Annotated[Path, typer.Argument(metavar="CARPETA", help=Message.HELP_INIT_FOLDER)],
    first_month: Annotated[
        str | None,
        typer.Option("--first-month", metavar="AAAA-MM", help=Message.HELP_INIT_FIRST_MONTH),
    ] = None,
    home: Annotated[
        Path | None, typer.Option("--home", metavar="CARPETA", help=Message.HELP_INIT_HOME)
    ] = None,
    questions: Annotated[
        int | None, typer.Option("--questions", metavar="N", help=Message.HELP_INIT_QUESTIONS)
    ] = None,
    documents: Annotated[
        Path | None,
        typer.Option("--documents", metavar="CARPETA", help=Message.HELP_INIT_DOCUMENTS),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help=Message.HELP_INIT_YES)] = False,
    force: Annotated[bool, typer.Option("--force", help=Message.HELP_INIT_FORCE)] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help=Message.HELP_INIT_DRY_RUN)] = False,
    as_json: JsonOption = False,
) -> None:
    """Survey a folder of notes; write settings and drafts."""
    from rag_resources.ingestion.survey import survey

    if first_month is not None:
        _check_month(first_month)
    _check_questions(questions)
    folder = folder.expanduser()
    folder = folder.resolve() if ".." in folder.parts else folder.absolute()
    found = survey(folder)
    of_documents = _documents(found)
    if not found.notes and not of_documents and documents is None:
        if found.rejected and not as_json:
            show_rejected(found.rejected, found.rejected_count)
        raise _nothing(folder, found)
    if not as_json:
        show_survey(folder, found)
    asks = sys.stdin.isatty() and not yes and not as_json and not dry_run
    chosen = _Choices(
        first_month=first_month or _first_month(found),
        home=home or _home(),
        questions=DRAFTS if questions is None else questions,
        documents=documents,
    )
    if asks:
        chosen.ask(of_documents, folder, given=(first_month, home, questions))
    values = chosen.variables(folder, found)
    written = []
    if not dry_run:
        written = _write(values, found, chosen.questions, force=force, tell=not as_json)
    if as_json:
        write_json(survey_json(folder, found, values, written))
    elif not dry_run:
        is_set = ENV_FILE in written or not differing(values)
        say(Message.INIT_NEXT if is_set else Message.INIT_NEXT_LINES)


class _Choices:
    """The values of the settings; a person may change them."""

    def __init__(
        self, *, first_month: str, home: Path, questions: int, documents: Path | None
    ) -> None:
        self.first_month = first_month
        self.home = home
        self.questions = questions
        self.documents = documents

    def ask(self, documents: int, folder: Path, *, given: tuple[object, ...]) -> None:
        """Ask for the values that no option gave; the Return key keeps the default."""
        first_month, home, questions = given
        if first_month is None and self.first_month:
            self.first_month = _check_month(
                typer.prompt(Message.INIT_ASK_FIRST_MONTH, default=self.first_month)
            )
        if home is None:
            self.home = Path(typer.prompt(Message.INIT_ASK_HOME, default=str(self.home)))
        if questions is None:
            self.questions = _check_questions(
                typer.prompt(Message.INIT_ASK_QUESTIONS, default=self.questions, type=int)
            )
        if documents and self.documents is None:
            answer: str = typer.prompt(
                Message.INIT_ASK_DOCUMENTS.format(count=documents), default="", show_default=False
            )
            if answer.strip().casefold() in Message.WORDS_YES.split():
                self.documents = folder

    def variables(self, folder: Path, found: "Survey") -> dict[str, str]:
        """Return the settings, in the order in which they are written."""
        values = {"RAG_HOME": str(self.home)}
        if found.notes:
            values["NOTES_SOURCE"] = str(folder)
        documents = self.documents or (None if found.notes else folder)
        if documents:
            values["DOCUMENTS_SOURCE"] = str(documents.expanduser().absolute())
        if found.notes and self.questions:
            values["GOLDEN_SOURCE"] = str(QUESTIONS_FILE)
        if self.first_month:
            values["FIRST_MONTH"] = self.first_month
        return values


def _first_month(found: "Survey") -> str:
    """Return the month of the oldest note that can be a partition; empty without notes."""
    from rag_resources.settings import EARLIEST_MONTH

    months = [month for month in found.months if month >= EARLIEST_MONTH]
    return min(min(months), f"{datetime.now(UTC):%Y-%m}") if months else ""


def _check_month(value: str) -> str:
    from rag_resources.settings import checked_month

    try:
        return checked_month(value)
    except ValueError as error:
        message = Message.INIT_FIRST_MONTH.format(value=shown(value), reason=error)
        raise InvalidParameterError(message) from error


def _check_questions(value: int | None) -> int:
    if value is not None and not 0 <= value <= MAX_DRAFTS:
        raise InvalidParameterError(Message.INIT_QUESTIONS.format(value=value))
    return value or 0


def _home() -> Path:
    """Return the state folder that is set, or a new one that holds nothing of the sample."""
    present = {**present_values(), **os.environ}.get("RAG_HOME")
    if present:
        return Path(present)
    if not DEFAULT_HOME.exists():
        return DEFAULT_HOME
    note(Message.INIT_SAMPLE_HOME.format(home=OWN_HOME, default=DEFAULT_HOME))
    return OWN_HOME


def _documents(found: "Survey") -> int:
    from rag_resources.documents.media_types import SUFFIXES

    return sum(count for suffix, count in found.other.items() if suffix in SUFFIXES)


def _nothing(folder: Path, found: "Survey") -> InvalidSourceError:
    from rag_resources.core.quoting import printable
    from rag_resources.documents.media_types import SUFFIXES
    from rag_resources.ingestion.sources import READERS

    if found.rejected_count:
        return InvalidSourceError(Message.INGEST_ALL_REJECTED.format(count=found.rejected_count))
    return InvalidSourceError(
        Message.INIT_NOTHING.format(
            path=printable(str(folder)),
            suffixes=" ".join(READERS),
            documents=" ".join(suffix for suffix in SUFFIXES if suffix not in READERS),
        )
    )


# --- What is written ----------------------------------------------------------------------------


def _write(
    values: dict[str, str], found: "Survey", questions: int, *, force: bool, tell: bool
) -> list[Path]:
    """Write the missing files, or all of them by force; return those written."""
    from rag_resources.core.golden_drafts import choose_notes, draft

    written = []
    if found.notes and questions:
        entries = [draft(each) for each in choose_notes(found.openings, questions)]
        text = json.dumps({"entries": entries}, ensure_ascii=False, indent=1) + "\n"
        if _write_file(QUESTIONS_FILE, text, force=force):
            written.append(QUESTIONS_FILE)
            if tell:
                say(Message.INIT_WRITTEN_QUESTIONS.format(path=QUESTIONS_FILE, count=len(entries)))
    if _write_file(ENV_FILE, "\n".join(env_lines(values)) + "\n", force=force):
        written.append(ENV_FILE)
        if tell:
            say(Message.INIT_WRITTEN.format(path=ENV_FILE))
    elif lines := differing(values):
        note(Message.INIT_KEPT_LINES)
        for line in lines:
            note(f"  {line}")
    return written


def _write_file(path: Path, text: str, *, force: bool) -> bool:
    from rag_resources.files import PRIVATE, set_aside, write_atomically

    if path.exists():
        if not force:
            note(Message.INIT_KEPT.format(path=path))
            return False
        set_aside(path)
    try:
        write_atomically(path, text, mode=PRIVATE)
    except OSError as error:
        raise InvalidParameterError(Message.FILE_NOT_WRITABLE.format(path=path)) from error
    return True
