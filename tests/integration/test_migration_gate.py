"""Stored batches of a migration: their baseline, and which run may continue."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from pgvector import HalfVector

from rag_resources.core.configuration import ChunkingConfig, RetrievalConfig, Strategy
from rag_resources.core.evaluation import QueryOutcome, summarize
from rag_resources.core.golden import GoldenEntry
from rag_resources.core.migration_gate import ALPHA, BatchVerdict, Pair, VectorState
from rag_resources.core.retrievers import VectorKind
from rag_resources.core.types import NoteRecord, TimeWindow, Vectors
from rag_resources.database.pool import Database
from rag_resources.evaluation.runner import Evaluation, evaluate
from rag_resources.indexing.chunk import chunk_window
from rag_resources.indexing.embed import embed_chunks
from rag_resources.indexing.verify import verify_vectors
from rag_resources.ingestion.ingest import ingest
from rag_resources.migration.batches import measure_pair, record_batch
from rag_resources.retrieval.pipeline import RetrievalPipeline
from rag_resources.store.evaluations import insert_evaluation, latest_evaluation
from rag_resources.store.golden import write_golden
from rag_resources.store.migration import (
    BatchRun,
    closed_batches,
    override_batches,
)
from rag_resources.store.models import register_model
from rag_resources.store.notes import note_id
from rag_resources.store.promotions import promote
from rag_resources.store.vectors import is_empty, sample_vectors
from tests.embedders import HashEmbedder
from tests.stored_evaluations import unmeasured_context

CONFIG = RetrievalConfig(model="openai_hash")
CONTEXT = unmeasured_context("una", CONFIG)
PLANNED = 4
GOOD, BAD = [1] * 20, [0] * 20
RELEVANT, OTHER = UUID(int=1), UUID(int=2)


def outcomes(found: Sequence[int]) -> tuple[QueryOutcome, ...]:
    """One question each, with the same ids every time."""
    return tuple(
        QueryOutcome(
            GoldenEntry(f"p{n}", (RELEVANT,), "r", "factual", 1, golden_id=UUID(int=100 + n)),
            (RELEVANT if hit else OTHER,),
            latency_ms=float(n),
            stages={},
        )
        for n, hit in enumerate(found)
    )


def store(
    database: Database, name: str, found: Sequence[int], config: RetrievalConfig = CONFIG
) -> UUID:
    """Store an evaluation of a configuration."""
    made = outcomes(found)
    context = unmeasured_context(name, config)
    with database.transaction() as connection:
        return insert_evaluation(connection, context, summarize(made), made)


def serve(database: Database, name: str, config: RetrievalConfig = CONFIG) -> None:
    """Promote a configuration on its latest evaluation."""
    with database.transaction() as connection:
        register_model(
            connection,
            HashEmbedder().info,
            {VectorKind.CHUNK, VectorKind.CONTEXTUAL, VectorKind.NOTE},
        )
        evaluation = latest_evaluation(connection, name)
        assert evaluation
        promote(connection, evaluation, config, run_id=None)


def record(
    database: Database,
    found: Sequence[int],
    run_id: str,
    *,
    model: str = "m",
    chunking: str = "c",
    floor: float = 0,
    pair: Pair | None = None,
    vectors: VectorState | None = None,
) -> BatchVerdict:
    """Record a batch of March."""
    made = outcomes(found)
    evaluation = Evaluation(None, summarize(made), made, CONTEXT)
    run = BatchRun(model, chunking, run_id, ("2025-03",))
    return record_batch(
        database, run, evaluation, planned=PLANNED, floor=floor, vectors=vectors, pair=pair
    )


def stored(database: Database) -> list[Any]:
    """The rows of all batches, oldest first."""
    rows = "SELECT * FROM migration_batches ORDER BY finished_at, id"
    with database.transaction() as connection:
        return connection.execute(rows).fetchall()


def closed(database: Database, *models: str, chunking: str = "c") -> list[str]:
    """The runs that closed the gates."""
    with database.transaction() as connection:
        batches = closed_batches(connection, models or ("m",), chunking_hash=chunking)
    return [batch.run_id for batch in batches]


# --- What is stored -----------------------------------------------------------------------------


def test_looks_of_one_migration_share_the_level_even_at_once(database: Database) -> None:
    """Batches recorded at the same moment wait for each other; another migration has its own."""
    with ThreadPoolExecutor(3) as pool:
        verdicts = list(pool.map(lambda n: record(database, GOOD, f"r{n}"), range(PLANNED)))
    levels = sorted(verdict.level for verdict in verdicts)
    assert levels == pytest.approx([0.9 * ALPHA * part / 16 for part in (1, 3, 5, 7)])
    for other in (
        record(database, GOOD, "x", model="n"),
        record(database, GOOD, "y", chunking="d"),
    ):
        assert other.level == pytest.approx(levels[0])


# --- What it is compared with -------------------------------------------------------------------


def test_whole_notes_are_the_baseline_while_nothing_serves(database: Database) -> None:
    """Also when they are evaluated only after the first batch; another configuration is not."""
    store(database, "hybrid", GOOD)
    assert record(database, BAD, "r1").drop is None
    store(database, "baseline", GOOD)
    verdict = record(database, BAD, "r2")
    assert not verdict.is_open
    assert "caída significativa frente a «baseline»: de 1.000 a 0.000" in verdict.reason


def test_what_serves_now_is_the_baseline_as_it_was_promoted(database: Database) -> None:
    """Whole notes served at the first batch; a later evaluation alone changes nothing."""
    store(database, "baseline", BAD)
    assert record(database, GOOD, "r1").is_open
    promoted = store(database, "hybrid", GOOD)
    serve(database, "hybrid")
    store(database, "hybrid", BAD)
    verdict = record(database, BAD, "r2")
    assert not verdict.is_open
    assert "caída significativa frente a «hybrid»" in verdict.reason
    assert stored(database)[-1].baseline_id == promoted


# --- Who may go on ------------------------------------------------------------------------------


def override(database: Database, reason: str, *models: str) -> None:
    with database.transaction() as connection:
        batches = closed_batches(connection, models or ("m",), chunking_hash="c")
        override_batches(connection, batches, reason=reason, run_id="quien")


def test_the_last_batch_of_each_model_decides(database: Database) -> None:
    """The gate belongs to one way of chunking; another way starts with an open gate."""
    assert closed(database) == []
    record(database, BAD, "r1", floor=0.5)
    record(database, GOOD, "r2", model="n", floor=0.5)
    assert closed(database, "m", "n") == ["r1"]
    assert closed(database, "n") == []
    assert closed(database, chunking="d") == []
    record(database, GOOD, "r3", floor=0.5)
    assert closed(database, "m", "n") == []
    record(database, BAD, "r4", floor=0.5)
    assert closed(database, "m", "n") == ["r4"]


def test_an_override_opens_the_gate_until_it_closes_again(database: Database) -> None:
    """Its reason stays with the batch that had closed it."""
    record(database, BAD, "r1", floor=0.5)
    override(database, "se acepta la caída")
    assert closed(database) == []
    record(database, BAD, "r2", floor=0.5)
    assert closed(database) == ["r2"]
    first, second = stored(database)
    assert (first.override_reason, first.override_run_id) == ("se acepta la caída", "quien")
    assert first.overridden_at is not None
    assert first.overridden_at > first.finished_at
    assert (second.override_reason, second.overridden_at) == (None, None)


def test_vectors_are_current_when_no_note_of_the_months_waits(database: Database) -> None:
    """A note of another month, or another model, does not count."""
    embedder = HashEmbedder()
    january = TimeWindow(datetime(2025, 1, 1, tzinfo=UTC), datetime(2025, 2, 1, tzinfo=UTC))
    february = TimeWindow(january.end, datetime(2025, 3, 1, tzinfo=UTC))
    ingest(
        database,
        [NoteRecord("1", "", "Lola hizo mermelada de naranja.", january.start)],
        tenant="ana",
        source="diario",
    )
    with database.transaction() as connection:
        register_model(
            connection, embedder.info, {VectorKind.CHUNK, VectorKind.CONTEXTUAL, VectorKind.NOTE}
        )
    chunk_window(database, january, ChunkingConfig())

    def current(model: str, window: TimeWindow) -> bool:
        with database.transaction() as connection:
            return is_empty(connection, model, window)

    assert not current("openai_hash", january)
    assert current("openai_hash", february)
    assert current("otro", january)
    embed_chunks(database, embedder, january)
    assert current("openai_hash", january)


# --- The vectors of a batch, and the pair ---------------------------------------------------------

JANUARY = TimeWindow(datetime(2025, 1, 1, tzinfo=UTC), datetime(2025, 2, 1, tzinfo=UTC))
FEBRUARY = TimeWindow(JANUARY.end, datetime(2025, 3, 1, tzinfo=UTC))
WORDS = [f"palabra{number}" for number in range(24)]


def write_notes(database: Database, *models: HashEmbedder) -> None:
    """Chunk twelve notes of each of two months, each about a word of its own."""
    ingest(
        database,
        [
            NoteRecord(word, "", f"Aquella tarde {word} {word} {word}.", month.start)
            for month, words in ((JANUARY, WORDS[:12]), (FEBRUARY, WORDS[12:]))
            for word in words
        ],
        tenant="ana",
        source="diario",
    )
    with database.transaction() as connection:
        for embedder in models:
            register_model(
                connection,
                embedder.info,
                {VectorKind.CHUNK, VectorKind.CONTEXTUAL, VectorKind.NOTE},
            )
    for month in (JANUARY, FEBRUARY):
        chunk_window(database, month, ChunkingConfig())


def rewrite_vectors(database: Database, model: str, change: Callable[[Vectors], Vectors]) -> None:
    """Replace the vectors of a model in the store, each of its two kinds by itself."""
    with database.transaction() as connection:
        for kind in ("chunk", "contextual"):
            table = f"vectors_{model}_{kind}"
            rows = connection.execute(
                f"SELECT chunk_id, embedding FROM {table} ORDER BY chunk_id"
            ).fetchall()
            vectors = change(np.stack([r.embedding.to_numpy().astype(np.float32) for r in rows]))
            for row, vector in zip(rows, vectors, strict=True):
                connection.execute(
                    f"UPDATE {table} SET embedding = %s WHERE chunk_id = %s",
                    [HalfVector(vector), row.chunk_id],
                )


def normalised(vectors: Vectors) -> Vectors:
    unit: Vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit


def spoilt(kind: str, vectors: Vectors, random: np.random.Generator) -> Vectors:
    """Return vectors that a broken batch could have written, of length 1."""
    noise = random.normal(size=vectors.shape).astype(np.float32)
    if kind == "random":
        return normalised(noise)
    if kind == "shuffled":
        return np.roll(vectors, random.integers(1, len(vectors)), axis=0)
    if kind == "truncated":
        kept = np.arange(vectors.shape[1]) < random.integers(4, vectors.shape[1] * 3 // 4)
        return normalised(np.where(kept, vectors, 1e-3))
    if kind == "other model's":
        turned, _ = np.linalg.qr(random.normal(size=(vectors.shape[1],) * 2))
        return vectors @ turned.astype(np.float32)
    return normalised(np.tile(np.abs(noise[:1]), (len(vectors), 1)))


def spoiler(kind: str, columns: Sequence[Vectors], seed: int) -> Callable[[Vectors], Vectors]:
    """Return what makes spoilt vectors of the given columns, one after the other."""
    random, left = np.random.default_rng(seed), iter(columns)
    return lambda _: spoilt(kind, next(left), random)


@pytest.mark.parametrize("kind", ["random", "shuffled", "truncated", "other model's", "constant"])
def test_vectors_of_no_use_are_stopped_in_the_first_batch(database: Database, kind: str) -> None:
    """In 20 of 20 runs, whatever the questions say; the model's own vectors pass."""
    embedder = HashEmbedder(dimension=64)
    write_notes(database, embedder)
    embed_chunks(database, embedder, FEBRUARY)
    good = verify_vectors(database, embedder, FEBRUARY)
    assert record(database, GOOD, "good", vectors=good).is_open
    assert good.sampled == 8
    with database.transaction() as connection:
        own = sample_vectors(connection, embedder.info.name, FEBRUARY, per_month=100)
    assert len(own) == 24

    kept: list[Vectors] = []
    rewrite_vectors(database, embedder.info.name, lambda all_: kept.append(all_) or all_)
    for seed in range(20):
        rewrite_vectors(database, embedder.info.name, spoiler(kind, kept, seed))
        vectors = verify_vectors(database, embedder, FEBRUARY)
        assert vectors.wrong_norms == 0
        verdict = record(database, GOOD, f"run {seed}", vectors=vectors)
        assert (verdict.is_open, verdict.level) == (False, 0)
    assert verify_vectors(database, embedder, JANUARY) == VectorState(0, None, 0, 0)


