"""The Spanish rules that the core uses: sentences, words, questions, contextual prefix."""

from rag_resources.core import rules
from rag_resources.languages.files import LANGUAGES, names, read


def bind() -> None:
    """Pass the rules to the core."""
    language = LANGUAGES[0]
    files = names(language, "rules")
    rules.bind({name.removesuffix(".toml"): read(language, f"rules/{name}") for name in files})
