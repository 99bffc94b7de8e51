"""Scores found passages by a second embedding model, which makes the vectors that it lacks.

So a new model serves from its first minute, while its vectors are still being made. Blending its
scores with the others belongs in `core.reranking`.
"""

from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from uuid import UUID

from rag_resources.core.deadline import Deadline
from rag_resources.core.retrievers import VectorKind
from rag_resources.core.types import ScoredChunk, Vectors
from rag_resources.database.readers import Reads
from rag_resources.providers.protocols import Embedder
from rag_resources.store.models import require_model
from rag_resources.store.passages import fetch_result_vectors
from rag_resources.store.vectors import OwnerText, select_texts

BATCH = 5

KeepVectors = Callable[[str, Mapping[UUID, str], Vectors], None]
"""Stores the vectors of a model: of these texts by chunk, in that order, `(n, dimension)`."""


def score_again(
    database: Reads,
    embedder: Embedder,
    query: str,
    chunks: Sequence[ScoredChunk],
    scores: MutableMapping[UUID, float],
    *,
    keep: KeepVectors,
    deadline: Deadline,
) -> bool:
    """Add the cosine of each chunk with a question, by the standard vectors of a model.

    Args:
        database: Where the vectors are.
        embedder: The model, which must be registered.
        query: The question.
        chunks: Best first; scored in this order, so that what is missing at the end of the time are
            the last.
        scores: Filled in, by chunk id.
        keep: Stores the vectors that were made.
        deadline: When to stop.

    Returns:
        Whether there was time for all of them.

    Raises:
        ModelMissingError: The model is not registered.
    """
    model = embedder.info.name
    with database.snapshot(deadline) as connection:
        require_model(connection, model)
        pairs = [(chunk.chunk_id, chunk.note_id) for chunk in chunks]
        known = fetch_result_vectors(connection, model, pairs, by_notes=False)
        lacking = {chunk.note_id for chunk in chunks if chunk.chunk_id not in known}
        texts = {own.owner: own for own in select_texts(connection, sorted(lacking), whole=False)}
    question = embedder.embed_queries([query])[0]
    size = 1 if embedder.info.varies_with_batch else BATCH
    for batch in _batches(chunks, size, known):
        missing = {key: _text(texts[key]) for key in batch if key not in known and key in texts}
        if missing:
            if deadline.expired:
                return False
            made = embedder.embed_passages(list(missing.values()))
            keep(model, missing, made)
            known |= dict(zip(missing, made, strict=True))
        scores.update((key, float(known[key] @ question)) for key in batch if key in known)
    return True


def _text(chunk: OwnerText) -> str:
    return chunk.text(VectorKind.CHUNK)


def _batches(
    chunks: Sequence[ScoredChunk], size: int, known: Mapping[UUID, Vectors]
) -> Iterator[list[UUID]]:
    """Yield the chunks in their order, so many at a time that `size` of them lack a vector."""
    batch: list[UUID] = []
    for chunk in chunks:
        batch.append(chunk.chunk_id)
        if sum(key not in known for key in batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch
