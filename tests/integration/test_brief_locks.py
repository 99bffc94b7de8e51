"""Brief table locks during other work: no deadlock, and nobody waits long."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from rag_resources.core.chunking_version import chunking_hash
from rag_resources.core.errors import IndexingError
from rag_resources.core.retrievers import VectorKind
from rag_resources.database.claims import with_brief_locks
from rag_resources.database.pool import LOCK_TIMEOUT, Database
from rag_resources.indexing.chunk import build_chunks
from rag_resources.store import chunks as chunk_store
from rag_resources.store.models import register_model
from tests.corpus import SMALL, Corpus, Draft
from tests.embedders import HashEmbedder
from tests.waiting import wait_until

NEW = HashEmbedder("new_model", 40)
PATIENCE_S = 60
TEXTS = ("El ascensor no funciona. La junta votó arreglarlo.", "Vera tiene fiebre. Es un virus.")

Session = psycopg.Connection[Any]


@pytest.fixture
def tenant() -> str:
    return "ana"


@pytest.fixture
def corpus(database: Database) -> Corpus:
    """Two chunked notes."""
    made = Corpus(database)
    made.fill([Draft(text) for text in TEXTS])
    return made


@pytest.fixture
def session(database_url: str) -> Iterator[Session]:
    """Somebody else, in a transaction."""
    with psycopg.connect(database_url) as connection:
        yield connection
        connection.rollback()


def register(corpus: Corpus) -> None:
    """Make a new model known, as the first run of its asset does."""
    with corpus.database.transaction() as connection:
        register_model(
            connection, NEW.info, {VectorKind.CHUNK, VectorKind.CONTEXTUAL, VectorKind.NOTE}
        )


def in_thread(work: Callable[[], None]) -> Future[None]:
    """Start work in a thread; callers must release its locks before they wait for it."""
    with_pool = ThreadPoolExecutor(1)
    future = with_pool.submit(work)
    with_pool.shutdown(wait=False)
    return future


def wait_for_a_lock_on(corpus: Corpus, table: str) -> None:
    """Wait until somebody waits for a table."""
    wait_until(
        lambda: corpus.fetch(
            "SELECT FROM pg_locks WHERE relation = %s::regclass AND NOT granted", table
        )
    )


def assert_queued(corpus: Corpus, count: int) -> None:
    """That many notes wait for the new model."""
    queued = "SELECT note_id FROM pending_vectors WHERE model = 'new_model'"
    assert len(corpus.fetch(queued)) == count


# --- A new model --------------------------------------------------------------------------------


def test_a_new_model_and_whoever_edits_one_note_and_deletes_another(
    corpus: Corpus, session: Session
) -> None:
    """The deletion wants the chunks, which the model locks; the model wants the notes."""
    first, second = (row[0] for row in corpus.fetch("SELECT id FROM notes ORDER BY created_at"))
    session.execute("UPDATE notes SET tags = '{a}' WHERE id = %s", (first,))
    registering = in_thread(lambda: register(corpus))
    wait_for_a_lock_on(corpus, "notes")
    session.execute("DELETE FROM notes WHERE id = %s", (second,))
    session.commit()
    registering.result(PATIENCE_S)
    assert_queued(corpus, 1)


def test_a_new_model_and_whoever_chunks_a_note(corpus: Corpus) -> None:
    """Chunking has the chunks and goes on to the notes, the other way round."""
    corpus.fetch("UPDATE notes SET content = content || ' Y nada más.' RETURNING 1")
    version = chunking_hash(SMALL)
    (note_id,) = corpus.fetch("SELECT id FROM notes ORDER BY created_at LIMIT 1")[0]
    with corpus.database.transaction() as connection:
        (note,) = chunk_store.claim_notes(connection, [note_id], chunking_hash=version)
        registering = in_thread(lambda: register(corpus))
        wait_for_a_lock_on(corpus, "chunks")
        chunks = build_chunks(note, SMALL)
        chunk_store.replace_chunks(connection, {note_id: chunks}, chunking_hash=version)
    registering.result(PATIENCE_S)
    assert_queued(corpus, 2)


def test_models_registered_at_once_by_several_runs(corpus: Corpus) -> None:
    """Once each, whatever the order."""
    others = [HashEmbedder(f"model_{number}", 8 + number).info for number in range(3)]
    barrier = threading.Barrier(6)

    def run(number: int) -> None:
        barrier.wait(PATIENCE_S)
        with corpus.database.transaction() as connection:
            register_model(
                connection,
                others[number % 3],
                {VectorKind.CHUNK, VectorKind.CONTEXTUAL, VectorKind.NOTE},
            )

    with ThreadPoolExecutor(6) as pool:
        for future in [pool.submit(run, number) for number in range(6)]:
            future.result(PATIENCE_S)
    queued = corpus.fetch("SELECT model, count(*) FROM pending_vectors GROUP BY model")
    assert sorted(queued) == [(info.name, len(TEXTS)) for info in others]


# --- What is never let go of --------------------------------------------------------------------


def test_a_table_that_others_never_let_go_of_is_given_up(corpus: Corpus, session: Session) -> None:
    """And said; what was done by then is undone, and the transaction goes on as it was."""
    session.execute("LOCK TABLE chunks IN ROW EXCLUSIVE MODE")
    with corpus.database.transaction() as connection:

        def work() -> None:
            connection.execute("DELETE FROM pending_vectors")
            connection.execute("UPDATE corpus_statistics SET chunk_count = 99")
            connection.execute("LOCK TABLE chunks IN EXCLUSIVE MODE")

        with pytest.raises(IndexingError, match="y no avanza"):
            with_brief_locks(connection, work, patience_s=0)
        assert connection.execute("SELECT chunk_count FROM corpus_statistics").fetchone() != (99,)
        assert connection.execute("SHOW lock_timeout").fetchone() == (LOCK_TIMEOUT,)
        session.rollback()
        with_brief_locks(connection, work)
        assert connection.execute("SELECT chunk_count FROM corpus_statistics").fetchone() == (99,)
        assert connection.execute("SHOW lock_timeout").fetchone() == (LOCK_TIMEOUT,)


# --- The statistics of full-text search ---------------------------------------------------------
