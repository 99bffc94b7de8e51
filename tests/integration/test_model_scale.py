"""Any model ranks well: its scale is measured on the notes and stored."""

from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np
import pytest

from rag_resources.application.indexing import Indexing
from rag_resources.core.types import UNMEASURED, NoteRecord, Vectors
from rag_resources.database.pool import Database
from rag_resources.indexing.scale import cosine_range
from rag_resources.ingestion.ingest import ingest
from rag_resources.settings import Settings
from rag_resources.store.models import require_model
from tests.embedders import HashEmbedder

PLACES = [
    "playa",
    "monte",
    "río",
    "lago",
    "bosque",
    "plaza",
    "calle",
    "mercado",
    "puerto",
    "iglesia",
    "molino",
    "huerta",
]
NOTES = [
    f"Fuimos a {place} con la bicicleta {number}. Comimos en {place} un plato {number} de sopa. "
    f"Volvimos de {place} por el camino {number} con lluvia."
    for number, place in enumerate(PLACES)
]


class Squeezed(HashEmbedder):
    """A model whose cosines lie between `share` and 1."""

    def __init__(self, share: float) -> None:
        super().__init__(f"openai_squeezed_{round(100 * share)}", 64)
        self._inner = HashEmbedder("inner", 63)
        self._share = share

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Embed texts, and put a part into each vector that all share."""
        vectors = self._inner.embed_queries(texts) * np.sqrt(1 - self._share)
        common = np.full((len(texts), 1), np.sqrt(self._share))
        return np.hstack([vectors, common]).astype(np.float32)

    embed_queries = embed_passages


def scaled(model: Squeezed, question: str, texts: Sequence[str]) -> Vectors:
    low, high = cosine_range(model, NOTES)
    cosines = model.embed_passages(texts) @ model.embed_queries([question])[0]
    return (cosines - low) / (high - low)


def test_two_models_of_different_squeeze_score_alike() -> None:
    wide, narrow = Squeezed(0.0), Squeezed(0.8)
    question = "¿Qué comimos en el lago?"
    assert cosine_range(narrow, NOTES)[0] > cosine_range(wide, NOTES)[0] + 0.3
    np.testing.assert_allclose(
        scaled(narrow, question, NOTES), scaled(wide, question, NOTES), atol=1e-3
    )


def test_the_scale_is_stored_when_there_are_notes_and_stays(database: Database) -> None:
    model = Squeezed(0.8)
    vectors = Indexing(database, Settings(), lambda _: model)

    def stored() -> tuple[float, float]:
        vectors.register(model.info.name)
        with database.transaction() as connection:
            info = require_model(connection, model.info.name)
        assert info.similarity_threshold == max(0.0, info.cosine_range[0])
        return info.cosine_range

    assert stored() == UNMEASURED
    add(database, NOTES)
    first = stored()
    assert first == pytest.approx(cosine_range(model, NOTES), abs=0.05)
    add(database, [f"Otra cosa {number}. Y otra más." for number in range(30)])
    assert stored() == first


def add(database: Database, texts: Sequence[str]) -> None:
    moment = datetime(2026, 3, 2, tzinfo=UTC)
    records = [NoteRecord(text, "Nota", text, moment) for text in texts]
    ingest(database, records, tenant="ana", source="diario")
