"""The rules that the core uses: Spanish for notes, and those of each language for questions."""

from rag_resources.core import rules
from rag_resources.languages.files import LANGUAGES, names, read


def bind() -> None:
    """Pass the rules to the core."""
    notes = LANGUAGES[0]
    files = names(notes, "rules")
    rules.bind(
        {name.removesuffix(".toml"): read(notes, f"rules/{name}") for name in files},
        {language: read(language, "rules/questions.toml") for language in LANGUAGES},
        {language: read(language, "rules/words.toml") for language in LANGUAGES},
    )
