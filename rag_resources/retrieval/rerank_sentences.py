"""Re-ranking without a language model: by the sentence of a passage nearest to the question."""

from collections.abc import Iterator, Sequence

import numpy as np

from rag_resources.core.deadline import Deadline
from rag_resources.core.errors import DeadlineExceededError
from rag_resources.core.sentences import sentences
from rag_resources.core.text import count_tokens
from rag_resources.languages.messages import _
from rag_resources.providers.protocols import Embedder, Reranker, Vectors

# An embedded model cannot be interrupted, so this many tokens are embedded between two checks of
# the deadline.
_BATCH_TOKENS = 512


class SentenceReranker(Reranker):
    """Scores a passage by the best cosine between the question and any sentence of it.

    Thread-safe. Most of its time is spent embedding sentences, so pass an embedder with a
    cache.

    Args:
        embedder: Embeds the question and the sentences; may differ from the retrievers' embedder.
    """

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    def score(self, query: str, passages: Sequence[str], *, deadline: Deadline) -> list[float]:
        """Score passages; one without sentences scores 0. Same result and errors as `Reranker`."""
        cut = [[text[span.start : span.end] for span in sentences(text)] for text in passages]
        texts = list(dict.fromkeys(sentence for own in cut for sentence in own))
        question = self._embedder.embed_queries([query])[0]
        cosines: dict[str, float] = {}
        for batch in _batches(texts):
            if deadline.expired:
                raise DeadlineExceededError(
                    _("There is no time left for this part of the search."),
                    scored=len(cosines),
                    of=len(texts),
                )
            vectors = self._embedder.embed_passages(batch)
            cosines.update(zip(batch, _cosines(vectors, question), strict=True))
        return [max((cosines[sentence] for sentence in own), default=0.0) for own in cut]


def _cosines(vectors: Vectors, question: Vectors) -> list[float]:
    return [float(cosine) for cosine in np.clip(vectors @ question, 0.0, 1.0)]


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    """Cut texts into consecutive batches of at most `_BATCH_TOKENS`, at least one text each."""
    batch: list[str] = []
    n_tokens = 0
    for text in texts:
        length = count_tokens(text)
        if batch and n_tokens + length > _BATCH_TOKENS:
            yield batch
            batch, n_tokens = [], 0
        batch.append(text)
        n_tokens += length
    if batch:
        yield batch
