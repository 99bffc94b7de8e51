"""The scale of a model's cosines, measured on a sample of the notes.

The cosines of one model all lie above .7, of another around .3. On their scale, scores of different
models and of words compare.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rag_resources.core.sentences import sentences
from rag_resources.core.types import UNMEASURED, ModelInfo
from rag_resources.database.pool import Database
from rag_resources.database.queries import queries
from rag_resources.providers.protocols import Embedder
from rag_resources.store.models import fetch_model

_SAMPLE_NOTES = 100
_FEWEST_NOTES = 10
_NOTE_CHARS = 1_000

# Where the median of unrelated texts and the highest hundredth of related ones lie on the scale of
# e5, whose ends were chosen on questions.
_UNRELATED, _RELATED = 0.35, 0.59


def measured_info(database: Database, embedder: Embedder) -> ModelInfo:
    """Return a model with its scale: its own, the stored one, or one measured on the notes.

    Unmeasured while there are too few notes.

    Raises:
        ProviderError: The model cannot be used.
    """
    info = embedder.info
    if info.cosine_range != UNMEASURED:
        return info
    with database.transaction() as connection:
        stored = fetch_model(connection, info.name)
        found = queries().sample_texts(connection, most=_SAMPLE_NOTES, chars=_NOTE_CHARS)
        texts = [row.content for row in found]
    if stored and stored.cosine_range != UNMEASURED and stored.digest == info.digest:
        measured = stored.cosine_range
    else:
        measured = cosine_range(embedder, texts)
    return replace(info, cosine_range=measured, similarity_threshold=max(0.0, measured[0]))


def cosine_range(embedder: Embedder, texts: Sequence[str]) -> tuple[float, float]:
    """Measure which cosines map to 0 and 1: those of a sentence with its note and with others.

    Args:
        embedder: The model.
        texts: Of notes; those of one sentence do not count.

    Returns:
        The range, within [-1, 1]; `UNMEASURED` if there are too few notes, or nothing tells them
        apart.
    """
    asked, rest = [], []
    for text in texts:
        spans = sentences(text)
        if len(spans) > 1:
            middle = spans[len(spans) // 2]
            asked.append(text[middle.start : middle.end])
            rest.append(text[: middle.start] + text[middle.end :])
    if len(asked) < _FEWEST_NOTES:
        return UNMEASURED
    cosines = embedder.embed_queries(asked) @ embedder.embed_passages(rest).T
    related = float(np.quantile(np.diagonal(cosines), 0.99))
    unrelated = float(np.median(cosines[~np.eye(len(asked), dtype=bool)]))
    unit = (related - unrelated) / (_RELATED - _UNRELATED)
    if unit <= 0:
        return UNMEASURED
    low = unrelated - _UNRELATED * unit
    return max(-1.0, low), min(1.0, low + unit)
