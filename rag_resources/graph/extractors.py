"""Extractors that read a note for the graph: rules, or a language model if the settings say so.

The language model's extractor is in `graph.language_model`.
"""

from collections.abc import Sequence
from typing import Protocol

from rag_resources.core.causal import CausalStatement, find_statements
from rag_resources.core.errors import InvalidParameterError
from rag_resources.core.graph_version import GraphPart, rules_version
from rag_resources.core.mentions import Mention, find_mentions
from rag_resources.core.messages import Message
from rag_resources.graph.language_model import LanguageModelExtractor, language_model_version
from rag_resources.providers.protocols import LanguageModel
from rag_resources.store.graph import NoteToRead

LANGUAGE_MODEL = "llm"
"""The value of the setting that makes a language model read."""


class Extractor(Protocol):
    """Finds mentions and causal statements in notes."""

    @property
    def name(self) -> str:
        """The name stored with everything that it finds."""

    @property
    def is_slow(self) -> bool:
        """Whether it takes so long that no lock may be held meanwhile."""

    def version(self, part: GraphPart) -> str:
        """Return its version for a part; another version makes the part anew."""

    def mentions(self, note: NoteToRead) -> Sequence[Sequence[Mention]]:
        """Return the mentions of each chunk.

        Raises:
            ProviderError: The note cannot be read.
            DeadlineExceededError: Reading took too long.
        """

    def statements(self, note: NoteToRead) -> Sequence[Sequence[CausalStatement]]:
        """Return the causal statements of each chunk.

        Raises:
            ProviderError: The note cannot be read.
            DeadlineExceededError: Reading took too long.
        """


class RulesExtractor:
    """The rules of `languages/es/rules/graph.toml`."""

    name = "rules"
    is_slow = False

    def version(self, part: GraphPart) -> str:
        """See `Extractor`."""
        return rules_version(part)

    def mentions(self, note: NoteToRead) -> list[list[Mention]]:
        """See `Extractor`."""
        return find_mentions(note.title, [chunk.content for chunk in note.chunks], note.tags)

    def statements(self, note: NoteToRead) -> list[list[CausalStatement]]:
        """See `Extractor`."""
        return [find_statements(chunk.content) for chunk in note.chunks]


def build_extractor(name: str, language_model: LanguageModel | None) -> Extractor:
    """Return the extractor that the settings name.

    Args:
        name: `rules` or `llm`.
        language_model: None if none is configured.

    Raises:
        InvalidParameterError: `llm` without a language model.
    """
    if name != LANGUAGE_MODEL:
        return RulesExtractor()
    if language_model is None:
        raise InvalidParameterError(Message.GRAPH_NEEDS_LANGUAGE_MODEL, extractor=name)
    return LanguageModelExtractor(language_model)


def extractor_version(name: str, part: GraphPart, model: str | None) -> str:
    """Return the version of a part under these settings, even if they cannot be used."""
    if name != LANGUAGE_MODEL:
        return rules_version(part)
    return language_model_version(part, model or "")
