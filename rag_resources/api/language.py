"""The languages of a question and of its reader; the latter by `Accept-Language` (RFC 9110)."""

from fastapi import Request

from rag_resources.api.bodies import Search
from rag_resources.core.likely import likely_language
from rag_resources.languages.files import LANGUAGES

TELLING_WORDS = 2
"""The least words that tell the language of a question. None of 2,062 Spanish questions (XQuAD-es
and the sample's) counts as of another language so, and 16 as of none."""


def question_language(body: Search) -> str | None:
    """Return the language in which a question is read; None for the server's own."""
    if body.language != "auto":
        return body.language
    return likely_language(body.query, TELLING_WORDS) or None


def reader_language(request: Request, body: Search) -> str:
    """Return the language of what is said about a question."""
    own: str = request.app.state.settings.answer_language
    if body.language != "auto":
        return body.language or own
    return preferred_language(request.headers.get("accept-language", ""), default=own)


def preferred_language(header: str, *, default: str = LANGUAGES[0]) -> str:
    """Return the language of the catalogue that a reader prefers.

    Args:
        header: `Accept-Language`; empty if the client sent none.
        default: The language for a reader who names none that the catalogue has.
    """
    ranked: list[tuple[float, int, str]] = []
    for position, part in enumerate(header.split(",")[:_MOST_NAMED]):
        name, _, parameter = part.partition(";")
        base = name.strip().partition("-")[0].lower()
        weight = _weight(parameter)
        if base in LANGUAGES and weight > 0:
            ranked.append((-weight, position, base))
    return min(ranked)[2] if ranked else default


_MOST_NAMED = 50


def _weight(parameter: str) -> float:
    name, _, value = parameter.partition("=")
    if name.strip().lower() != "q":
        return 1.0
    try:
        weight = float(value)
    except ValueError:
        return 0.0
    return weight if 0 <= weight <= 1 else 0.0
