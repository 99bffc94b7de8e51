"""Tells the language of a text by its stop words and its letters."""

from rag_resources.core.rules import word_rules
from rag_resources.core.wording import fold
from rag_resources.languages.files import LANGUAGES

_OWN_LETTERS = {
    "es": frozenset("áíóúñ"),
    "fr": frozenset("àâçèêëîïôœùû"),
    "en": frozenset[str](),
}


def likely_language(text: str, least: int = 5) -> str:
    """Return the language of most of a text's telling words; empty if it has hardly any.

    These are its stop words, and words with a letter that no other of the languages has. Of
    languages with equally many it is the first of `LANGUAGES`.

    Args:
        text: Of any length.
        least: With fewer telling words in every language, the text's language is unknown.
    """
    words = [word.strip(".,;:¿?¡!«»\"'()") for word in text.casefold().split()]
    folded = list(map(fold, words))
    counts = {
        language: sum(word in stop for word in folded)
        + sum(not _OWN_LETTERS[language].isdisjoint(word) for word in words)
        for language, stop in _stop_words().items()
    }
    best = max(LANGUAGES, key=lambda language: counts[language])
    return best if counts[best] >= least else ""


def _stop_words() -> dict[str, frozenset[str]]:
    rules = {language: word_rules(language) for language in LANGUAGES}
    return {
        language: frozenset(f"{rule.stop} {rule.negations} {rule.numbers}".split())
        for language, rule in rules.items()
    }