def test_a_pair_is_asked_about_the_notes_that_are_migrated(database: Database) -> None:
    """What serves and the new model answer the same questions; other months take no part."""
    old, new = HashEmbedder("viejo"), HashEmbedder("nuevo", dimension=64)
    write_notes(database, old, new)
    for month in (JANUARY, FEBRUARY):
        embed_chunks(database, old, month)
    embed_chunks(database, new, FEBRUARY)
    entries = [
        GoldenEntry(f"¿Qué pasó con {word}?", (note_id("ana", "diario", word),), "r", "factual", 1)
        for word in WORDS
    ]
    with database.transaction() as connection:
        write_golden(connection, entries, replace=True)
    models = {"viejo": old, "nuevo": new}
    pipeline = RetrievalPipeline(database, embedder=models.__getitem__, tenant="ana")
    assert measure_pair(database, pipeline, "nuevo", FEBRUARY) is None

    serving = RetrievalConfig(model="viejo", strategy=Strategy.SEMANTIC)
    evaluation = evaluate(database, pipeline, "de_antes", serving)
    with database.transaction() as connection:
        stored_ = latest_evaluation(connection, "de_antes")
        assert stored_
        promote(connection, stored_, serving, run_id=None)
    assert measure_pair(database, pipeline, "viejo", FEBRUARY) is None
    pair = measure_pair(database, pipeline, "nuevo", FEBRUARY)
    assert pair
    assert pair.serving.configuration == "de_antes"
    assert pair.serving.evaluation_id == evaluation.evaluation_id
    assert len(pair.hits) == 12
    assert pair.hits == pair.serving.hits == dict.fromkeys(pair.hits, True)

    rewrite_vectors(database, "nuevo", lambda vectors: np.roll(vectors, 1, axis=0))
    bad = measure_pair(database, pipeline, "nuevo", FEBRUARY)
    assert bad
    assert bad.serving.hits == pair.serving.hits
    assert sum(bad.hits.values()) < 12
    embed_chunks(database, new, JANUARY)
    everything = measure_pair(database, pipeline, "nuevo", JANUARY)
    assert everything
    assert len(everything.hits) == 24
