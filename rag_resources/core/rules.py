"""The language data that the core uses: one class per file of `languages/es/rules`.

The core reads no files. `languages` binds the data when the package is imported, before the modules
that use them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_bound: list["Rules"] = []


@dataclass(frozen=True, slots=True)
class SentenceRules:
    """Where sentences and clauses end; `opening` and `closing` are kinds of abbreviations."""

    opening: list[str]
    closing: list[str]
    small_letters: str
    conjunctions: list[str]


@dataclass(frozen=True, slots=True)
class PrefixRules:
    """The wording of the contextual prefix: `str.format` templates."""

    part: str
    previous: str
    next: str
    first: str
    middle: str
    last: str


@dataclass(frozen=True, slots=True)
class WordRules:
    """Stop words, negations and number words, separated by white space."""

    stop: str
    negations: str
    numbers: str
    tens: str


@dataclass(frozen=True, slots=True)
class QuestionRules:
    """Words that show the intent of a question, and words that join questions.

    Attributes:
        joiners: Conjunctions ("and") and adverbs ("also") between two questions.
        intents: Regular expressions by intent, in the order in which they are tried.
    """

    idioms: list[str]
    joiners: dict[str, list[str]]
    tags: list[str]
    intents: dict[str, list[str]]


@dataclass(frozen=True, slots=True)
class Rules:
    """All rules of a language."""

    sentences: SentenceRules
    prefix: PrefixRules
    words: WordRules
    questions: QuestionRules


def bind(files: Mapping[str, Mapping[str, Any]]) -> None:
    """Set the rules; `languages` does this when `rag_resources` is imported.

    Args:
        files: The content of each file, by its name without `.toml`.

    Raises:
        TypeError: A file or a key is missing, or one is unknown.
    """
    kinds = {
        "sentences": SentenceRules,
        "prefix": PrefixRules,
        "words": WordRules,
        "questions": QuestionRules,
    }
    _bound[:] = [Rules(**{name: kinds[name](**data) for name, data in files.items()})]


def rules() -> Rules:
    """Return the rules in use."""
    return _bound[0]
