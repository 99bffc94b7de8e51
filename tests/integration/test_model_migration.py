"""A migration from one embedding model to another, under constant questions."""

import itertools
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rag_resources.application import Application
from rag_resources.configurations import DEFAULT_CONFIGURATION
from rag_resources.core.configuration import NamedConfiguration
from rag_resources.core.errors import ModelInUseError
from rag_resources.core.golden import GoldenEntry
from rag_resources.core.retrievers import VectorKind
from rag_resources.core.types import NoteRecord, RetrievalResponse, TimeWindow
from rag_resources.database.pool import Database
from rag_resources.evaluation.runner import evaluate
from rag_resources.indexing.chunk import chunk_window
from rag_resources.indexing.embed import embed_chunks, embed_notes
from rag_resources.indexing.retirement import retire
from rag_resources.ingestion.ingest import ingest
from rag_resources.serving.promotion import promote_best
from rag_resources.settings import load_settings
from rag_resources.store.chunks import refresh_statistics
from rag_resources.store.golden import write_golden
from rag_resources.store.models import register_model
from rag_resources.store.notes import note_id
from rag_resources.store.vector_indexes import ensure_vector_indexes
from tests.corpus import ALWAYS, GENEROUS_MS, SMALL, SOURCE
from tests.embedders import HashEmbedder
from tests.waiting import PATIENCE_S, wait_until

OLD, NEW = "openai_old", "openai_new"
EMBEDDERS = {OLD: HashEmbedder(OLD, 24), NEW: HashEmbedder(NEW, 40)}
CONFIGURATION = """
name: with_{model}
description: Con un modelo de las pruebas.
role: candidate
retrieval:
  strategy: hybrid
  model: {model}
"""
NOTES_A_MONTH = 8
MONTHS = [datetime(2025, month, 1, tzinfo=UTC) for month in (1, 2, 3, 4)]
WORDS = [f"clave{number:03}" for number in range(3 * NOTES_A_MONTH)]


@pytest.fixture
def tenant() -> str:
    return "ana"


@dataclass(frozen=True)
class Migrated(Application):
    """An application whose models need no file."""

    embedders: Mapping[str, HashEmbedder] = field(default_factory=EMBEDDERS.copy)

    def embedder(self, model: str) -> HashEmbedder:
        """Return one of the two models."""
        return self.embedders[model]

    def ask(self, word: str) -> RetrievalResponse:
        """Ask for a note by what serves, as long as it takes."""
        serving = self.serving.read(self.configuration(DEFAULT_CONFIGURATION))
        return self.pipeline.retrieve(f"¿Qué dice {word}?", serving.config, deadline_ms=GENEROUS_MS)


@dataclass
class Client:
    """Asks for one note after the other by what serves, each twice, until it is told to stop."""

    application: Migrated
    models: list[str] = field(default_factory=list)
    cached: set[tuple[str, bool]] = field(default_factory=set)
    stopped: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Ask; every answer must be right."""
        for word in itertools.cycle(itertools.chain.from_iterable(zip(WORDS, WORDS, strict=True))):
            if self.stopped.is_set():
                return
            response = self.application.ask(word)
            assert_answers(word, response)
            self.models.append(response.model)
            self.cached.add((response.model, response.cached))

    def hear(self) -> set[str]:
        """Wait for answers to all questions from now on; return the models that gave them."""
        start = len(self.models) + 1
        wait_until(lambda: self.stopped.is_set() or len(self.models) > start + 2 * len(WORDS))
        return set(self.models[start:])


def assert_answers(word: str, response: RetrievalResponse) -> None:
    """It is complete and has the word's note."""
    assert (response.degraded, response.messages, response.error) == ((), (), None)
    assert note_id("ana", SOURCE, word) in {result.note_id for result in response.results}


@contextmanager
def asking(application: Migrated) -> Iterator[Client]:
    """Let a client ask."""
    client = Client(application)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(client.run)
        running.add_done_callback(lambda _: client.stopped.set())
        try:
            yield client
        finally:
            client.stopped.set()
        running.result(PATIENCE_S)


