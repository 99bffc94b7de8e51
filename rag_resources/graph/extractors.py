"""What reads a note for the graph: rules, or a language model if one is configured."""

from collections.abc import Sequence
from typing import Protocol

from rag_resources.core.causal import CausalStatement, find_statements
from rag_resources.core.graph_version import GraphPart, rules_version
from rag_resources.core.mentions import Mention, find_mentions
from rag_resources.store.graph import NoteToRead


class Extractor(Protocol):
    """Finds mentions and causal statements in notes."""

    @property
    def name(self) -> str:
        """Stored with everything that it finds."""

    def version(self, part: GraphPart) -> str:
        """Identify how it makes a part."""

    def mentions(self, note: NoteToRead) -> Sequence[Sequence[Mention]]:
        """Return the mentions of each chunk.

        Raises:
            ProviderError: The note cannot be read.
        """

    def statements(self, note: NoteToRead) -> Sequence[Sequence[CausalStatement]]:
        """Return the causal statements of each chunk.

        Raises:
            ProviderError: The note cannot be read.
        """


class RulesExtractor:
    """The rules of `languages/es/rules/graph.toml`."""

    name = "rules"

    def version(self, part: GraphPart) -> str:
        """See `Extractor`."""
        return rules_version(part)

    def mentions(self, note: NoteToRead) -> list[list[Mention]]:
        """See `Extractor`."""
        return find_mentions(note.title, [chunk.content for chunk in note.chunks], note.tags)

    def statements(self, note: NoteToRead) -> list[list[CausalStatement]]:
        """See `Extractor`."""
        return [find_statements(chunk.content) for chunk in note.chunks]
