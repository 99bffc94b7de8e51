"""The `.env` file that `rag init` writes: its lines, and the differences from an existing file."""

import re
from collections.abc import Mapping
from pathlib import Path

from rag_resources.core.messages import Message
from rag_resources.env_file import ENV_FILE, present_values

_PLAIN = re.compile(r"[\w./:@+=,-]*")

_COMMENTS = {
    "RAG_HOME": Message.ENV_HOME,
    "NOTES_SOURCE": Message.ENV_NOTES,
    "DOCUMENTS_SOURCE": Message.ENV_DOCUMENTS,
    "GOLDEN_SOURCE": Message.ENV_GOLDEN,
    "FIRST_MONTH": Message.ENV_FIRST_MONTH,
}


def env_lines(values: Mapping[str, str]) -> list[str]:
    """Return the lines of a commented file that sets these variables."""
    lines = [f"# {Message.ENV_HEADER}"]
    for name, value in values.items():
        lines += ["", f"# {_COMMENTS[name]}", assignment(name, value)]
    lines += ["", f"# {Message.ENV_LANGUAGE}", "# ANSWER_LANGUAGE=es"]
    lines += ["", f"# {Message.ENV_MODELS}", "# OLLAMA_HOST=http://127.0.0.1:11434"]
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
