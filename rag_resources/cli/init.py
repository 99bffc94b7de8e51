"""`rag init`: surveys a folder of notes, and writes first settings and draft questions."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rag_resources.cli.env_file import differing, env_lines
from rag_resources.cli.output import JsonOption, note, say, write_json
from rag_resources.cli.survey_report import show_rejected, show_survey, survey_json
from rag_resources.core.errors import InvalidParameterError, InvalidSourceError
from rag_resources.core.quoting import shown
from rag_resources.env_file import ENV_FILE, present_values
from rag_resources.languages.messages import _, ngettext

if TYPE_CHECKING:
    from rag_resources.ingestion.survey import Survey

DRAFTS, MAX_DRAFTS = 20, 200
QUESTIONS_FILE = Path("preguntas.json")
DEFAULT_HOME = Path(".rag")
OWN_HOME = Path(".rag-notas")


def init(
    folder: Annotated[
        Path, typer.Argument(metavar="CARPETA", help=_("The folder (or file) of your notes."))
    ],
    first_month: Annotated[
        str | None,
        typer.Option(
            "--first-month",
            metavar="AAAA-MM",
            help=_("First month of the partitions. By default that of the oldest note."),
        ),
    ] = None,
    home: Annotated[
        Path | None,
        typer.Option(
            "--home",
            metavar="CARPETA",
            help=_(
                "Folder of the state (RAG_HOME). By default .rag, or another one if that is in use."
            ),
        ),
    ] = None,
    questions: Annotated[
        int,
        typer.Option(
            "--questions", metavar="N", help=_("How many questions are proposed (by default 20).")
        ),
    ] = DRAFTS,
    documents: Annotated[
        Path | None,
        typer.Option(
            "--documents",
            metavar="CARPETA",
            help=_("Folder of documents (PDF, DOCX…), if there are any."),
        ),
    ] = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help=_(
                "Replaces the .env and the questions that are there; the former ones are kept "
                "with the suffix .anterior."
            ),
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help=_("Only says what there is; writes no file."))
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Survey a folder of notes; write settings and drafts."""
    from rag_resources.documents.media_types import SUFFIXES
    from rag_resources.ingestion.survey import survey

    if first_month is not None:
        _check_month(first_month)
    if not 0 <= questions <= MAX_DRAFTS:
        raise InvalidParameterError(
            _("--questions must be between 0 and 200: {value}.").format(value=questions)
        )
    folder = folder.expanduser()
    folder = folder.resolve() if ".." in folder.parts else folder.absolute()
    found = survey(folder)
    if not found.notes and documents is None and not SUFFIXES.keys() & found.other:
        if found.rejected and not as_json:
            show_rejected(found.rejected, found.rejected_count)
        raise _nothing(folder, found)
    if not as_json:
        show_survey(folder, found)
    values = _variables(
        found, folder, home=home, documents=documents, questions=questions, month=first_month
    )
    written = []
    if not dry_run:
        written = _write(values, found, questions, force=force, tell=not as_json)
    if as_json:
        write_json(survey_json(folder, found, values, written))
    elif not dry_run:
        is_set = ENV_FILE in written or not differing(values)
        say(
            _(
                "Next step: “rag run”. It evaluates, too, if there are answered questions; you "
                "can answer them before or later."
            )
            if is_set
            else _("Next step: put those lines into .env, or repeat with --force; then “rag run”.")
        )


def _variables(
    found: "Survey",
    folder: Path,
    *,
    home: Path | None,
    documents: Path | None,
    questions: int,
    month: str | None,
) -> dict[str, str]:
    """Return the settings, in the order in which they are written."""
    documents = documents or (None if found.notes else folder)
    values = {
        "RAG_HOME": str(home or _home()),
        "NOTES_SOURCE": str(folder) if found.notes else "",
        "DOCUMENTS_SOURCE": str(documents.expanduser().absolute()) if documents else "",
        "GOLDEN_SOURCE": str(QUESTIONS_FILE) if found.notes and questions else "",
        "FIRST_MONTH": month or _first_month(found),
    }
    return {name: value for name, value in values.items() if value}


def _first_month(found: "Survey") -> str:
    """Return the month of the oldest note that can be a partition; empty without notes."""
    from rag_resources.settings import EARLIEST_MONTH

    months = [month for month in found.months if month >= EARLIEST_MONTH]
    return min(min(months), f"{datetime.now(UTC):%Y-%m}") if months else ""


def _check_month(value: str) -> None:
    from rag_resources.settings import checked_month

    try:
        checked_month(value)
    except ValueError as error:
        message = _("FIRST_MONTH: “{value}” will not do: {reason}.").format(
            value=shown(value), reason=error
        )
        raise InvalidParameterError(message) from error


def _home() -> Path:
    """Return the state folder that is set, or a new one that holds nothing of the sample."""
    present = {**present_values(), **os.environ}.get("RAG_HOME")
    if present:
        return Path(present)
    if not DEFAULT_HOME.exists():
        return DEFAULT_HOME
    note(
        _(
            "Your notes get a folder of state of their own, {home}: {default} already has data."
        ).format(home=OWN_HOME, default=DEFAULT_HOME)
    )
    return OWN_HOME


def _nothing(folder: Path, found: "Survey") -> InvalidSourceError:
    from rag_resources.core.quoting import printable
    from rag_resources.documents.media_types import SUFFIXES
    from rag_resources.ingestion.sources import READERS

    if found.rejected_count:
        return InvalidSourceError(
            _("No note was stored: all were rejected ({count}).").format(count=found.rejected_count)
        )
    return InvalidSourceError(
        _(
            "There are no notes to read in {path}. Read are {suffixes}, and as documents "
            "{documents}."
        ).format(
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
                say(
                    ngettext(
                        "Written: {path}, {count} question to fill in. Change each question to "
                        "the one that you would ask, and write its answer; those without an "
                        "answer do not count.",
                        "Written: {path}, {count} questions to fill in. Change each question to "
                        "the one that you would ask, and write its answer; those without an "
                        "answer do not count.",
                        len(entries),
                    ).format(path=QUESTIONS_FILE, count=len(entries))
                )
    if _write_file(ENV_FILE, "\n".join(env_lines(values)) + "\n", force=force):
        written.append(ENV_FILE)
        if tell:
            say(_("Written: {path}.").format(path=ENV_FILE))
    elif lines := differing(values):
        note(_("These lines are missing in it, or are others:"))
        for line in lines:
            note(f"  {line}")
    return written


def _write_file(path: Path, text: str, *, force: bool) -> bool:
    from rag_resources.files import PRIVATE, set_aside, write_atomically

    if path.exists():
        if not force:
            note(
                _(
                    "{path} exists and was left alone. --force replaces it, and keeps the former "
                    "one."
                ).format(path=path)
            )
            return False
        set_aside(path)
    try:
        write_atomically(path, text, mode=PRIVATE)
    except OSError as error:
        raise InvalidParameterError(
            _(
                "{path} cannot be written: check the folder, the permissions and the free space."
            ).format(path=path)
        ) from error
    return True
