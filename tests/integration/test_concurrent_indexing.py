"""Concurrent runs of one month, with ingestion, deletion and constant readers."""

import random
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from pgvector import HalfVector

from rag_resources.core.chunking_version import chunking_hash
from rag_resources.core.configuration import RetrievalConfig, Strategy, TopKConfig
from rag_resources.core.contextual import contextual_text
from rag_resources.core.errors import DatabaseUnavailableError, IndexingError
from rag_resources.core.types import Note, NoteRecord
from rag_resources.database.claims import until_none_is_left
from rag_resources.database.pool import Connection, Database
from rag_resources.indexing.chunk import build_chunks, chunk_window
from rag_resources.indexing.embed import embed_chunks, embed_notes
from rag_resources.ingestion.ingest import ingest
from rag_resources.store import chunks as chunk_store
from rag_resources.store.notes import note_id
from rag_resources.store.vector_indexes import ensure_vector_indexes
from rag_resources.store.vectors import claim_queued
from tests.corpus import ALWAYS, GENEROUS_MS, SMALL, SOURCE, START, Corpus
from tests.embedders import HashEmbedder
from tests.waiting import wait_until

PATIENCE_S = 60
EVERYTHING = TopKConfig(retrieval=500)
MODEL = "openai_hash"
PLACES = "Orriols Paiporta Catarroja Teruel Vallibona Barracas Xàtiva Ruzafa Benimaclet Sagunto"

Work = Callable[[Database, HashEmbedder], object]


def word_of(number: int) -> str:
    """A word that no other note has."""
    return f"clave{number:04}"


def text_of(number: int, version: int = 0, sentences: int = 4) -> str:
    """A note with its word in it; no two notes or versions share a sentence."""
    places = PLACES.split()
    return f"Apunte {word_of(number)} del cuaderno. " + " ".join(
        f"El día {number}-{version}-{index} fuimos a {places[(number + index) % 10]} con Vera."
        for index in range(sentences)
    )


def add_notes(database: Database, numbers: Sequence[int], *, version: int = 0) -> list[UUID]:
    """Write notes, or another version of them."""
    records = [
        NoteRecord(f"{n}", "", text_of(n, version), START + timedelta(minutes=n)) for n in numbers
    ]
    ingest(database, records, tenant="ana", source=SOURCE)
    return [note_id("ana", SOURCE, record.external_id) for record in records]


@pytest.fixture
def tenant() -> str:
    return "ana"


@pytest.fixture
def corpus(database: Database) -> Corpus:
    return Corpus(database)


def index(database: Database, embedder: HashEmbedder) -> None:
    """Everything that indexing does with notes."""
    embed_notes(database, embedder, ALWAYS)
    chunk_window(database, ALWAYS, SMALL)
    embed_chunks(database, embedder, ALWAYS)


def assert_complete(corpus: Corpus) -> None:
    """Notes have the chunks of their last content and vectors of those; nothing else is there."""
    notes = corpus.fetch("SELECT id, title, content, created_at FROM notes")
    expected = {
        (chunk.chunk_id, chunk.note_id, chunk.chunk_index, chunk.start_char, chunk.end_char)
        for row in notes
        for chunk in build_chunks(Note(*row), SMALL)
    }
    stored = corpus.fetch("SELECT id, note_id, chunk_index, start_char, end_char FROM chunks")
    assert {tuple(row) for row in stored} == expected
    vectors = corpus.fetch(
        "SELECT v.kind, coalesce(c.content, n.content), c.context, v.embedding FROM vectors v "
        "LEFT JOIN chunks c ON c.id = v.chunk_id LEFT JOIN notes n ON n.id = v.note_id"
    )
    for kind, content, context, vector in vectors:
        text = contextual_text(context, content) if kind == "contextual" else content
        assert vector == half(corpus.embedder, text)
    counts = Counter(row.kind for row in vectors)
    assert (counts["chunk"], counts["contextual"], counts["note"]) == (
        *(len(stored), len(stored)),
        len(notes),
    )
    for table in ("pending_vectors", "indexing_failures"):
        assert corpus.fetch(f"SELECT * FROM {table}") == []


