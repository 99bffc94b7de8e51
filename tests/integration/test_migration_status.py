"""The status of a migration in each state of indexing, and in the output of `rag`."""

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import pytest

from rag_resources.core.chunking_version import chunking_hash
from rag_resources.core.configuration import ChunkingConfig, RetrievalConfig
from rag_resources.core.evaluation import QueryOutcome, summarize
from rag_resources.core.golden import GoldenEntry
from rag_resources.core.retrievers import VectorKind
from rag_resources.core.types import NoteRecord, TimeWindow
from rag_resources.database.pool import Database
from rag_resources.evaluation.runner import Evaluation
from rag_resources.indexing.chunk import chunk_window
from rag_resources.indexing.embed import embed_chunks, embed_notes
from rag_resources.ingestion.ingest import ingest
from rag_resources.languages.messages import _
from rag_resources.migration.batches import record_batch
from rag_resources.migration.status import read_status, tables
from rag_resources.serving.rollback import roll_back_to_notes
from rag_resources.settings import load_settings
from rag_resources.store.evaluations import insert_evaluation, latest_evaluation
from rag_resources.store.migration import BatchRun
from rag_resources.store.migration_status import MigrationStatus, read_migration_status
from rag_resources.store.models import register_model
from rag_resources.store.promotions import promote
from tests.command_line import Outcome, call_rag, isolate
from tests.embedders import HashEmbedder
from tests.integration.test_rollback import BASELINE
from tests.stored_evaluations import unmeasured_context

MODEL = "openai_hash"
CONFIG = RetrievalConfig(model=MODEL)
CONTEXT = unmeasured_context("una", CONFIG)
WAY = chunking_hash(ChunkingConfig())
MONTHS = ("2025-01", "2025-02", "2025-03")
NOTES_A_MONTH = 12
ALWAYS = TimeWindow(datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC))
GOOD, BAD = [1] * 20, [0] * 20
FOUND, OTHER = UUID(int=1), UUID(int=2)


Rag = Callable[..., Outcome]


@pytest.fixture
def rag(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    database_url: str,
) -> Rag:
    """Call `rag migration status` with the test's model and database."""
    own = {"EMBEDDING_MODELS": MODEL, "FIRST_MONTH": MONTHS[0]}
    isolate(monkeypatch, tmp_path, DATABASE_URL=database_url, **own)

    def call(*arguments: str | Path) -> Outcome:
        return call_rag(monkeypatch, capsys, "migration", "status", *arguments)

    return call


def window(*months: str) -> TimeWindow:
    first, last = datetime.fromisoformat(f"{min(months)}-01"), int(max(months)[5:])
    return TimeWindow(first.replace(tzinfo=UTC), datetime(2025, last + 1, 1, tzinfo=UTC))


def write_notes(database: Database, *months: str) -> None:
    records = [
        NoteRecord(
            f"{month}-{number}",
            f"Nota {number}",
            f"El día {number} de {month} Lola hizo mermelada número {number}.",
            datetime.fromisoformat(f"{month}-{number + 1:02}T12:00:00+00:00"),
        )
        for month in months
        for number in range(NOTES_A_MONTH)
    ]
    ingest(database, records, tenant="default", source="diario")


def register(database: Database, embedder: HashEmbedder | None = None) -> HashEmbedder:
    embedder = embedder or HashEmbedder()
    with database.transaction() as connection:
        register_model(
            connection, embedder.info, {VectorKind.CHUNK, VectorKind.CONTEXTUAL, VectorKind.NOTE}
        )
    return embedder


def migrate_months(database: Database, embedder: HashEmbedder, *months: str) -> None:
    """What a batch does before its quality is checked."""
    for month in sorted(months, reverse=True):
        chunk_window(database, window(month), ChunkingConfig())
    embed_chunks(database, embedder, window(*months))


def outcomes(found: Sequence[int]) -> tuple[QueryOutcome, ...]:
    return tuple(
        QueryOutcome(
            GoldenEntry(f"p{n}", (FOUND,), "r", "factual", 1, golden_id=UUID(int=100 + n)),
            (FOUND if hit else OTHER,),
            latency_ms=float(n),
            stages={},
        )
        for n, hit in enumerate(found)
    )


def measure(database: Database, found: Sequence[int], run_id: str, *, floor: float = 0) -> None:
    """Record the quality after a batch."""
    made = outcomes(found)
    record_batch(
        database,
        BatchRun(MODEL, WAY, run_id, MONTHS),
        Evaluation(None, summarize(made), made, CONTEXT),
        planned=4,
        floor=floor,
    )


def store(database: Database, name: str, found: Sequence[int]) -> None:
    """Store an evaluation."""
    made = outcomes(found)
    context = unmeasured_context(name, CONFIG)
    with database.transaction() as connection:
        insert_evaluation(connection, context, summarize(made), made)


