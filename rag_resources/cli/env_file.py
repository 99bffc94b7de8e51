"""The `.env` file that `rag init` writes: its lines, and the differences from an existing file."""

import re
from collections.abc import Mapping
from pathlib import Path

from rag_resources.env_file import ENV_FILE, present_values
from rag_resources.languages.messages import _

_PLAIN = re.compile(r"[\w./:@+=,-]*")

_COMMENTS = {
    "RAG_HOME": _("The folder of all state: database, Dagster, reports."),
    "NOTES_SOURCE": _("Folder or file of notes; every run reads it again."),
    "DOCUMENTS_SOURCE": _("Folder of documents (PDF, DOCX, HTML, workbooks)."),
    "GOLDEN_SOURCE": _("The golden questions, with their answers and the notes that answer them."),
    "FIRST_MONTH": _(
        "The first month: that of the oldest note. Earlier ones are stored and searched, but no "
        "month processes them."
    ),
}


def env_lines(values: Mapping[str, str]) -> list[str]:
    """Return the lines of a commented file that sets these variables."""
    lines = [
        "# " + _("Written by “rag init”. All variables are in .env.example, with their defaults.")
    ]
    for name, value in values.items():
        lines += ["", f"# {_COMMENTS[name]}", assignment(name, value)]
    lines += [
        "",
        "# " + _("The language of questions and answers: es, fr or en."),
        "# ANSWER_LANGUAGE=es",
    ]
    lines += [
        "",
        "# " + _("To have a language model write the answers, for instance with Ollama:"),
        "# OLLAMA_HOST=http://127.0.0.1:11434",
    ]
    return [*lines, "# LLM_MODEL=ollama:llama3.2"]


def assignment(name: str, value: str) -> str:
    """Return a line that sets a variable to exactly this value."""
    if _PLAIN.fullmatch(value):
        return f"{name}={value}"
    quoted = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"{name}='{quoted}'"


def differing(values: Mapping[str, str], file: Path = ENV_FILE) -> list[str]:
    """Return the lines that are missing in a file, or have another value there."""
    present = present_values(file)
    return [assignment(name, value) for name, value in values.items() if present.get(name) != value]