def half(embedder: HashEmbedder, text: str) -> Any:
    """The vector of a text as it is stored."""
    return HalfVector(embedder.embed_queries([text])[0])


def together(*jobs: Callable[[], object]) -> list[Any]:
    """Start all at the same moment in threads; return their results, or raise the first error."""
    barrier = threading.Barrier(len(jobs))

    def start(job: Callable[[], object]) -> object:
        barrier.wait(PATIENCE_S)
        return job()

    with ThreadPoolExecutor(len(jobs)) as pool:
        futures = [pool.submit(start, job) for job in jobs]
        return [future.result(timeout=PATIENCE_S) for future in futures]


# --- The same month twice ---------------------------------------------------------------------


@pytest.mark.parametrize("round_", range(2))
def test_runs_of_one_month_at_once_do_everything_once(corpus: Corpus, round_: int) -> None:
    """Three runs: no text is embedded twice, and all is there."""
    notes = add_notes(corpus.database, range(150))
    embedders = [HashEmbedder() for _ in range(3)]

    def run(embedder: HashEmbedder) -> tuple[int, int, int]:
        whole = embed_notes(corpus.database, embedder, ALWAYS)
        chunked = chunk_window(corpus.database, ALWAYS, SMALL)
        vectors = embed_chunks(corpus.database, embedder, ALWAYS)
        return whole.notes, chunked.notes, vectors.notes

    counts = together(*(lambda embedder=embedder: run(embedder) for embedder in embedders))

    assert [sum(column) for column in zip(*counts, strict=True)] == [len(notes)] * 3
    texts = [text for embedder in embedders for text in embedder.texts]
    assert len(texts) == len(set(texts))
    assert_complete(corpus)


# --- What another run has in hand ---------------------------------------------------------------


def claim_one_to_chunk(connection: Connection) -> None:
    version = chunking_hash(SMALL)
    (note,) = chunk_store.select_notes_to_chunk(
        connection, ALWAYS, chunking_hash=version, skipped=[], batch_size=1
    )
    assert chunk_store.claim_notes(connection, [note.note_id], chunking_hash=version)


def claim_one_to_embed(connection: Connection) -> None:
    (note,) = claim_queued(connection, MODEL, ALWAYS, skipped=[], batch_size=1, whole=True)
    assert note


def claim_one_pending(connection: Connection) -> None:
    (note,) = claim_queued(connection, MODEL, ALWAYS, skipped=[], batch_size=1)
    assert note


STEPS: dict[str, tuple[Callable[[Connection], None], Work, str]] = {
    "notes": (
        claim_one_to_embed,
        lambda database, embedder: embed_notes(database, embedder, ALWAYS).notes,
        "SELECT count(*) FROM vectors WHERE kind = 'note'",
    ),
    "chunks": (
        claim_one_to_chunk,
        lambda database, _: chunk_window(database, ALWAYS, SMALL).notes,
        "SELECT count(*) FROM notes WHERE chunked_at IS NOT NULL",
    ),
    "embeddings": (
        claim_one_pending,
        lambda database, embedder: embed_chunks(database, embedder, ALWAYS).notes,
        "SELECT count(*) - (SELECT count(*) FROM pending_vectors) FROM notes",
    ),
}


@pytest.fixture(params=STEPS)
def step(request: pytest.FixtureRequest, corpus: Corpus) -> Any:
    """A step of indexing, all that comes before it being done."""
    add_notes(corpus.database, range(10))
    if request.param == "embeddings":
        chunk_window(corpus.database, ALWAYS, SMALL)
    return STEPS[request.param]


def test_what_another_run_has_in_hand_is_done_when_that_run_dies(
    corpus: Corpus, step: tuple[Callable[[Connection], None], Work, str]
) -> None:
    """The rest comes first; then the run waits until the server ends the dead run's session."""
    claim, work, done = step

    def die() -> None:
        with corpus.database.transaction() as connection:
            claim(connection)
            run.append(pool.submit(work, corpus.database, corpus.embedder))
            wait_until(lambda: corpus.fetch(done) == [(9,)])
            assert not run[0].done()
            corpus.fetch("SELECT pg_terminate_backend(%s)", connection.info.backend_pid)

    run: list[Future[object]] = []
    with ThreadPoolExecutor() as pool:
        with pytest.raises(DatabaseUnavailableError):
            die()
        assert run[0].result(timeout=PATIENCE_S) == 10
    assert corpus.fetch(done) == [(10,)]


