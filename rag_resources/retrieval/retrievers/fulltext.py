"""The retriever `fulltext`: chunks, and notes not yet chunked, by their words."""

from collections.abc import Iterator

from rag_resources.core.configuration import RetrievalConfig
from rag_resources.core.retrievers import RankedList
from rag_resources.retrieval.retrievers.protocol import Question
from rag_resources.store.ranked_lists import ListRequest
from rag_resources.store.search import SearchPlan


class FulltextRetriever:
    """BM25 search; it needs no model."""

    def dependency(self, config: RetrievalConfig) -> str:
        """See `Retriever`."""
        return f"fulltext:{config.unit}"

    def models(self, config: RetrievalConfig) -> tuple[str, ...]:
        """See `Retriever`."""
        return ()

    def lists(self, question: Question, plan: SearchPlan) -> Iterator[ListRequest]:
        """See `Retriever`."""
        by_chunks = question.request.config.unit == "chunks"
        for ranked, wanted in (
            (RankedList.FULLTEXT, by_chunks),
            (RankedList.NOTES_FULLTEXT, plan.any_unchunked or not by_chunks),
        ):
            if wanted:
                for number, text in enumerate(question.vectors.asked.queries):
                    yield ListRequest(ranked, text=text, question=number)
