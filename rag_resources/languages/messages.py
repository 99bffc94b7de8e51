"""The wording of messages: bound to the codes for operators, rendered on demand for readers."""

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from rag_resources.core import messages
from rag_resources.core.errors import InvalidParameterError
from rag_resources.core.quoting import shown
from rag_resources.core.texts import from_stored, reworded
from rag_resources.languages.files import LANGUAGES, names, read


@cache
def wording(language: str) -> Mapping[str, str]:
    """Return the templates of a language, by code.

    Raises:
        ValueError: A code has two templates.
    """
    found: dict[str, str] = {}
    for name in names(language, "messages"):
        area = read(language, f"messages/{name}")
        if twice := found.keys() & area.keys():
            raise ValueError(f"in two files: {', '.join(sorted(twice))}")
        found |= area
    return found


OPERATORS = ("es", "en")
"""The languages that operators may choose: those with every message."""


@cache
def operators() -> str:
    """Return the language that `RAG_LANG` names; Spanish if it names none of these languages.

    It is read here, from the environment or `.env`, because messages are needed before settings
    are; `settings` refuses any other value.
    """
    wanted = os.environ.get("RAG_LANG", "")
    if not wanted and Path(".env").is_file():
        from rag_resources.env_file import present_values  # Most processes need no parser.

        wanted = present_values().get("RAG_LANG") or ""
    return wanted if wanted in OPERATORS else OPERATORS[0]


def readers(asked: str | None, default: str) -> str:
    """Return the language of what is said of a question to an operator who asks it.

    Args:
        asked: The language that the call names; None or empty if it names none.
        default: The language in which questions are read otherwise. An operator who has chosen
            another language than the first one reads in it all the same.
    """
    own = operators()
    return asked or (own if own != OPERATORS[0] else default)


def bind() -> None:
    """Give every code its wording in the operators' language."""
    messages.bind(_of_operators())


def _of_operators() -> Mapping[str, str]:
    return {**wording(LANGUAGES[0]), **wording(operators())}


def render(text: str, language: str) -> str:
    """Render a text in a language; if it lacks the message, in Spanish.

    Args:
        text: A `core.texts.Text`; an ordinary string is returned as it is.
        language: One of `LANGUAGES`, also with a region, as `fr-CA`; Spanish for any other.
    """
    base = language.replace("_", "-").split("-")[0].lower()
    if base not in LANGUAGES:
        return str(text)
    from rag_resources.languages.formats import ReaderFormatter  # Most processes need no Babel.

    return reworded(text, wording(base), ReaderFormatter(base))


def check_language(language: str) -> None:
    """Refuse a language that readers cannot be answered in.

    Raises:
        InvalidParameterError: It is not one of `LANGUAGES`.
    """
    if language not in LANGUAGES:
        known = ", ".join(LANGUAGES)
        message = messages.Message.LANGUAGE_UNKNOWN.format(value=shown(language), known=known)
        raise InvalidParameterError(message, language=language)


def restored(stored: Mapping[str, Any]) -> str:
    """Return the operators' wording of what `core.texts.to_stored` stored; `render` accepts it."""
    return from_stored(stored, _of_operators())