def test_what_another_run_never_lets_go_of_is_given_up() -> None:
    """And said; as long as that run gets on with it, it is not."""
    left = iter([3, 2, 1, 0])
    until_none_is_left(lambda: next(left), patience_s=0)

    with pytest.raises(IndexingError, match=r"\(2\) y no avanza"):
        until_none_is_left(lambda: 2, patience_s=0)


# --- Beside whoever writes and reads ------------------------------------------------------------


KEPT, DOOMED = range(40), range(40, 64)


def edit_all(corpus: Corpus, chance: random.Random) -> None:
    """Several versions, each of some notes in one transaction."""
    for version in range(1, 9):
        add_notes(corpus.database, chance.sample(KEPT, 12), version=version)


def delete_doomed(corpus: Corpus, chance: random.Random) -> None:
    """Three at a time, in any order."""
    doomed = [note_id("ana", SOURCE, f"{number}") for number in DOOMED]
    chance.shuffle(doomed)
    for start in range(0, len(doomed), 3):
        with corpus.database.transaction() as connection:
            for note in doomed[start : start + 3]:
                connection.execute("DELETE FROM notes WHERE id = %s", (note,))


def read(corpus: Corpus, chance: random.Random, stop: threading.Event) -> int:
    """Ask for notes by their words until told to stop; each must be found, by every strategy.

    Among all passages: the vectors are chance, and so is how many passages they put before it. Of
    an edited note that waits for its vectors, more than twenty may be.
    """
    asked = 0
    while not stop.is_set() or not asked:
        number = chance.choice(KEPT)
        strategy = chance.choice([Strategy.FULLTEXT, Strategy.HYBRID, Strategy.HYBRID_RERANK])
        config = RetrievalConfig(model=MODEL, strategy=strategy, top_k=EVERYTHING)
        answer = corpus.pipeline().retrieve(
            f"¿Qué dice {word_of(number)}?",
            config,
            distinct_notes=len(KEPT) + len(DOOMED),
            deadline_ms=GENEROUS_MS,
        )
        assert (answer.error, answer.degraded) == (None, ())
        found = {result.note_id for result in answer.results}
        assert note_id("ana", SOURCE, f"{number}") in found
        asked += 1
    return asked


def backfill(corpus: Corpus, embedder: HashEmbedder, stop: threading.Event) -> None:
    """Index repeatedly, as backfills and schedules do, with all final steps."""
    while not stop.is_set():
        index(corpus.database, embedder)
        with corpus.database.transaction() as connection:
            chunk_store.refresh_statistics(connection)
        ensure_vector_indexes(corpus.database, embedder.info, min_rows=1)


@pytest.mark.parametrize("seed", range(2))
def test_two_backfills_beside_edits_deletions_and_readers(corpus: Corpus, seed: int) -> None:
    """Nobody gets an error, every note is always found, and the final index is up to date."""
    add_notes(corpus.database, [*KEPT, *DOOMED])
    if seed % 2:
        index(corpus.database, corpus.embedder)
    stop = threading.Event()

    def write() -> None:
        chance = random.Random(seed)
        try:
            together(lambda: edit_all(corpus, chance), lambda: delete_doomed(corpus, chance))
        finally:
            stop.set()

    together(
        write,
        lambda: read(corpus, random.Random(seed), stop),
        lambda: read(corpus, random.Random(seed + 1), stop),
        lambda: backfill(corpus, HashEmbedder(), stop),
        lambda: backfill(corpus, HashEmbedder(), stop),
    )

    index(corpus.database, corpus.embedder)
    assert len(corpus.fetch("SELECT id FROM notes")) == len(KEPT)
    assert_complete(corpus)
