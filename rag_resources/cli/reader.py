"""The language in which a command answers; commands for operators set none."""

from contextvars import ContextVar
from datetime import date

from rag_resources.languages.messages import check_language, render

_language: ContextVar[str | None] = ContextVar("language", default=None)


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
