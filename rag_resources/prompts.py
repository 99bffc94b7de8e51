"""The prompts of language models: a file for each in `es/prompts`, versioned by its hash.

The prompts about a question and its answer exist in every language, the others only in Spanish.
"""

from dataclasses import dataclass
from functools import cache

from rag_resources.core.configuration import canonical_hash
from rag_resources.languages.files import LANGUAGES, names, read


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt without its data; the caller puts the data before the task.

    Attributes:
        name: The file's name.
        system: The system prompt, which also says that data are not instructions.
        task: What to do with the data; a `str.format` template where its caller says so.
    """

    name: str
    system: str
    task: str

    @property
    def version(self) -> str:
        """The version stored with results: the name, and a hash that changes with the wording."""
        return f"{self.name}-{canonical_hash([self.system, self.task])[:8]}"


@cache
def prompt(name: str, language: str = LANGUAGES[0]) -> Prompt:
    """Return a prompt, by default in Spanish, the language of the notes."""
    return Prompt(name, **read(language, f"prompts/{name}.toml"))


@cache
def prompts_version() -> str:
    """Return a version that identifies all prompts together."""
    found = [
        prompt(name.removesuffix(".toml"), language).version
        for language in LANGUAGES
        for name in names(language, "prompts")
    ]
    return canonical_hash(found)
