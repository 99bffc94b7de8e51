"""The language data that the core uses: one class per file of `languages/es/rules`.

The rules for notes are Spanish, because the notes are. A question may be in any language of
`languages`.

The core reads no files. `languages` binds the data when the package is imported, before the modules
that use them.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

_bound: list["Rules"] = []
_questions: dict[str, "QuestionRules"] = {}
_words: dict[str, "WordRules"] = {}


@dataclass(frozen=True, slots=True)
class SentenceRules:
    """Where sentences and clauses end; `opening` and `closing` are kinds of abbreviations.

    Attributes:
        lettered: Nouns that a capital letter may follow as a label, as in "plan B".
        starters: Words that begin sentences and no names, in small letters.
    """

    opening: list[str]
    closing: list[str]
    lettered: list[str]
    starters: list[str]
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
        coordinated: Expressions for a further question inside the question marks of the first;
            empty in a language without rules for it.
        reading: Rules for the periods that a question names; see `core.question_reading`.
    """

    idioms: list[str]
    joiners: dict[str, list[str]]
    tags: list[str]
    interrogatives: list[str]
    intents: dict[str, list[str]]
    coordinated: dict[str, list[str]] = field(default_factory=dict)
    reading: dict[str, list[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CausalMarker:
    """Words that relate a cause and its effect; see `languages/es/rules/graph.toml`."""

    name: str
    pattern: str
    order: Literal["effect-first", "cause-first"]
    relation: str
    confidence: float
    fronted: bool = False
    back: bool = False
    comma: bool = False


@dataclass(frozen=True, slots=True)
class GraphRules:
    """Patterns of names, dates and causal statements."""

    particles: list[str]
    lettered: list[str]
    articles: list[str]
    titles: list[str]
    never: str
    months: list[str]
    markers: list[CausalMarker]

    def __post_init__(self) -> None:
        markers = [CausalMarker(**item) for item in map(_fields, self.markers)]
        object.__setattr__(self, "markers", markers)


def _fields(item: Any) -> Mapping[str, Any]:
    return asdict(item) if isinstance(item, CausalMarker) else item


@dataclass(frozen=True, slots=True)
class Rules:
    """All rules of the language of the notes."""

    sentences: SentenceRules
    prefix: PrefixRules
    words: WordRules
    questions: QuestionRules
    graph: GraphRules


def bind(
    files: Mapping[str, Mapping[str, Any]],
    questions: Mapping[str, Mapping[str, Any]],
    words: Mapping[str, Mapping[str, Any]],
) -> None:
    """Set the rules; `languages` does this when `rag_resources` is imported.

    Args:
        files: The content of each file of the notes' language, by its name without `.toml`.
        questions: The content of `questions.toml`, by language.
        words: The content of `words.toml`, by language.

    Raises:
        TypeError: A file or a key is missing, or one is unknown.
    """
    kinds = {
        "sentences": SentenceRules,
        "prefix": PrefixRules,
        "words": WordRules,
        "questions": QuestionRules,
        "graph": GraphRules,
    }
    _bound[:] = [Rules(**{name: kinds[name](**data) for name, data in files.items()})]
    _questions.clear()
    _questions.update({language: QuestionRules(**data) for language, data in questions.items()})
    _words.clear()
    _words.update({language: WordRules(**data) for language, data in words.items()})


def rules() -> Rules:
    """Return the rules of the notes' language."""
    return _bound[0]


def question_rules(language: str) -> QuestionRules:
    """Return the rules of questions in a language."""
    return _questions[language]


def word_rules(language: str) -> WordRules:
    """Return the stop words, negations and number words of a language."""
    return _words[language]
