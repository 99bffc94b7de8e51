"""The language of a reader, from the browser's `Accept-Language` (RFC 9110, 12.5.4)."""

from rag_resources.languages.files import LANGUAGES


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
