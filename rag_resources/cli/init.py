"""`rag init`: surveys a folder of notes, and writes first settings and draft questions."""

import json
import os
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rag_resources.cli.output import JsonOption, note, picked, say, write_json
from rag_resources.cli.survey_report import show_rejected, show_survey
from rag_resources.core.errors import InvalidSourceError
from rag_resources.env_file import ENV_FILE, present_values
from rag_resources.languages.messages import _

if TYPE_CHECKING:
    from rag_resources.ingestion.survey import Survey

DRAFTS = 20
QUESTIONS_FILE = Path("preguntas.json")
DEFAULT_HOME = Path(".rag")
OWN_HOME = Path(".rag-notas")

_PLAIN = re.compile(r"[\w./:@+=,-]*")


def init(
    folder: Annotated[
        Path, typer.Argument(metavar="CARPETA", help=_("The folder (or file) of your notes."))
    ],
    home: Annotated[
        Path | None,
        typer.Option("--home", metavar="CARPETA", help=_("Folder of the state (RAG_HOME).")),
    ] = None,
    documents: Annotated[
        Path | None,
        typer.Option("--documents", metavar="CARPETA", help=_("Folder of documents (PDF, DOCX…).")),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help=_("Replaces the file; the former one is kept."))
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help=_("Only says what there is; writes no file."))
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Survey a folder of notes; write settings and drafts."""
    from rag_resources.documents.media_types import SUFFIXES
    from rag_resources.ingestion.sources import READERS
    from rag_resources.ingestion.survey import survey

    folder = folder.expanduser()
    folder = folder.resolve() if ".." in folder.parts else folder.absolute()
    found = survey(folder)
    if not found.notes and documents is None and not SUFFIXES.keys() & found.other:
        if not as_json:
            show_rejected(found.rejected, found.rejected_count)
        raise InvalidSourceError(
            _(
                "There are no notes to read in {path} (rejected: {count}). Files {suffixes} are "
                "read."
            ).format(path=folder, count=found.rejected_count, suffixes=" ".join(READERS))
        )
    if not as_json:
        show_survey(folder, found)
    values = _variables(found, folder, home=home, documents=documents)
    written = [] if dry_run else _write(values, found, force=force)
    if as_json:
        write_json(_as_json(folder, found, values, written))
    elif not dry_run:
        for path in written:
            say(_("Written: {path}.").format(path=path))
        say(
            _("Next steps: answer the questions in {path}, and “rag run”.").format(
                path=QUESTIONS_FILE
            )
        )


def _variables(
    found: "Survey", folder: Path, *, home: Path | None, documents: Path | None
) -> dict[str, str]:
    """Return the settings, in the order in which they are written."""
    from rag_resources.settings import EARLIEST_MONTH

    documents = documents or (None if found.notes else folder)
    months = [month for month in found.months if month >= EARLIEST_MONTH]
    values = {
        "RAG_HOME": str(home or _home()),
        "NOTES_SOURCE": str(folder) if found.notes else "",
        "DOCUMENTS_SOURCE": str(documents.expanduser().absolute()) if documents else "",
        "GOLDEN_SOURCE": str(QUESTIONS_FILE) if found.notes else "",
        "FIRST_MONTH": min(*months, f"{datetime.now(UTC):%Y-%m}") if months else "",
    }
    return {name: value for name, value in values.items() if value}


def _home() -> Path:
    """Return the state folder that is set, or a new one that holds nothing of the sample."""
    present = {**present_values(), **os.environ}.get("RAG_HOME")
    if present:
        return Path(present)
    return OWN_HOME if DEFAULT_HOME.exists() else DEFAULT_HOME


def _write(values: dict[str, str], found: "Survey", *, force: bool) -> list[Path]:
    """Write the missing files, or all of them by force; return those written."""
    from rag_resources.core.golden_drafts import choose_notes, draft

    files = {}
    if found.notes:
        entries = [draft(each) for each in choose_notes(found.openings, DRAFTS)]
        text = json.dumps({"entries": entries}, ensure_ascii=False, indent=1)
        files[QUESTIONS_FILE] = text + "\n"
    lines = ["# " + _("Written by “rag init”. All variables are in .env.example.")]
    lines += [assignment(name, value) for name, value in values.items()]
    lines += ["# ANSWER_LANGUAGE=es", "# OLLAMA_HOST=http://127.0.0.1:11434"]
    files[ENV_FILE] = "\n".join([*lines, "# LLM_MODEL=ollama:llama3.2"]) + "\n"
    written = [path for path, text in files.items() if _write_file(path, text, force=force)]
    if ENV_FILE not in written and (lines := _differing(values)):
        note(_("These lines are missing in it, or are others:"))
        for line in lines:
            note(f"  {line}")
    return written


def _write_file(path: Path, text: str, *, force: bool) -> bool:
    from rag_resources.files import PRIVATE, set_aside, write_atomically

    if path.exists():
        if not force:
            note(_("{path} exists and was left alone; --force replaces it.").format(path=path))
            return False
        set_aside(path)
    write_atomically(path, text, mode=PRIVATE)
    return True


def assignment(name: str, value: str) -> str:
    """Return a line that sets a variable to exactly this value."""
    if _PLAIN.fullmatch(value):
        return f"{name}={value}"
    quoted = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"{name}='{quoted}'"


def _differing(values: Mapping[str, str]) -> list[str]:
    """Return the lines that are missing in the file, or have another value there."""
    present = present_values(ENV_FILE)
    return [assignment(name, value) for name, value in values.items() if present.get(name) != value]


def _as_json(
    folder: Path, found: "Survey", values: dict[str, str], written: list[Path]
) -> dict[str, Any]:
    counts = picked(found, "notes", "fields", "languages", "dates", files="read")
    return counts | {
        "folder": folder,
        "otherFiles": found.other,
        "months": dict(sorted(found.months.items())),
        "leftOut": +found.left_out,
        "rejected": found.rejected_count,
        "rejections": [picked(each, "location", "reason") for each in found.rejected],
        "undated": [picked(each, "location", "created_at") for each in found.undated],
        "settings": values,
        "env": [assignment(name, value) for name, value in values.items()],
        "written": written,
    }
