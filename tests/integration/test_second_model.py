"""A new embedding model that scores what another one finds, before its vectors are made."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from rag_resources.core.configuration import RetrievalConfig
from rag_resources.core.errors import ModelMissingError
from rag_resources.core.fusion_config import RetrieverConfig
from rag_resources.core.golden import GoldenEntry
from rag_resources.core.retrievers import RetrieverName, VectorKind
from rag_resources.core.servers import Servers
from rag_resources.core.types import NoteRecord
from rag_resources.database.pool import Database
from rag_resources.evaluation.runner import Evaluation, evaluate
from rag_resources.indexing.chunk import chunk_window
from rag_resources.indexing.embed import embed_chunks
from rag_resources.indexing.scale import measured_info
from rag_resources.ingestion.ingest import ingest
from rag_resources.providers.protocols import Embedder
from rag_resources.providers.registry import build_embedder
from rag_resources.retrieval.pipeline import RetrievalPipeline
from rag_resources.store.golden import write_golden
from rag_resources.store.models import register_model
from rag_resources.store.notes import note_id
from rag_resources.store.vectors import keep_vectors
from tests.command_line import Outcome, call_rag, isolate
from tests.corpus import ALWAYS, SMALL
from tests.embedders import HashEmbedder
from tests.ollama_server import Fault, OllamaServer

OLD, NEW = "openai_hash", "ollama_bge_m3"
WORDS = ("gata", "taller", "furgoneta", "bomba", "escritura", "viaje", "médico", "boda", "tren")
FOUND = RetrievalConfig(
    model=OLD,
    contextual=False,
    strategy="semantic",
    retrievers={RetrieverName.SEMANTIC: RetrieverConfig(weight=1.0)},
)
SCORED = FOUND.model_copy(update={"score": RetrievalConfig(score=NEW).score})


@pytest.fixture
def models(ollama: OllamaServer) -> Callable[[str], Embedder]:
    """The old model knows next to nothing; the new one is on a server, and knows words."""
    poor = HashEmbedder(OLD, dimension=2)
    return lambda name: poor if name == OLD else build_embedder(name, Servers(ollama.host))


@pytest.fixture
def pipeline(database: Database, models: Callable[[str], Embedder]) -> RetrievalPipeline:
    """Over a note and a question per word, with vectors of the old model only."""
    notes = [
        NoteRecord(
            word, "", f"Hoy apunté algo de {word} y nada más.", datetime(2025, 1, 1, tzinfo=UTC)
        )
        for word in WORDS
    ]
    ingest(database, notes, tenant="default", source="notes")
    chunk_window(database, ALWAYS, SMALL)
    entries = [
        GoldenEntry(f"¿algo de {word}?", (note_id("default", "notes", word),), "x", "factual", 1)
        for word in WORDS
    ]
    with database.transaction() as connection:
        write_golden(connection, entries, replace=True)
        register_model(connection, models(OLD).info, {VectorKind.CHUNK})
    embed_chunks(database, models(OLD), ALWAYS)
    return RetrievalPipeline(
        database,
        embedder=models,
        tenant="default",
        keep_vectors=partial(keep_vectors, database),
    )


def register(database: Database, models: Callable[[str], Embedder]) -> None:
    info = measured_info(database, models(NEW))
    with database.transaction() as connection:
        register_model(connection, info, {VectorKind.CHUNK})


def kept(database: Database) -> int:
    with database.transaction() as connection:
        row = connection.execute("SELECT count(*) FROM vectors WHERE model = %s", (NEW,)).fetchone()
    return int(row[0]) if row else 0


def measured(
    database: Database, pipeline: RetrievalPipeline, config: RetrievalConfig
) -> Evaluation:
    made = evaluate(database, pipeline, "nueva", config, store=False)
    assert made.summary.degraded_queries == 0
    return made


def test_a_better_model_helps_at_once_and_its_vectors_are_kept_for_the_backfill(
    database: Database,
    pipeline: RetrievalPipeline,
    models: Callable[[str], Embedder],
    ollama: OllamaServer,
) -> None:
    with pytest.raises(ModelMissingError):
        evaluate(database, pipeline, "nueva", SCORED, store=False)
    register(database, models)
    before = measured(database, pipeline, FOUND).summary.metrics
    scored = measured(database, pipeline, SCORED).summary.metrics
    assert scored["mrr"] > before["mrr"] + 0.1
    assert scored["hit_rate_at_10"] >= before["hit_rate_at_10"]
    assert kept(database) == len(WORDS)
    asked = len(ollama.requests)
    measured(database, pipeline, SCORED)
    passages = [each for each in ollama.requests[asked:] if len(each.body.get("input", [])) > 1]
    assert not passages, "no passage is embedded twice"
    asked = len(ollama.requests)
    report = embed_chunks(database, models(NEW), ALWAYS)
    assert report.embedded == 0
    assert report.notes == len(WORDS), "the backfill only finishes what is made"
    assert kept(database) == len(WORDS)


def test_a_model_that_does_not_answer_in_time_leaves_the_order_of_what_was_found(
    database: Database,
    pipeline: RetrievalPipeline,
    models: Callable[[str], Embedder],
    ollama: OllamaServer,
) -> None:
    register(database, models)
    expected = pipeline.retrieve("¿algo de gata?", FOUND).results
    for fault in (Fault.SLOW, Fault.STATUS):
        ollama.inject(fault, path="/api/embed", seconds=3.0)
        answered = pipeline.retrieve("¿algo de gata?", SCORED)
        assert answered.degraded == ("score",)
        assert [each.chunk_id for each in answered.results] == [each.chunk_id for each in expected]
        ollama.heal()


def test_a_configuration_without_a_second_model_has_the_hash_that_it_had() -> None:
    assert "score" not in RetrievalConfig().model_dump()
    assert FOUND.config_hash != SCORED.config_hash
    assert RetrievalConfig(score={"model": NEW}) == RetrievalConfig(score=NEW)


@pytest.fixture
def rag(
    pipeline: RetrievalPipeline,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    database_url: str,
    ollama: OllamaServer,
) -> Callable[..., Outcome]:
    """Call `rag` on that database and server."""
    assert pipeline
    isolate(
        monkeypatch,
        tmp_path,
        DATABASE_URL=database_url,
        OLLAMA_HOST=ollama.host,
        RAG_CONFIGURATIONS=str(tmp_path / "propias"),
        GOLDEN_SOURCE="",
    )
    (tmp_path / "propias").mkdir()
    return lambda *arguments: call_rag(monkeypatch, capsys, *arguments)


def test_a_model_is_added_by_a_command_and_evaluated_at_once(
    rag: Callable[..., Outcome], database: Database, tmp_path: Path, ollama: OllamaServer
) -> None:
    added = rag("model", "add", NEW, "--find", "fulltext", "--json")
    assert added.code == 0, added.err
    assert (added.json["name"], added.json["dimension"]) == (NEW, 1024)
    assert f"EMBEDDING_MODELS=e5_small,use_multilingual,{NEW}" in added.err
    evaluated = rag("evaluate", f"{NEW}_scores", "--no-store", "--json")
    assert evaluated.code == 0, evaluated.err
    assert evaluated.json["metrics"]["mrr"] == 1.0
    assert kept(database) == len(WORDS)
    own = tmp_path / "propias" / f"{NEW}_scores.yaml"
    own.write_text(own.read_text("utf-8").replace("0.7", "0.6"), "utf-8")
    assert rag("model", "add", NEW).code == 0, "again: nothing of a person's is overwritten"
    assert rag("model", "add", "ollama_no_hay").code == 2
    ollama.inject(Fault.STATUS, path="/api/embed")
    assert rag("model", "add", "ollama_nomic_embed_text").code == 1
