"""The retriever `semantic`: chunks by their two vectors, notes not yet chunked by their own.

Functions that `retrieval.retrievers.windows` shares are here too.
"""

from collections.abc import Iterator, Sequence

from rag_resources.core.configuration import RetrievalConfig
from rag_resources.core.errors import InvalidEmbeddingError, ModelMissingError
from rag_resources.core.messages import Message
from rag_resources.core.retrievers import RankedList
from rag_resources.core.types import ModelInfo
from rag_resources.retrieval.retrievers.protocol import Question
from rag_resources.store.ranked_lists import EmbeddedQuery, ListRequest
from rag_resources.store.search import SearchPlan


class SemanticRetriever:
    """Finds the nearest vectors of the configuration's model."""

    def dependency(self, config: RetrievalConfig) -> str:
        """See `Retriever`."""
        return f"semantic:{config.unit}:{config.model}"

    def models(self, config: RetrievalConfig) -> tuple[str, ...]:
        """See `Retriever`."""
        return (config.model,)

    def lists(self, question: Question, plan: SearchPlan) -> Iterator[ListRequest]:
        """See `Retriever`."""
        config = question.request.config
        if config.unit == "notes":
            yield from by_vectors(question, RankedList.NOTES_SEMANTIC, config.model, plan)
            return
        yield from by_vectors(question, RankedList.SEMANTIC, config.model, plan)
        if config.contextual:
            yield from by_vectors(question, RankedList.CONTEXTUAL, config.model, plan)
        if plan.any_unchunked:
            yield from beside_chunks(question, RankedList.NOTES_SEMANTIC, plan)


def beside_chunks(
    question: Question, ranked: RankedList, plan: SearchPlan
) -> Sequence[ListRequest]:
    """Return the lists of the notes not yet chunked.

    Empty if their model does not work: full text and chunks still find the rest.
    """
    model = question.note_model
    if model not in plan.models:
        return ()
    try:
        return list(by_vectors(question, ranked, model, plan))
    except Exception as error:  # noqa: BLE001 -- after any error the other lists still work
        question.stages.degrade("embed", error, component=f"embedding:{model}")
        return ()


def by_vectors(
    question: Question, ranked: RankedList, model: str, plan: SearchPlan
) -> Iterator[ListRequest]:
    """Yield a list for each text of a question, searched by its vector under a model.

    Raises:
        ModelMissingError: Nothing is indexed with that model.
        InvalidEmbeddingError: Its vectors are of another dimension now.
        Exception: What `QuestionVectors.of` raises.
    """
    info = plan.models.get(model)
    if info is None:
        raise ModelMissingError(Message.MODEL_NOT_INDEXED.format(model=model), model=model)
    vectors = question.vectors.of(model)
    if vectors.shape[1] != info.dimension:
        message = Message.EMBEDDING_DIMENSION.format(
            model=model, expected=info.dimension, found=vectors.shape[1]
        )
        raise InvalidEmbeddingError(message, model=model)
    threshold = _threshold(question.request.config, info)
    for number, vector in enumerate(vectors):
        embedded = EmbeddedQuery(info, vector, threshold)
        yield ListRequest(ranked, embedded=embedded, question=number)


def _threshold(config: RetrievalConfig, info: ModelInfo) -> float:
    """Return the configuration's threshold for its model, or else the model's own."""
    if info.name == config.model and config.similarity_threshold is not None:
        return config.similarity_threshold
    return info.similarity_threshold
