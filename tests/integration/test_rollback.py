"""Rollbacks to whole notes or to the previous configuration; notes are never changed."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from multiprocessing import get_context
from typing import Any
from uuid import UUID

import psycopg
import pytest

from rag_resources.core.configuration import (
    NamedConfiguration,
    RetrievalConfig,
    Role,
    Strategy,
    parse_retrieval,
)
from rag_resources.core.errors import (
    GateNotPassedError,
    MigrationHeldError,
    RollbackRefusedError,
)
from rag_resources.core.evaluation import QueryOutcome, summarize
from rag_resources.core.evidence import SearchSettings
from rag_resources.core.golden import GoldenEntry, golden_hash
from rag_resources.core.retrievers import VectorKind
from rag_resources.core.types import NoteRecord
from rag_resources.database.pool import Database
from rag_resources.indexing.chunk import chunk_window
from rag_resources.indexing.embed import embed_chunks, embed_notes
from rag_resources.ingestion.ingest import ingest
from rag_resources.serving.promotion import promote_best
from rag_resources.serving.rollback import BATCH_NOTES, roll_back_to_notes, withdraw
from rag_resources.store.chunks import update_statistics
from rag_resources.store.contents import count_contents, read_contents
from rag_resources.store.evaluations import EvaluationContext, insert_evaluation
from rag_resources.store.holds import (
    Hold,
    HoldKind,
    current_hold,
    hold_migration,
    resume_migration,
)
from rag_resources.store.models import register_model
from rag_resources.store.promotions import current_promotion
from tests.corpus import ALWAYS, SMALL, SOURCE, START, Corpus
from tests.embedders import HashEmbedder
from tests.waiting import wait_until

PATIENCE_S = 60
MODEL = "openai_hash"
WHY = "Se pierden respuestas."
MANY = 2 * BATCH_NOTES + 50

BASELINE = NamedConfiguration(
    name="baseline",
    description="Notas enteras.",
    role=Role.REFERENCE,
    retrieval=RetrievalConfig(unit="notes", strategy=Strategy.SEMANTIC, model=MODEL),
)
FIRST, SECOND, THIRD = (
    NamedConfiguration(
        name=name,
        description="Una candidata.",
        retrieval=RetrievalConfig(model=MODEL, diversity_weight=weight),
    )
    for name, weight in (("primera", 0.1), ("segunda", 0.2), ("tercera", 0.3))
)


@pytest.fixture
def tenant() -> str:
    return "ana"


@pytest.fixture
def corpus(database: Database) -> Corpus:
    return Corpus(database)


def add_notes(database: Database, count: int, *, version: int = 0) -> None:
    """Write notes of several chunks, or another version of them."""
    records = [
        NoteRecord(
            f"{number}",
            "",
            " ".join(f"El día {number}-{version}-{part} fuimos a Teruel." for part in range(6)),
            START + timedelta(minutes=number),
        )
        for number in range(count)
    ]
    ingest(database, records, tenant="ana", source=SOURCE)


def migrated(corpus: Corpus, count: int) -> Corpus:
    """Notes with everything that indexing makes of them."""
    add_notes(corpus.database, count)
    corpus.index(SMALL)
    return corpus


def notes(corpus: Corpus) -> list[Any]:
    """What a rollback must not touch."""
    return corpus.fetch(
        "SELECT id, created_at, updated_at, content_sha256, title, tags, metadata, expires_at "
        "FROM notes ORDER BY id"
    )


def written(corpus: Corpus) -> list[Any]:
    """All that a rollback writes."""
    tables = {
        "notes": "id",
        "chunks": "id",
        "vectors": "chunk_id, note_id, kind, position",
        "pending_vectors": "note_id",
        "lexeme_statistics": "lexeme",
        "corpus_statistics": "tenant_id",
        "promotions": "id",
        "migration_holds": "id",
    }
    return [corpus.fetch(f"SELECT * FROM {name} ORDER BY {key}") for name, key in tables.items()]


def back(database: Database, **options: Any) -> bool:
    return roll_back_to_notes(database, BASELINE, **{"reason": WHY, "run_id": "r1"} | options)


def set_hold(database: Database, kind: HoldKind, reason: str = WHY) -> bool:
    with database.transaction() as connection:
        return hold_migration(connection, kind, reason=reason, run_id=None)


def resume(database: Database) -> Hold | None:
    with database.transaction() as connection:
        return resume_migration(connection, reason="Arreglado.", run_id=None)


def held(database: Database) -> str | None:
    with database.transaction() as connection:
        hold = current_hold(connection)
    return hold.kind if hold else None


def serving(database: Database) -> str | None:
    with database.transaction() as connection:
        promotion = current_promotion(connection)
    return promotion.configuration if promotion else None


def assert_rolled_back(corpus: Corpus, before: list[Any]) -> None:
    """Whole notes serve, only provisional chunks are left, and the notes are what they were."""
    assert notes(corpus) == before
    provisional = corpus.fetch("SELECT id FROM notes WHERE content ~ '\\S' ORDER BY id")
    assert corpus.fetch("SELECT id FROM chunks ORDER BY id") == provisional
    assert corpus.fetch("SELECT FROM chunks WHERE id <> note_id") == []
    assert corpus.fetch("SELECT FROM notes WHERE chunked_at IS NOT NULL") == []
    assert corpus.fetch("SELECT chunk_count FROM corpus_statistics") == [(len(provisional),)]
    assert (serving(corpus.database), held(corpus.database)) == ("baseline", "rolled_back")


# --- The hold -----------------------------------------------------------------------------------


def test_the_last_word_about_a_migration_counts_and_all_are_kept(database: Database) -> None:
    """A rollback is more than a stop; the same again writes nothing."""
    assert held(database) is None
    assert resume(database) is None
    assert set_hold(database, "stopped", "Uno.")
    assert not set_hold(database, "stopped", "Otro.")
    assert set_hold(database, "rolled_back", "Dos.")
    assert not set_hold(database, "stopped", "Tres.")
    assert held(database) == "rolled_back"
    lifted = resume(database)
    assert lifted
    assert (lifted.kind, lifted.reason) == ("rolled_back", "Dos.")
    assert held(database) is None
    with database.transaction() as connection:
        rows = connection.execute("SELECT kind, reason FROM migration_holds ORDER BY id").fetchall()
    assert rows == [("stopped", "Uno."), ("rolled_back", "Dos."), ("resumed", "Arreglado.")]


def test_nothing_is_chunked_while_rolled_back(corpus: Corpus) -> None:
    """Whoever calls it; whole-note vectors of new notes are made, so they are found."""
    migrated(corpus, 3)
    back(corpus.database)
    add_notes(corpus.database, 4, version=1)
    before = written(corpus)
    with pytest.raises(MigrationHeldError, match="resume_migration"):
        chunk_window(corpus.database, ALWAYS, SMALL)
    assert written(corpus) == before
    assert embed_notes(corpus.database, corpus.embedder, ALWAYS).notes == 4
    resume(corpus.database)
    assert chunk_window(corpus.database, ALWAYS, SMALL).notes == 4


# --- Back to whole notes --------------------------------------------------------------------------


def test_back_to_whole_notes(corpus: Corpus) -> None:
    """Once: a second time nothing is written, whatever reason is given."""
    migrated(corpus, 12)
    before = notes(corpus)
    assert back(corpus.database)
    assert_rolled_back(corpus, before)
    rows = corpus.fetch("SELECT configuration, evaluation_id, run_id, reason FROM promotions")
    assert rows == [("baseline", None, "r1", WHY)]

    after = written(corpus)
    assert not back(corpus.database, reason="Otro.", run_id="r2")
    assert written(corpus) == after


def test_notes_in_every_state_are_taken_back(corpus: Corpus) -> None:
    """Waiting for vectors, edited since, expired, blank, with a failure of its own."""
    migrated(corpus, 5)
    (pending, edited, expired, blank, failed) = corpus.fetch("SELECT id FROM notes ORDER BY id")
    for statement, row in (
        (
            "INSERT INTO pending_vectors SELECT 'openai_hash', id FROM notes WHERE id = %s",
            pending,
        ),
        ("UPDATE notes SET content = content || ' Más.' WHERE id = %s", edited),
        ("UPDATE notes SET expires_at = now() WHERE id = %s", expired),
        ("UPDATE notes SET content = ' ', chunked_at = now() WHERE id = %s", blank),
        (
            "INSERT INTO indexing_failures (stage, note_id, chunk_id, model, error) SELECT "
            "'embed_chunk', note_id, id, 'openai_hash', '{}'::jsonb FROM chunks WHERE note_id = %s",
            failed,
        ),
    ):
        with corpus.database.transaction() as connection:
            connection.execute(statement, (row[0],))
    before = notes(corpus)
    back(corpus.database)
    assert_rolled_back(corpus, before)
    assert corpus.fetch("SELECT FROM indexing_failures") == []


def test_without_every_whole_note_vector_nothing_is_changed(corpus: Corpus) -> None:
    """It says how many are missing and what to run; blank and expired notes need none."""
    migrated(corpus, 6)
    with corpus.database.transaction() as connection:
        connection.execute("DELETE FROM vectors WHERE kind = 'note'")
        connection.execute("UPDATE notes SET content = ' ' WHERE external_id = '0'")
        connection.execute("UPDATE notes SET expires_at = now() WHERE external_id = '1'")
    before = written(corpus)
    with pytest.raises(RollbackRefusedError, match="4 notas enteras") as refused:
        back(corpus.database, accept_missing=3)
    assert "note_embeddings" in refused.value.message
    assert written(corpus) == before
    assert back(corpus.database, accept_missing=4)
    assert held(corpus.database) == "rolled_back"


# --- Killed in the middle -----------------------------------------------------------------------

HALFWAY = "(SELECT id FROM notes ORDER BY id OFFSET 150 LIMIT 1)"

KILLED = {
    "before_anything": "LOCK TABLE chunks IN ROW EXCLUSIVE MODE",
    "in_a_batch": f"SELECT FROM pending_vectors WHERE note_id = {HALFWAY} FOR UPDATE",
    "with_a_note_left": f"SELECT FROM notes WHERE id = {HALFWAY} FOR UPDATE",
    "before_the_statistics": "LOCK TABLE lexeme_statistics IN ROW EXCLUSIVE MODE",
}
"""What somebody else locks, so that a rollback gets no further than this."""

CHUNKED = {
    "before_anything": MANY,
    "in_a_batch": MANY - BATCH_NOTES,
    "with_a_note_left": 1,
    "before_the_statistics": 0,
}


def roll_back_in_a_process(url: str) -> None:
    """A run of its own."""
    with Database(url, tenant="ana") as database:
        back(database)


@contextmanager
def rolling_back(url: str) -> Iterator[Callable[[], None]]:
    """A run in a process of its own, and how to kill it."""
    process = get_context("forkserver").Process(target=roll_back_in_a_process, args=(url,))
    process.start()

    def kill() -> None:
        assert process.is_alive()
        process.kill()
        process.join(PATIENCE_S)

    try:
        yield kill
    finally:
        process.kill()
        process.join(PATIENCE_S)


def is_waiting(corpus: Corpus) -> bool:
    """Whether another session waits for a lock."""
    return bool(
        corpus.fetch(
            "SELECT FROM pg_stat_activity WHERE datname = current_database() "
            "AND wait_event_type = 'Lock'"
        )
    )


def queue_halfway(corpus: Corpus) -> None:
    """Let the note in the middle wait for vectors."""
    with corpus.database.transaction() as connection:
        connection.execute(
            "INSERT INTO pending_vectors (model, note_id) "
            f"SELECT 'openai_hash', id FROM notes WHERE id = {HALFWAY}"
        )


def chunked(corpus: Corpus) -> int:
    [(count,)] = corpus.fetch("SELECT count(*) FROM notes WHERE chunked_at IS NOT NULL")
    return int(count)


@pytest.mark.parametrize("moment", KILLED)
def test_killed_at_any_moment_and_run_again(corpus: Corpus, database_url: str, moment: str) -> None:
    """The notes done so far are done, all others are whole; the rerun ends like one run."""
    migrated(corpus, MANY)
    queue_halfway(corpus)
    before, own = notes(corpus), sessions(corpus)
    with psycopg.connect(database_url) as other:
        other.execute(KILLED[moment])
        with rolling_back(database_url) as kill:
            wait_until(lambda: chunked(corpus) == CHUNKED[moment])
            if moment != "with_a_note_left":
                wait_until(lambda: is_waiting(corpus))
            kill()
    wait_until(lambda: sessions(corpus) <= own)
    assert notes(corpus) == before
    assert held(corpus.database) == (None if moment == "before_anything" else "rolled_back")
    assert serving(corpus.database) == (None if moment == "before_anything" else "baseline")
    assert chunked(corpus) == CHUNKED[moment]
    halves = corpus.fetch(
        "SELECT FROM notes n WHERE (chunked_at IS NULL) <> ALL "
        "(SELECT c.id = n.id FROM chunks c WHERE c.note_id = n.id)"
    )
    assert halves == []

    back(corpus.database, run_id="r2")
    assert_rolled_back(corpus, before)
    with corpus.database.transaction() as connection:
        assert not update_statistics(connection)
    for table in ("promotions", "migration_holds"):
        assert len(corpus.fetch(f"SELECT FROM {table}")) == 1


def sessions(corpus: Corpus) -> int:
    [(count,)] = corpus.fetch(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    )
    return int(count)


# --- Beside whoever reads and writes --------------------------------------------------------------


def together(*jobs: Callable[[], object]) -> list[Any]:
    """Start all at the same moment in threads; return their results, or raise the first error."""
    barrier = threading.Barrier(len(jobs))

    def start(job: Callable[[], object]) -> object:
        barrier.wait(PATIENCE_S)
        return job()

    with ThreadPoolExecutor(len(jobs)) as pool:
        futures = [pool.submit(start, job) for job in jobs]
        return [future.result(timeout=PATIENCE_S) for future in futures]


def served(database: Database) -> RetrievalConfig:
    """What serves, as an application reads it before each question."""
    with database.transaction() as connection:
        promotion = current_promotion(connection)
    assert promotion
    return parse_retrieval(promotion.config, origin="")


@pytest.mark.parametrize("round_", range(2))
def test_beside_backfills_edits_deletions_and_another_rollback(corpus: Corpus, round_: int) -> None:
    """Only the backfill fails; no chunks are left."""
    migrated(corpus, MANY)
    add_notes(corpus.database, MANY, version=1)
    embed_notes(corpus.database, corpus.embedder, ALWAYS)
    chunk_window(corpus.database, ALWAYS, SMALL)

    def backfill() -> None:
        for version in range(2, 1000):
            add_notes(corpus.database, 40, version=version)
            try:
                chunk_window(corpus.database, ALWAYS, SMALL)
            except MigrationHeldError:
                return
        pytest.fail("the backfill goes on")

    def delete() -> None:
        for start in range(MANY - 30, MANY, 3):
            names = [f"{number}" for number in range(start, start + 3)]
            with corpus.database.transaction() as connection:
                connection.execute("DELETE FROM notes WHERE external_id = ANY(%s)", (names[::-1],))

    together(
        lambda: back(corpus.database, run_id="a"),
        lambda: back(corpus.database, run_id="b"),
        lambda: embed_chunks(corpus.database, HashEmbedder(), ALWAYS),
        backfill,
        delete,
    )
    assert len(notes(corpus)) == MANY - 30
    assert_rolled_back(corpus, notes(corpus))
    for table in ("promotions", "migration_holds"):
        assert len(corpus.fetch(f"SELECT FROM {table}")) == 1


# --- Back to what served before -------------------------------------------------------------------


OF_ANA = SearchSettings("ana")


def evaluate(corpus: Corpus, item: NamedConfiguration) -> UUID:
    """Store an evaluation that passes its gate; the later, the better."""
    relevant = UUID(int=1)
    made = tuple(
        QueryOutcome(
            GoldenEntry(f"p{n}", (relevant,), "r", "factual", 1, golden_id=UUID(int=100 + n)),
            (relevant,),
            latency_ms=100.0 - len(corpus.fetch("SELECT FROM evaluation_results")),
            stages={},
        )
        for n in range(20)
    )
    with corpus.database.transaction() as connection:
        count_contents(connection)
        searched = read_contents(connection, item.retrieval, OF_ANA)
        context = EvaluationContext(
            item.name,
            item.retrieval,
            golden_hash([]),
            "1",
            (),
            contents=searched.contents,
            measured_at=searched.read_at,
        )
        return insert_evaluation(connection, context, summarize(made), made)


def promote(
    corpus: Corpus, *items: NamedConfiguration, name: str | None = None
) -> tuple[str, bool]:
    """Promote one of some candidates, as a run does."""
    outcome = promote_best(
        corpus.database, {item.name: item for item in items}, settings=OF_ANA, name=name
    )
    return outcome.evaluation.configuration, outcome.changed


def served_in_turn(corpus: Corpus, *items: NamedConfiguration) -> None:
    for item in items:
        evaluate(corpus, item)
        promote(corpus, item)


def take_back(corpus: Corpus, name: str) -> tuple[str, bool]:
    outcome = withdraw(corpus.database, name, reason=WHY, run_id="r9")
    assert outcome.serving.configuration == serving(corpus.database)
    return outcome.serving.configuration, outcome.changed


def promotions(corpus: Corpus) -> list[Any]:
    return corpus.fetch("SELECT configuration, reason FROM promotions ORDER BY id")


def test_what_served_before_serves_again_once(corpus: Corpus) -> None:
    """On its own evaluation, with the reason; asked again, nothing flips back."""
    served_in_turn(corpus, FIRST, SECOND)
    assert take_back(corpus, "segunda") == ("primera", True)
    assert take_back(corpus, "segunda") == ("primera", False)
    assert promotions(corpus) == [("primera", None), ("segunda", None), ("primera", WHY)]
    rows = corpus.fetch("SELECT evaluation_id, config_hash FROM promotions ORDER BY id")
    assert rows[0] == rows[2]
    assert corpus.fetch("SELECT run_id FROM promotions ORDER BY id DESC LIMIT 1") == [("r9",)]


def test_one_withdrawn_is_not_gone_back_to(corpus: Corpus) -> None:
    """Step by step to the first one; before that there is nothing."""
    served_in_turn(corpus, FIRST, SECOND, THIRD)
    assert take_back(corpus, "tercera") == ("segunda", True)
    assert take_back(corpus, "segunda") == ("primera", True)
    before = promotions(corpus)
    with pytest.raises(RollbackRefusedError, match="antes de «primera»"):
        take_back(corpus, "primera")
    assert promotions(corpus) == before


@pytest.mark.parametrize(
    ("loss", "said"),
    [
        (
            "UPDATE embedding_models SET retired_at = now() WHERE name = 'otro_modelo'",
            "embeddings/",
        ),
        ("DELETE FROM vectors WHERE model = 'otro_modelo'", "embeddings/otro_modelo"),
        (
            "SET LOCAL session_replication_role = replica; UPDATE promotions SET config = "
            """jsonb_set(config, '{retrievers,windows}', '{"weight": 0.5}') """
            "WHERE configuration = 'antigua'",
            "embeddings/otro_modelo",
        ),
    ],
    ids=["retired", "no_vectors", "no_windows"],
)
def test_one_that_cannot_serve_any_more_is_refused(corpus: Corpus, loss: str, said: str) -> None:
    other = HashEmbedder("otro_modelo", dimension=16)
    with corpus.database.transaction() as connection:
        register_model(
            connection, other.info, {VectorKind.CHUNK, VectorKind.CONTEXTUAL, VectorKind.NOTE}
        )
    migrated(corpus, 2)
    embed_chunks(corpus.database, other, ALWAYS)
    old = NamedConfiguration(
        name="antigua", description="La de antes.", retrieval=RetrievalConfig(model="otro_modelo")
    )
    served_in_turn(corpus, old, FIRST)
    with corpus.database.transaction() as connection:
        connection.execute(loss)
    with pytest.raises(RollbackRefusedError, match=said):
        take_back(corpus, "primera")
    assert promotions(corpus) == [("antigua", None), ("primera", None)]


def test_back_to_the_previous_model_and_forth(corpus: Corpus) -> None:
    """The pointer moves with its model; a person moves it on again by name."""
    other = HashEmbedder("otro_modelo", dimension=16)
    with corpus.database.transaction() as connection:
        register_model(
            connection, other.info, {VectorKind.CHUNK, VectorKind.CONTEXTUAL, VectorKind.NOTE}
        )
    migrated(corpus, 2)
    embed_chunks(corpus.database, other, ALWAYS)
    new = NamedConfiguration(
        name="nueva", description="La nueva.", retrieval=RetrievalConfig(model="otro_modelo")
    )
    served_in_turn(corpus, FIRST, new)
    assert take_back(corpus, "nueva") == ("primera", True)
    with corpus.database.transaction() as connection:
        promotion = current_promotion(connection)
    assert promotion
    assert promotion.model == MODEL
    assert promote(corpus, FIRST, new, name="nueva") == ("nueva", True)


# --- What is promoted afterwards ------------------------------------------------------------------


def test_what_was_withdrawn_is_promoted_again_by_name_only(corpus: Corpus) -> None:
    """Neither a newer evaluation nor a copy under another name gets round a person's decision."""
    served_in_turn(corpus, FIRST, SECOND)
    take_back(corpus, "segunda")
    assert promote(corpus, FIRST, SECOND) == ("primera", False)
    copy = SECOND.model_copy(update={"name": "copia"})
    for item in (SECOND, copy):
        evaluate(corpus, item)
        with pytest.raises(GateNotPassedError, match=f"{item.name}: retirada por una persona"):
            promote(corpus, item)
    assert promote(corpus, FIRST, SECOND, copy) == ("primera", False)
    assert promote(corpus, FIRST, SECOND, name="segunda") == ("segunda", True)
    evaluate(corpus, SECOND)
    assert promote(corpus, FIRST, SECOND) == ("segunda", True)  # it serves, on newer evidence
    take_back(corpus, "segunda")
    evaluate(corpus, SECOND)
    assert promote(corpus, FIRST, SECOND) == ("primera", False)


def test_while_rolled_back_only_a_name_promotes(corpus: Corpus) -> None:
    """Evaluations of the chunks that were dropped do not count, not even by name."""
    migrated(corpus, 2)
    served_in_turn(corpus, FIRST, SECOND)
    evaluate(corpus, THIRD)
    back(corpus.database)
    candidates: Sequence[NamedConfiguration] = (FIRST, SECOND, THIRD)
    with pytest.raises(MigrationHeldError, match="solo se promueve una candidata si"):
        promote(corpus, *candidates)
    assert serving(corpus.database) == "baseline"
    with pytest.raises(GateNotPassedError, match=r"primera: .* está obsoleta: .*fragmentos"):
        promote(corpus, *candidates, name="primera")
    evaluate(corpus, FIRST)
    assert promote(corpus, *candidates, name="primera") == ("primera", True)

    resume(corpus.database)
    evaluate(corpus, THIRD)
    assert back(corpus.database)
    resume(corpus.database)
    with pytest.raises(GateNotPassedError, match="tercera: se volvió a las notas enteras"):
        promote(corpus, *candidates)
    evaluate(corpus, THIRD)
    assert promote(corpus, *candidates) == ("tercera", True)
