"""Rows of `embedding_models`, and the partitions that come with them."""

from rag_resources.core.errors import ProviderError
from rag_resources.core.messages import Message
from rag_resources.core.types import ModelInfo
from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries


def register_model(connection: Connection, info: ModelInfo, *, embeds_chunks: bool) -> None:
    """Make a model known: its row, its partitions, its queue of chunked notes.

    Raises:
        ProviderError: A model of that name has other weights or another dimension.
    """
    before = queries().fetch_model(connection, name=info.name)
    if before and (before.dimension, before.digest) != (info.dimension, info.digest):
        raise ProviderError(Message.MODEL_CHANGED.format(model=info.name), model=info.name)
    newly_embeds_chunks = embeds_chunks and not (before and before.embeds_chunks)
    if newly_embeds_chunks:
        queries().lock_chunking(connection)
    queries().register_model(
        connection,
        name=info.name,
        dimension=info.dimension,
        provider=info.provider,
        digest=info.digest,
        similarity_threshold=info.similarity_threshold,
        embeds_chunks=embeds_chunks,
    )
    queries().create_partitions(connection, name=info.name, dimension=info.dimension)
    if embeds_chunks and not (before and before.embeds_chunks):
        queries().request_missing_embeddings(connection, model=info.name)


def fetch_model(connection: Connection, name: str) -> ModelInfo | None:
    """Return what is stored about a model, None if it is not known."""
    row = queries().fetch_model(connection, name=name)
    if row is None:
        return None
    return ModelInfo(
        name=row.name,
        dimension=row.dimension,
        provider=row.provider,
        digest=row.digest,
        similarity_threshold=row.similarity_threshold,
        max_sequence_tokens=0,
    )
