"""The protocol of a retriever, and the question that it is given."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from rag_resources.core.configuration import RetrievalConfig
from rag_resources.core.query import Intent
from rag_resources.retrieval.embedding import QuestionVectors
from rag_resources.retrieval.request import Request
from rag_resources.retrieval.stages import Stages
from rag_resources.store.ranked_lists import ListRequest
from rag_resources.store.search import SearchPlan


@dataclass(frozen=True, slots=True)
class Question:
    """One question, ready for the search.

    Attributes:
        note_model: Model of the whole-note vectors, which find notes not yet chunked.
        intent: The kind of answer that it asks for.
        seeds: The chunks that were found so far, best first, for retrievers that follow links.
    """

    request: Request
    vectors: QuestionVectors
    stages: Stages
    note_model: str
    intent: Intent = Intent.ABSTRACT
    seeds: tuple[UUID, ...] = ()


class Retriever(Protocol):
    """A way of finding candidates."""

    def dependency(self, config: RetrievalConfig) -> str:
        """Name its dependency, for the circuit breaker; each model is a separate dependency."""

    def models(self, config: RetrievalConfig) -> tuple[str, ...]:
        """Name the models that must embed the question."""

    def lists(self, question: Question, plan: SearchPlan) -> Iterable[ListRequest]:
        """Return the ranked lists to fetch.

        Args:
            question: The question to search.
            plan: What the database contains.

        Raises:
            ProviderError: A model is missing, or its vectors have another dimension.
            Exception: What `QuestionVectors.of` raises.
        """
