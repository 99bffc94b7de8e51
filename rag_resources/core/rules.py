"""What the core knows of a language: data, one class per file of `languages/es/rules`.

The core reads no files: `languages` binds the data when the package is imported, before the
modules that use them.
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
    """Words that say nothing, deny or count, separated by white space."""

    stop: str
    negations: str
    numbers: str
    tens: str


@dataclass(frozen=True, slots=True)
class QuestionRules:
    """Words that tell what a question asks for, and what joins questions.

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
    """All of them."""

    sentences: SentenceRules
    prefix: PrefixRules
    words: WordRules
    questions: QuestionRules


def bind(files: Mapping[str, Mapping[str, Any]]) -> None:
    """Set the rules; importing `rag_resources` does it, by `languages`.

    Args:
        files: What each file holds, by its name without `.toml`.

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