@pytest.fixture
def application(database: Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Migrated:
    """Notes of three months, chunked and embedded by the old model, whose candidate serves."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own").mkdir()
    for model in EMBEDDERS:
        path = tmp_path / "own" / f"with_{model}.yaml"
        path.write_text(CONFIGURATION.format(model=model), "utf-8")
    settings = load_settings(
        embedding_models=(OLD, NEW),
        note_embedding_model=NEW,
        rag_configurations=tmp_path / "own",
        tenant="ana",
    )
    made = Migrated(settings, database)
    records = [
        NoteRecord(
            word,
            "",
            f"Apunte {word} del cuaderno. El día {number} fuimos a la plaza con Vera.",
            MONTHS[number // NOTES_A_MONTH] + timedelta(days=number % NOTES_A_MONTH),
        )
        for number, word in enumerate(WORDS)
    ]
    ingest(database, records, tenant="ana", source=SOURCE)
    chunk_window(database, ALWAYS, SMALL)
    with database.transaction() as connection:
        register_model(
            connection,
            EMBEDDERS[OLD].info,
            {VectorKind.CHUNK, VectorKind.CONTEXTUAL, VectorKind.NOTE},
        )
        register_model(connection, EMBEDDERS[NEW].info, {VectorKind.NOTE})
        refresh_statistics(connection)
        write_golden(connection, questions(), replace=True)
    embed_chunks(database, EMBEDDERS[OLD], ALWAYS)
    embed_notes(database, EMBEDDERS[NEW], ALWAYS)
    assess(made, OLD)
    promote(made, OLD)
    return made


def questions() -> list[GoldenEntry]:
    """The golden dataset: a question by note."""
    return [
        GoldenEntry(f"¿Dónde se apuntó {word}?", (note_id("ana", SOURCE, word),), "x", "factual", 1)
        for word in WORDS
    ]


def candidate(application: Migrated, model: str) -> NamedConfiguration:
    return application.configuration(f"with_{model}")


def assess(application: Migrated, model: str) -> float:
    """Evaluate the candidate of a model; its Hit_Rate@10."""
    named = candidate(application, model)
    evaluation = evaluate(application.database, application.pipeline, named.name, named.retrieval)
    return evaluation.summary.metrics["hit_rate_at_10"]


def promote(application: Migrated, model: str) -> None:
    named = candidate(application, model)
    assert promote_best(application.database, {named.name: named}).changed


def without(application: Migrated, model: str) -> Migrated:
    """The application as a restart makes it, with the model no longer configured."""
    kept = tuple(name for name in application.settings.embedding_models if name != model)
    settings = application.settings.model_copy(update={"embedding_models": kept})
    return Migrated(settings, application.database)


def test_a_model_migration_is_not_noticed_by_whoever_asks(
    application: Migrated,
) -> None:
    """From backfill to retirement every answer is complete and has its note."""
    database, new = application.database, EMBEDDERS[NEW]
    with asking(application) as client:
        assert client.hear() == {OLD}
        with database.transaction() as connection:
            register_model(
                connection, new.info, {VectorKind.CHUNK, VectorKind.CONTEXTUAL, VectorKind.NOTE}
            )
        for start, end in reversed(list(itertools.pairwise(MONTHS))):
            assert embed_chunks(database, new, TimeWindow(start, end)).notes == NOTES_A_MONTH
            assert client.hear() == {OLD}
            assert_searchable(application)
        ensure_vector_indexes(database, new.info, min_rows=1)

        assert assess(application, OLD) == assess(application, NEW) == 1.0
        assert client.hear() == {OLD}
        assert_kept(application, reasons=2)  # It serves, and is configured.

        promote(application, NEW)
        assert client.hear() == {NEW}
        assert_kept(application, reasons=1)

        gone = retire(database, without(application, OLD).settings, OLD)
        assert gone.count(VectorKind.CHUNK) >= len(WORDS)
        assert client.hear() == {NEW}
    assert client.cached == set(itertools.product(EMBEDDERS, [True, False]))


def assert_searchable(application: Migrated) -> None:
    """By its name the new configuration answers, however far its backfill has come."""
    config = candidate(application, NEW).retrieval
    for word in WORDS[:: NOTES_A_MONTH // 2]:
        query = f"¿Qué dice {word}?"
        response = application.pipeline.retrieve(query, config, deadline_ms=GENEROUS_MS)
        assert_answers(word, response)
        assert response.model == NEW


def assert_kept(application: Migrated, reasons: int) -> None:
    """The old model cannot be retired yet, for so many reasons."""
    with pytest.raises(ModelInUseError) as refused:
        retire(application.database, application.settings, OLD)
    assert len(refused.value.problems) == reasons
