"""The retriever `windows`: chunks by their nearest window; notes not yet chunked, as a whole."""

from collections.abc import Iterator

from rag_resources.core.configuration import RetrievalConfig
from rag_resources.core.errors import ModelMissingError
from rag_resources.core.messages import Message
from rag_resources.core.retrievers import RankedList
from rag_resources.retrieval.retrievers.protocol import Question
from rag_resources.retrieval.retrievers.semantic import beside_chunks, by_vectors
from rag_resources.store.ranked_lists import ListRequest
from rag_resources.store.search import SearchPlan


class WindowsRetriever:
    """Finds the nearest windows of the configuration's model; none with `unit: notes`."""

    def dependency(self, config: RetrievalConfig) -> str:
        """See `Retriever`."""
        return f"windows:{config.unit}:{config.model}"

    def models(self, config: RetrievalConfig) -> tuple[str, ...]:
        """See `Retriever`."""
        return (config.model,)

    def lists(self, question: Question, plan: SearchPlan) -> Iterator[ListRequest]:
        """See `Retriever`."""
        config = question.request.config
        if config.unit == "notes":
            yield from by_vectors(question, RankedList.NOTES_WINDOWS, config.model, plan)
            return
        # Without any vectors, `by_vectors` raises, as it does for the chunks.
        if config.model in plan.models and config.model not in plan.windowed:
            message = Message.WINDOWS_NOT_INDEXED.format(model=config.model)
            raise ModelMissingError(message, model=config.model)
        yield from by_vectors(question, RankedList.WINDOWS, config.model, plan)
        if plan.any_unchunked:
            yield from beside_chunks(question, RankedList.NOTES_WINDOWS, plan)
