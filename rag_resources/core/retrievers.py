"""The kinds of retriever there are, and the ranked lists that each of them makes.

What one of them asks of models and database is its module in `retrieval.retrievers`; how a
configuration names them and weighs them is `core.configuration`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from rag_resources.core.messages import Message
from rag_resources.core.texts import Template

Documents = Literal["chunks", "notes"]
"""What a list ranks: chunks, or notes as a whole."""


class RankedList(StrEnum):
    """The ranked lists that are fused, by the names that results give them."""

    SEMANTIC = "semantic"
    CONTEXTUAL = "semantic_contextual"
    FULLTEXT = "fulltext"
    NOTES_SEMANTIC = "notes_semantic"
    NOTES_FULLTEXT = "notes_fulltext"


class RetrieverName(StrEnum):
    """The names of retrievers in configurations; a new one has an entry in `KINDS`."""

    SEMANTIC = "semantic"
    FULLTEXT = "fulltext"


@dataclass(frozen=True, slots=True)
class RetrieverKind:
    """What is known of a retriever whatever it finds.

    Attributes:
        searches_by: A strategy may ask for vectors alone, or for words alone.
        stand_ins: Which retrievers are asked if it fails and none of them was asked anyway.
        lists: What it may find, by what is ranked there.
        unavailable: What the user reads if it fails; None if only `degraded` tells.
    """

    searches_by: Literal["vectors", "words"]
    stand_ins: tuple[RetrieverName, ...]
    lists: Mapping[RankedList, Documents]
    unavailable: Template | None


KINDS: Mapping[RetrieverName, RetrieverKind] = {
    RetrieverName.SEMANTIC: RetrieverKind(
        searches_by="vectors",
        stand_ins=(RetrieverName.FULLTEXT,),
        lists={
            RankedList.SEMANTIC: "chunks",
            RankedList.CONTEXTUAL: "chunks",
            RankedList.NOTES_SEMANTIC: "notes",
        },
        unavailable=Message.SEMANTIC_UNAVAILABLE,
    ),
    RetrieverName.FULLTEXT: RetrieverKind(
        searches_by="words",
        stand_ins=(RetrieverName.SEMANTIC,),
        lists={RankedList.FULLTEXT: "chunks", RankedList.NOTES_FULLTEXT: "notes"},
        unavailable=Message.FULLTEXT_UNAVAILABLE,
    ),
}
"""Every kind, in the order in which retrievers are asked and their lists are fused."""

RETRIEVER_OF: Mapping[RankedList, RetrieverName] = {
    ranked: name for name, kind in KINDS.items() for ranked in kind.lists
}

DOCUMENTS_OF: Mapping[RankedList, Documents] = {
    ranked: documents for kind in KINDS.values() for ranked, documents in kind.lists.items()
}
