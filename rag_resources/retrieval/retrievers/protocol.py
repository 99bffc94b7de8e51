"""What a retriever is to the search that asks it, and what it is told of the question."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from rag_resources.core.configuration import RetrievalConfig
from rag_resources.retrieval.embedding import QuestionVectors
from rag_resources.retrieval.request import Request
from rag_resources.retrieval.stages import Stages
from rag_resources.store.ranked_lists import ListRequest
from rag_resources.store.search import SearchPlan


@dataclass(frozen=True, slots=True)
class Question:
    """One question, ready to be searched.

    Attributes:
        note_model: Model of the whole-note vectors, which find notes not yet chunked.
    """

    request: Request
    vectors: QuestionVectors
    stages: Stages
    note_model: str


class Retriever(Protocol):
    """One way of finding candidates."""

    def dependency(self, config: RetrievalConfig) -> str:
        """Name what it depends on, for its circuit breaker: another model may work."""

    def models(self, config: RetrievalConfig) -> tuple[str, ...]:
        """Name the models whose vectors of the question it cannot do without."""

    def lists(self, question: Question, plan: SearchPlan) -> Iterable[ListRequest]:
        """Return the ranked lists to fetch.

        Args:
            question: What is searched.
            plan: What the database holds.

        Raises:
            ProviderError: A model is missing or its vectors are of another dimension.
            Exception: What `QuestionVectors.of` raises.
        """
