"""The retriever `graph`: chunks linked by the causal graph to what the other retrievers found.

Only questions about causes follow it.
"""

from collections.abc import Iterator

from rag_resources.core.configuration import RetrievalConfig
from rag_resources.core.mentions import question_names
from rag_resources.core.query import Intent
from rag_resources.core.retrievers import RankedList
from rag_resources.retrieval.retrievers.protocol import Question
from rag_resources.store.ranked_lists import Links, ListRequest
from rag_resources.store.search import SearchPlan


class GraphRetriever:
    """Follows links from the chunks that the other retrievers found; needs no model."""

    def dependency(self, config: RetrievalConfig) -> str:
        """See `Retriever`."""
        return "graph"

    def models(self, config: RetrievalConfig) -> tuple[str, ...]:
        """See `Retriever`."""
        return ()

    def lists(self, question: Question, plan: SearchPlan) -> Iterator[ListRequest]:
        """See `Retriever`."""
        config, query = question.request.config.graph, question.request.query
        links = Links(
            question.seeds, tuple(question_names(query)), config.deepest, config.max_depth
        )
        if question.intent is Intent.CAUSAL:
            yield ListRequest(RankedList.GRAPH_CAUSES, text=query, links=links)
