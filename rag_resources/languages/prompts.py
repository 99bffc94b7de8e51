"""The prompts of language models: a file for each in `es/prompts`, versioned by its hash."""

from dataclasses import dataclass
from functools import cache

from rag_resources.core.configuration import canonical_hash
from rag_resources.languages.files import LANGUAGES, names, read


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt without its data; the caller puts the data before the task.

    Attributes:
        name: The file's name.
        system: Who the model is, and that data are not instructions.
        task: What to do with the data; a `str.format` template where its caller says so.
    """

    name: str
    system: str
    task: str

    @property
    def version(self) -> str:
        """What is stored with results: the name, and a hash that changes with the wording."""
        return f"{self.name}-{canonical_hash([self.system, self.task])[:8]}"


@cache
def prompt(name: str) -> Prompt:
    """Return a prompt in Spanish, the language of the notes."""
    return Prompt(name, **read(LANGUAGES[0], f"prompts/{name}.toml"))


@cache
def prompts_version() -> str:
    """Return a version that identifies all prompts together."""
    files = names(LANGUAGES[0], "prompts")
    return canonical_hash([prompt(name.removesuffix(".toml")).version for name in files])