def read(
    database: Database, *, way: str = WAY, models: Sequence[str] = (MODEL,)
) -> MigrationStatus:
    with database.snapshot() as connection:
        return read_migration_status(connection, models, chunking_hash=way)


def execute(database: Database, statement: str, *values: object) -> None:
    with database.transaction() as connection:
        connection.execute(statement, values)


# --- What is read -------------------------------------------------------------------------------


def test_months_are_counted_as_indexing_leaves_them(database: Database) -> None:
    """One complete, one chunked and waiting for its vectors, one untouched."""
    write_notes(database, *MONTHS)
    embedder = register(database)
    migrate_months(database, embedder, MONTHS[2])
    chunk_window(database, window(MONTHS[1]), ChunkingConfig())
    status = read(database)
    assert [
        (month.month, month.notes, month.migrated, month.remaining, month.pending[MODEL])
        for month in status.months
    ] == [("2025-01", 12, 0, 12, 0), ("2025-02", 12, 12, 0, 12), ("2025-03", 12, 12, 0, 0)]
    assert (status.total.percent_migrated, status.is_complete) == (66.66, False)
    [model] = status.models
    assert (model.chunks, model.current_chunks, model.pending_notes) == (24, 12, 12)
    assert (model.percent, model.state, model.serves) == (50, "building", False)
    migrate_months(database, embedder, *MONTHS)
    assert read(database).is_complete


def test_notes_chunked_another_way_remain(database: Database) -> None:
    """Such notes are found by their chunks, but do not count as migrated to the configuration."""
    write_notes(database, MONTHS[0])
    migrate_months(database, register(database), MONTHS[0])
    total = read(database, way="otra").total
    assert (total.chunked, total.migrated, total.remaining) == (12, 0, 12)


# --- Pace and time left -------------------------------------------------------------------------


def test_pace_and_time_left_come_from_the_work_itself(database: Database) -> None:
    """What embedding writes down; idle times do not count."""
    write_notes(database, *MONTHS)
    migrate_months(database, register(database), *MONTHS[1:])
    status = read(database)
    assert status.is_working
    assert status.vectors_per_minute[MODEL] > 0
    assert status.minutes_left
    assert status.ready_at
    assert status.ready_at > status.read_at
    execute(database, "UPDATE embedding_work SET finished_at = started_at + interval '2 seconds'")
    with database.transaction() as connection:
        done = connection.execute("SELECT model, notes, vectors FROM embedding_work").fetchall()
    assert done == [(MODEL, 24, 48)]
    assert read(database).vectors_per_minute == {MODEL: pytest.approx(60 * 48 / 2)}


# --- Quality ------------------------------------------------------------------------------------


def test_quality_is_the_latest_measurement(database: Database) -> None:
    assert read(database).quality is None
    register(database)
    store(database, "baseline", BAD)
    assert read(database).quality is None, "it does not serve"
    measure(database, [*GOOD[:15], *BAD[:5]], "r1")
    during = read(database).quality
    assert during
    assert (during.configuration, during.hit_rate_at_10) == (None, 0.75)
    assert (during.mrr, during.latency_p95_ms) == (0.75, 18.0)
    store(database, "hybrid", GOOD)
    with database.transaction() as connection:
        evaluation = latest_evaluation(connection, "hybrid")
        assert evaluation
        promote(connection, evaluation, CONFIG, run_id=None)
    after = read(database)
    assert after.quality
    assert (after.quality.configuration, after.quality.hit_rate_at_10) == ("hybrid", 1)
    assert after.models[0].serves
    assert after.models[0].state == "serving"
    told = read_status(database, load_settings())
    assert told.quality
    assert told.quality.is_stale
    (row,) = next(table for table in tables(told) if table.title == _("Quality")).rows
    assert row[0] == "hybrid (obsoleta)"


# --- What is said -------------------------------------------------------------------------------


def test_after_an_immediate_rollback_nothing_is_migrated(rag: Rag, database: Database) -> None:
    """No figure is told as one of now: what was measured is gone, and whole notes serve."""
    write_notes(database, MONTHS[0])
    embedder = register(database)
    embed_notes(database, embedder, ALWAYS)
    migrate_months(database, embedder, MONTHS[0])
    store(database, "hybrid", GOOD)
    with database.transaction() as connection:
        evaluation = latest_evaluation(connection, "hybrid")
        assert evaluation
        promote(connection, evaluation, CONFIG, run_id=None)
    assert json.loads(rag("--json").out)["total"]["percentMigrated"] == 100
    roll_back_to_notes(database, BASELINE, reason="Prueba.", run_id="r1")
    result = json.loads(rag("--json").out)
    assert (result["total"]["migrated"], result["total"]["percentMigrated"]) == (0, 0)
    assert result["models"][0]["percent"] == 0
    assert result["isComplete"] is False
    assert result["serving"]["configuration"] == "baseline"
    assert result["quality"] is None
    assert "motivo: Prueba. Se puede volver a empezar" in " ".join(rag().out.split())
