"""Adopts the whole-note vectors of the application that wrote the notes.

The application's own search thus becomes a configuration that can be evaluated. Notes without a
usable vector are embedded by the same model, in `embed`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rag_resources.core.errors import InvalidParameterError
from rag_resources.core.types import TimeWindow
from rag_resources.database.pool import Database
from rag_resources.languages.messages import _
from rag_resources.providers.protocols import Embedder
from rag_resources.store.legacy_vectors import (
    UnusableVector,
    adopt_legacy_vectors,
    has_legacy_vectors,
    list_unusable_vectors,
    sample_legacy_vectors,
)
from rag_resources.store.models import keep_model

BATCH_NOTES = 1000
SAMPLE_NOTES = 8
SAMPLE_CHARS = 2000
MIN_AGREEMENT = 0.5
"""Lowest median cosine between stored vectors and those the model makes now. With another model it
is near 0. It may be below 1 for the same model: another prefix or version, or edited notes."""


@dataclass(frozen=True, slots=True)
class AdoptReport:
    """The outcome of adopting a window's vectors.

    Attributes:
        adopted: Adopted by this call.
        unusable: With the wrong dimension, or zero.
    """

    adopted: int
    unusable: Sequence[UnusableVector]


def adopt_vectors(database: Database, embedder: Embedder, window: TimeWindow) -> AdoptReport:
    """Store the application's vectors of a window as whole-note vectors of their model.

    Vectors that the application writes later are adopted by the next call. An adopted vector is
    replaced only if both the note and its vector have changed. If killed, the next call resumes.

    Args:
        database: Open; the model is registered.
        embedder: The model that made them.
        window: Range of the notes' creation times.

    Raises:
        InvalidParameterError: There is no column of vectors, or another model made them.
        ProviderError: The model cannot be used.
        DatabaseUnavailableError: The connection was lost; what was committed stays.
    """
    _check_model(database, embedder, window)
    adopted = 0
    while batch := _adopt_batch(database, embedder, window):
        adopted += batch
    with database.transaction() as connection:
        return AdoptReport(adopted, list_unusable_vectors(connection, embedder.info, window))


def _adopt_batch(database: Database, embedder: Embedder, window: TimeWindow) -> int:
    with database.bulk() as connection:
        keep_model(connection, embedder.info.name)
        return adopt_legacy_vectors(connection, embedder.info, window, batch_size=BATCH_NOTES)


def _check_model(database: Database, embedder: Embedder, window: TimeWindow) -> None:
    """Embed some notes again and compare, because many models share a dimension."""
    model = embedder.info.name
    with database.transaction() as connection:
        if not has_legacy_vectors(connection):
            raise InvalidParameterError(
                _(
                    "LEGACY_EMBEDDING_MODEL={model}, but the table “notes” has no column "
                    "“embedding”: leave the variable empty."
                ).format(model=model)
            )
        samples = sample_legacy_vectors(
            connection, embedder.info, window, max_chars=SAMPLE_CHARS, limit=SAMPLE_NOTES
        )
    if not samples:
        return
    made = embedder.embed_passages([sample.content for sample in samples])
    stored = np.stack([sample.embedding for sample in samples])
    agreement = float(np.median((made * stored).sum(axis=1)))
    if agreement < MIN_AGREEMENT:
        raise InvalidParameterError(
            _(
                "The vectors of “notes.embedding” are not those of {model}: their cosine with "
                "what that model makes of the same texts now is {cosine:.2f}. Correct "
                "LEGACY_EMBEDDING_MODEL, or leave it empty."
            ).format(model=model, cosine=agreement),
            model=model,
        )
