"""A migration from one embedding model to another, under constant questions."""

import itertools
import threading
import time
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
from rag_resources.core.types import NoteRecord, RetrievalResponse, TimeWindow
from rag_resources.database.pool import Database
from rag_resources.evaluation.runner import evaluate
from rag_resources.indexing.chunk import chunk_window
from rag_resources.indexing.embed import embed_chunks, embed_notes
from rag_resources.indexing.retirement import retire
from rag_resources.ingestion.ingest import ingest
from rag_resources.languages.messages import _
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


@dataclass(frozen=True)
class Asked:
    """A question's answer; in seconds of the monotonic clock, when it was asked."""

    word: str
    at: float
    response: RetrievalResponse

    @property
    def problems(self) -> list[str]:
        """What is wrong with it, in words."""
        answer, found = self.response, {result.note_id for result in self.response.results}
        expected = note_id("ana", SOURCE, self.word)
        told = [*answer.degraded, *answer.messages, answer.error or ""]
        return [*filter(None, told), *([] if expected in found else ["not found"])]


@dataclass
class Client:
    """Asks for one note after the other by what serves, until it is told to stop."""

    application: Migrated
    asked: list[Asked] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Ask; every question twice, so that the cache has its say."""
        for word in itertools.cycle(itertools.chain.from_iterable(zip(WORDS, WORDS, strict=True))):
            if self.stopped.is_set():
                return
            at = time.monotonic()
            self.asked.append(Asked(word, at, self.application.ask(word)))

    def hear(self, count: int = 2 * len(WORDS)) -> list[Asked]:
        """Wait for as many answers to questions asked from now on, and return those."""
        now = time.monotonic()
        wait_until(lambda: len(self.asked) and self._since(now)[count - 1 : count])
        return self._since(now)

    def _since(self, moment: float) -> list[Asked]:
        return [asked for asked in list(self.asked) if asked.at >= moment]


@contextmanager
def asking(application: Migrated) -> Iterator[Client]:
    """Let a client ask; at the end all of its answers must be right."""
    client = Client(application)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(client.run)
        try:
            yield client
        finally:
            client.stopped.set()
        running.result(PATIENCE_S)
    assert [asked.problems for asked in client.asked if asked.problems] == []


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
        register_model(connection, EMBEDDERS[OLD].info, embeds_chunks=True)
        register_model(connection, EMBEDDERS[NEW].info, embeds_chunks=False)
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


def models(asked: list[Asked]) -> set[str]:
    """The models that answered."""
    return {item.response.model for item in asked}


def test_a_model_migration_is_not_noticed_by_whoever_asks(
    application: Migrated,
) -> None:
    """From backfill to retirement every answer is complete and has its note."""
    database, new = application.database, EMBEDDERS[NEW]
    with asking(application) as client:
        assert models(client.hear()) == {OLD}
        with database.transaction() as connection:
            register_model(connection, new.info, embeds_chunks=True)
        for start, end in reversed(list(itertools.pairwise(MONTHS))):
            assert embed_chunks(database, new, TimeWindow(start, end)).notes == NOTES_A_MONTH
            assert models(client.hear()) == {OLD}
            assert_searchable(application, client)
        ensure_vector_indexes(database, new.info, min_rows=1)

        assert assess(application, OLD) == assess(application, NEW) == 1.0
        assert models(client.hear()) == {OLD}
        assert_kept(
            application,
            _(
                "it is that of the configuration that serves, “{configuration}”: promote one of "
                "another model first"
            ).format(configuration="with_openai_old"),
        )

        promote(application, NEW)
        assert models(client.hear()) == {NEW}
        assert_kept(application)

        gone = retire(database, without(application, OLD).settings, OLD)
        assert gone.chunk_vectors >= len(WORDS)
        assert models(client.hear()) == {NEW}
    for model in EMBEDDERS:
        assert {a.response.cached for a in client.asked if a.response.model == model} == {
            True,
            False,
        }


def assert_searchable(application: Migrated, client: Client) -> None:
    """By its name the new configuration answers, however far its backfill has come."""
    config = candidate(application, NEW).retrieval
    for word in WORDS[:: NOTES_A_MONTH // 2]:
        response = application.pipeline.retrieve(
            f"¿Qué dice {word}?", config, deadline_ms=GENEROUS_MS
        )
        assert Asked(word, 0.0, response).problems == []
        assert response.model == NEW
    assert not client.stopped.is_set()


def assert_kept(application: Migrated, *reasons: str) -> None:
    """The old model cannot be retired yet, for these reasons and its being configured."""
    with pytest.raises(ModelInUseError) as refused:
        retire(application.database, application.settings, OLD)
    configured = _(
        "it is in EMBEDDING_MODELS, so the next backfill would make it again: remove “{model}” "
        "from EMBEDDING_MODELS and restart"
    ).format(model=OLD)
    assert refused.value.problems == [*reasons, configured]
