"""The kinds of retriever, and the ranked lists that each of them makes.

How they are searched is in `retrieval.finding`, their names and weights in a configuration in
`core.configuration`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from rag_resources.languages.messages import Text, _


class RankedList(StrEnum):
    """The ranked lists that are fused, by their names in results."""

    SEMANTIC = "semantic"
    CONTEXTUAL = "semantic_contextual"
    WINDOWS = "windows"
    FULLTEXT = "fulltext"
    GRAPH_CAUSES = "graph_causes"
    NOTES = "notes_semantic"


class RetrieverName(StrEnum):
    """The names of retrievers in configurations; a new one has an entry in `KINDS`."""

    SEMANTIC = "semantic"
    WINDOWS = "windows"
    FULLTEXT = "fulltext"
    GRAPH = "graph"


class VectorKind(StrEnum):
    """What a vector stands for: a chunk's text, the same under its context, a window, a note."""

    CHUNK = "chunk"
    CONTEXTUAL = "contextual"
    WINDOW = "window"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class RetrieverKind:
    """The properties of a kind of retriever.

    Attributes:
        searches_by: Vectors or words; a strategy may use only one of the two. Or links, from what
            the others found, after them; strategies of vectors or words alone do not use these.
        stand_ins: Retrievers to use if it fails, unless one of them was used anyway.
        lists: Its ranked lists.
        unavailable: The message for the user if it fails and no other retriever of the same kind of
            search worked; None if only `degraded` reports it.
    """

    searches_by: Literal["vectors", "words", "links"]
    stand_ins: tuple[RetrieverName, ...]
    lists: tuple[RankedList, ...]
    unavailable: Text | None


KINDS: Mapping[RetrieverName, RetrieverKind] = {
    RetrieverName.SEMANTIC: RetrieverKind(
        searches_by="vectors",
        stand_ins=(RetrieverName.FULLTEXT,),
        lists=(RankedList.SEMANTIC, RankedList.CONTEXTUAL, RankedList.NOTES),
        unavailable=_("Semantic search is unavailable, using keyword search"),
    ),
    RetrieverName.WINDOWS: RetrieverKind(
        searches_by="vectors",
        stand_ins=(RetrieverName.SEMANTIC,),
        lists=(RankedList.WINDOWS,),
        unavailable=_("Semantic search is unavailable, using keyword search"),
    ),
    RetrieverName.FULLTEXT: RetrieverKind(
        searches_by="words",
        stand_ins=(RetrieverName.SEMANTIC,),
        lists=(RankedList.FULLTEXT,),
        unavailable=_("Keyword search is unavailable, using semantic search"),
    ),
    RetrieverName.GRAPH: RetrieverKind(
        searches_by="links",
        stand_ins=(),
        lists=(RankedList.GRAPH_CAUSES,),
        unavailable=None,
    ),
}
"""Every kind, in the order in which retrievers are used."""

RETRIEVER_OF: Mapping[RankedList, RetrieverName] = {
    ranked: name for name, kind in KINDS.items() for ranked in kind.lists
}
