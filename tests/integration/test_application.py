"""The application's retrievals, as the command line and Dagster start them."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from rag_resources.application import Application
from rag_resources.configurations import DEFAULT_CONFIGURATION
from rag_resources.core.configuration import RetrievalConfig
from rag_resources.core.golden import GoldenEntry
from rag_resources.core.retrievers import VectorKind
from rag_resources.core.types import NoteRecord
from rag_resources.database.pool import Database
from rag_resources.evaluation.runner import evaluate
from rag_resources.languages.messages import _
from rag_resources.retrieval.pipeline import DEADLINE_MS
from rag_resources.settings import load_settings
from rag_resources.store.golden import write_golden
from rag_resources.store.models import register_model
from rag_resources.store.notes import note_id, upsert_notes
from tests.ollama_server import Fault, OllamaServer

MODEL = "ollama_bge_m3"


@pytest.fixture
def application(
    database: Database, ollama: OllamaServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Application:
    """Over an empty database, with all models on the ollama."""
    monkeypatch.chdir(tmp_path)
    settings = load_settings(ollama_host=ollama.host, note_embedding_model=MODEL)
    made = Application(settings, database)
    with database.transaction() as connection:
        register_model(
            connection,
            made.embedder(MODEL).info,
            {VectorKind.CHUNK, VectorKind.CONTEXTUAL, VectorKind.NOTE},
        )
    return made


def test_loading_a_model_costs_no_question_of_an_evaluation_its_vectors(
    application: Application, ollama: OllamaServer
) -> None:
    """A server that loads one answers nobody meanwhile: not the second request either."""
    note = NoteRecord("gata", "", "La gata duerme.", datetime(2025, 1, 1, tzinfo=UTC))
    with application.database.transaction() as connection:
        upsert_notes(connection, [note], tenant="default", source="notes")
        relevant = (note_id("default", "notes", "gata"),)
        entry = GoldenEntry("¿Quién duerme?", relevant, "La gata.", "factual", 1)
        write_golden(connection, [entry], replace=True)
    config = RetrievalConfig(model=MODEL)
    ollama.inject(Fault.SLOW, times=2, path="/api/embed", seconds=1.5 * DEADLINE_MS / 1000)

    evaluation = evaluate(application.database, application.pipeline, "x", config, store=False)

    (outcome,) = evaluation.outcomes
    assert (outcome.degraded, outcome.error) == ((), None)
    assert evaluation.summary.metrics["hit_rate_at_1"] == 1


def test_before_the_first_promotion_the_default_serves(application: Application) -> None:
    """Without vectors of its model in the index, by words."""
    answered = application.retrieve("gata")
    assert answered.configuration == DEFAULT_CONFIGURATION
    assert answered.response.messages == (
        _("Semantic search is unavailable, using keyword search"),
        _(
            "Nothing is indexed with the model “{model}”, or it was retired. Materialize the "
            "asset embeddings/{model} (if it does not exist, first add the model to "
            "EMBEDDING_MODELS and restart) or choose another configuration."
        ).format(model="e5_small"),
    )
