"""Stored batches of a migration: their baseline, and which run may continue."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from rag_resources.core.configuration import ChunkingConfig, RetrievalConfig
from rag_resources.core.evaluation import QueryOutcome, summarize
from rag_resources.core.golden import GoldenEntry
from rag_resources.core.measurement import Versions
from rag_resources.core.quality_watch import ALPHA, BatchVerdict
from rag_resources.core.types import NoteRecord, TimeWindow
from rag_resources.database.pool import Database
from rag_resources.evaluation.runner import Evaluation
from rag_resources.indexing.chunk import chunk_window
from rag_resources.indexing.embed import embed_chunks
from rag_resources.ingestion.ingest import ingest
from rag_resources.migration.batches import record_batch
from rag_resources.retrieval.profile import Profile
from rag_resources.store.evaluations import EvaluationContext, insert_evaluation, latest_evaluation
from rag_resources.store.migration import (
    BatchRun,
    StoredBatch,
    closed_batches,
    list_batches,
    override_batches,
    vectors_are_current,
)
from rag_resources.store.models import register_model
from rag_resources.store.promotions import promote
from tests.embedders import HashEmbedder

CONFIG = RetrievalConfig(model="hash_model")
VERSIONS = Versions(CONFIG.config_hash, "golden", CONFIG.model, "digest", (), 1)
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


def store(database: Database, name: str, found: Sequence[int]) -> UUID:
    """Store an evaluation of a configuration."""
    made = outcomes(found)
    context = EvaluationContext(name, CONFIG, "golden", "digest", index_version=1)
    with database.transaction() as connection:
        return insert_evaluation(connection, context, summarize(made), made)


def serve(database: Database, name: str) -> None:
    """Promote a configuration on its latest evaluation."""
    with database.transaction() as connection:
        register_model(connection, HashEmbedder().info, embeds_chunks=True)
        evaluation = latest_evaluation(connection, name)
        assert evaluation
        promote(connection, evaluation, CONFIG, run_id=None)


def record(
    database: Database,
    found: Sequence[int],
    run_id: str,
    *,
    model: str = "m",
    chunking: str = "c",
    floor: float = 0,
) -> BatchVerdict:
    """Record a batch of March."""
    made = outcomes(found)
    evaluation = Evaluation(None, summarize(made), made, Profile().summary(), VERSIONS)
    run = BatchRun(model, chunking, run_id, ("2025-03",))
    return record_batch(database, run, evaluation, planned=PLANNED, floor=floor)


def stored(database: Database) -> list[StoredBatch]:
    with database.transaction() as connection:
        return list_batches(connection, limit=100)


def closed(database: Database, *models: str, chunking: str = "c") -> list[str]:
    """The runs that closed the gates."""
    with database.transaction() as connection:
        batches = closed_batches(connection, models or ("m",), chunking_hash=chunking)
    return [batch.run_id for batch in batches]


# --- What is stored -----------------------------------------------------------------------------


def test_a_batch_is_stored_with_its_numbers_and_its_questions(database: Database) -> None:
    evaluation = store(database, "baseline", GOOD)
    verdict = record(database, [*GOOD[:15], *BAD[:5]], "r1")
    [batch] = stored(database)
    assert (batch.model, batch.run_id, batch.months) == ("m", "r1", ["2025-03"])
    assert (batch.total_queries, batch.hit_rate_at_10, batch.mrr) == (20, 0.75, 0.75)
    assert (batch.latency_p95_ms, batch.baseline_id) == (18.0, evaluation)
    assert (batch.baseline_hit_rate_at_10, batch.p_value) == (1.0, 1 / 32)
    assert (batch.gate, batch.reason, batch.level) == ("open", verdict.reason, verdict.level)
    assert abs(datetime.now(UTC) - batch.finished_at) < timedelta(minutes=5)
    with database.transaction() as connection:
        row = connection.execute("SELECT found, missed FROM migration_batches").fetchone()
    assert row == ([UUID(int=100 + n) for n in range(15)], [UUID(int=115 + n) for n in range(5)])


def test_a_check_repeated_in_its_run_replaces_its_batch(database: Database) -> None:
    """A repetition spends no alpha, and an override does not apply to a later measurement."""
    record(database, GOOD, "r1")
    first = record(database, BAD, "r2", floor=0.5)
    override(database, "porque sí")
    second = record(database, BAD, "r2", floor=0.5)
    assert first.level == second.level
    assert [batch.run_id for batch in stored(database)] == ["r1", "r2"]
    assert closed(database) == ["r2"]
    assert record(database, GOOD, "r2").is_open
    assert closed(database) == []


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


def test_without_an_earlier_evaluation_only_the_floor_counts(database: Database) -> None:
    assert record(database, BAD, "r1").is_open
    verdict = record(database, [*GOOD[:15], *BAD[:5]], "r2", floor=0.8)
    assert not verdict.is_open
    assert "MIGRATION_FLOOR = 0.800" in verdict.reason
    assert "sin evaluación anterior" in verdict.reason


def test_whole_notes_are_the_baseline_while_nothing_serves(database: Database) -> None:
    """Also when they are evaluated only after the first batch; another configuration is not."""
    store(database, "hybrid", GOOD)
    assert record(database, BAD, "r1").drop is None
    store(database, "baseline", GOOD)
    verdict = record(database, BAD, "r2")
    assert not verdict.is_open
    assert "caída significativa frente a «baseline»: de 1.000 a 0.000" in verdict.reason


def test_what_served_at_the_beginning_stays_the_baseline(database: Database) -> None:
    """Later promotions and their evaluations during the migration do not change the baseline."""
    store(database, "baseline", BAD)
    before = store(database, "hybrid", GOOD)
    serve(database, "hybrid")
    assert record(database, GOOD, "r1").is_open
    store(database, "hybrid", BAD)
    store(database, "otra", BAD)
    serve(database, "otra")
    assert not record(database, BAD, "r2").is_open
    assert {batch.baseline_id for batch in stored(database)} == {before}
    # The next migration begins with what serves by then.
    assert record(database, BAD, "r3", chunking="d").is_open


def test_only_common_questions_are_compared(database: Database) -> None:
    store(database, "baseline", GOOD[:12])
    verdict = record(database, BAD, "r1")
    assert verdict.drop is not None
    assert (verdict.drop.compared, verdict.drop.lost) == (12, 12)
    assert "en las 12 preguntas comunes" in verdict.reason


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
        register_model(connection, embedder.info, embeds_chunks=True)
    chunk_window(database, january, ChunkingConfig())

    def current(model: str, window: TimeWindow) -> bool:
        with database.transaction() as connection:
            return vectors_are_current(connection, model, window)

    assert not current("hash_model", january)
    assert current("hash_model", february)
    assert current("otro", january)
    embed_chunks(database, embedder, january)
    assert current("hash_model", january)
