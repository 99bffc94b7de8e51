"""Chunking and embedding: idempotent, atomic per note, safe beside other runs and kills."""

import threading
from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import numpy as np
import psycopg
import pytest
from pgvector import HalfVector
from psycopg import sql

from rag_resources.core.chunking_version import chunking_hash
from rag_resources.core.configuration import ChunkingConfig
from rag_resources.core.contextual import contextual_text
from rag_resources.core.errors import (
    ModelMissingError,
    ProviderError,
    ProviderUnavailableError,
)
from rag_resources.core.retrievers import RankedList, VectorKind
from rag_resources.core.types import Chunk, ModelInfo, Note, NoteRecord, TimeWindow, Vectors
from rag_resources.database.pool import Database
from rag_resources.database.queries import statement
from rag_resources.indexing.chunk import ChunkReport, build_chunks, chunk_window
from rag_resources.indexing.embed import embed_chunks, embed_each, embed_notes
from rag_resources.indexing.embedding_queue import EmbedReport
from rag_resources.ingestion.ingest import ingest
from rag_resources.languages.messages import restored
from rag_resources.store import chunks as chunk_store
from rag_resources.store.models import fetch_model, model_contents, register_model
from rag_resources.store.notes import note_id
from rag_resources.store.search import (
    EmbeddedQuery,
    SearchedList,
    compose_search,
    read_facts,
    search,
    search_parameters,
)
from rag_resources.store.vector_indexes import ensure_vector_indexes
from rag_resources.store.vectors import Place, count_gaps, replace_vectors, sample_vectors
from tests.corpus import KINDS, only
from tests.embedders import HashEmbedder
from tests.waiting import wait_until

START = datetime(2025, 1, 1, tzinfo=UTC)
JANUARY = TimeWindow(START, datetime(2025, 2, 1, tzinfo=UTC))
ALWAYS = TimeWindow(datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC))
SMALL = ChunkingConfig(max_tokens=32, overlap_tokens=8, min_tokens=4)
OTHER = ChunkingConfig(max_tokens=48, overlap_tokens=0, min_tokens=0)
PLACES = "Orriols Paiporta Catarroja Teruel Vallibona Barracas Xàtiva Ruzafa Benimaclet Sagunto"


@pytest.fixture
def tenant() -> str:
    return "ana"


def text_of(number: int, sentences: int = 6) -> str:
    """Make a note whose sentences occur in no other note."""
    places = PLACES.split()
    return " ".join(
        f"El día {number}-{index} fuimos a {places[(number * 7 + index) % 10]} a ver a Vera."
        for index in range(sentences)
    )


def add_notes(database: Database, texts: Iterable[str], *, first: int = 0) -> list[UUID]:
    """Notes of January, the first one oldest."""
    records = [
        NoteRecord(f"{number}", f"Nota {number}", text, START + timedelta(minutes=number))
        for number, text in enumerate(texts, start=first)
    ]
    ingest(database, records, tenant="ana", source="diario")
    return [note_id("ana", "diario", record.external_id) for record in records]


def edit(database: Database, note: UUID, content: str) -> None:
    with database.transaction() as connection:
        connection.execute("UPDATE notes SET content = %s WHERE id = %s", (content, note))


def delete(database: Database, note: UUID) -> None:
    with database.transaction() as connection:
        connection.execute("DELETE FROM notes WHERE id = %s", (note,))


def register(
    database: Database, embedder: HashEmbedder, kinds: Collection[VectorKind] = KINDS
) -> None:
    with database.transaction() as connection:
        register_model(connection, embedder.info, kinds)


def fetch(database: Database, query: str, *parameters: object) -> list[Any]:
    with database.transaction() as connection:
        return connection.execute(query, parameters).fetchall()  # type: ignore[arg-type]


TABLES = {
    "notes": "id",
    "chunks": "id",
    "vectors": "model, kind, chunk_id, note_id",
    "pending_vectors": "model, note_id",
    "indexing_failures": "id",
}


def row_versions(database: Database) -> dict[str, list[Any]]:
    """Every indexing row with its row version: equal if and only if nothing was written."""
    return {
        table: fetch(database, f"SELECT xmin::text, t.* FROM {table} t ORDER BY {key}")
        for table, key in TABLES.items()
    }


def pending(database: Database, model: str = "openai_hash") -> set[UUID]:
    rows = fetch(database, "SELECT note_id FROM pending_vectors WHERE model = %s", model)
    return {row.note_id for row in rows}


def recorded_failures(database: Database) -> list[tuple[str, UUID, str, str]]:
    """Stage, note, model and reason of each text that could not be indexed."""
    rows = fetch(
        database,
        "SELECT stage, note_id, model, error FROM indexing_failures ORDER BY stage, chunk_id",
    )
    return [(row.stage, row.note_id, row.model, restored(row.error)) for row in rows]


def expected_chunks(database: Database, config: ChunkingConfig) -> dict[UUID, list[Chunk]]:
    """The chunks that the present notes should have."""
    rows = fetch(database, "SELECT id, title, content, created_at, tags FROM notes")
    return {row.id: build_chunks(Note(*row), config) for row in rows}


def assert_chunks_are(database: Database, config: ChunkingConfig) -> None:
    rows = fetch(
        database,
        "SELECT id, note_id, chunk_index, start_char, end_char, content, context, topics "
        "FROM chunks ORDER BY note_id, chunk_index",
    )
    stored: dict[UUID, list[Chunk]] = {}
    for row in rows:
        stored.setdefault(row.note_id, []).append(Chunk(*row))
    expected = {note: cut for note, cut in expected_chunks(database, config).items() if cut}
    assert stored == expected


def assert_fully_embedded(database: Database, embedder: HashEmbedder) -> None:
    """Every chunk has the vectors of its own two texts."""
    with database.transaction() as connection:
        gaps = {own.kind: own for own in count_gaps(connection, embedder.info, ALWAYS)}
        samples = sample_vectors(connection, embedder.info.name, ALWAYS, per_month=10_000)
    assert gaps["chunk"].total == gaps["contextual"].total == 0
    assert 2 * gaps["chunk"].owners == len(samples)
    assert pending(database, embedder.info.name) == set()
    for sample in samples:
        (own,) = embedder.embed_queries([sample.text])
        np.testing.assert_allclose(sample.embedding, own, atol=1e-3)


def index(
    database: Database, embedder: HashEmbedder, config: ChunkingConfig = SMALL
) -> tuple[ChunkReport, EmbedReport, EmbedReport]:
    """Do everything that an indexing run does, after clearing the recorded texts."""
    embedder.texts.clear()
    return (
        chunk_window(database, ALWAYS, config),
        embed_chunks(database, embedder, ALWAYS),
        embed_notes(database, embedder, ALWAYS),
    )


# --- One run after another --------------------------------------------------------------------


def test_window_is_chunked_and_embedded_completely(database: Database) -> None:
    embedder = HashEmbedder()
    register(database, embedder)
    notes = add_notes(database, [text_of(number) for number in range(5)])
    done: list[int] = []

    chunked = chunk_window(database, JANUARY, SMALL, progress=done.append)
    assert pending(database) == set(notes)
    embedded = embed_chunks(database, embedder, JANUARY, progress=done.append)
    whole = embed_notes(database, embedder, JANUARY, progress=done.append)

    assert_chunks_are(database, SMALL)
    assert_fully_embedded(database, embedder)
    assert done == [5, 5, 5]
    assert (chunked.notes, embedded.notes, whole.notes) == (5, 5, 5)
    assert embedded.vectors == embedded.embedded == 2 * chunked.chunks
    assert (chunked.failed, embedded.failed, whole.failed) == ([], [], [])
    embedded.add(whole)
    assert (embedded.notes, embedded.vectors) == (10, 2 * chunked.chunks + 5)
    hashes = fetch(database, "SELECT DISTINCT chunking_hash FROM notes")
    assert hashes == [(chunking_hash(SMALL),)]


def test_only_the_window_is_indexed(database: Database) -> None:
    """Its end is outside, its start inside."""
    embedder = HashEmbedder()
    register(database, embedder)
    moments = [START - timedelta(microseconds=1), START, JANUARY.end]
    records = [NoteRecord(str(m), "", text_of(i), m) for i, m in enumerate(moments)]
    ingest(database, records, tenant="ana", source="diario")

    assert chunk_window(database, JANUARY, SMALL).notes == 1
    chunk_window(database, ALWAYS, SMALL)
    assert embed_chunks(database, embedder, JANUARY).notes == 1
    assert embed_notes(database, embedder, JANUARY).notes == 1


def test_edited_note_is_the_only_one_redone_and_keeps_its_unchanged_vectors(
    database: Database,
) -> None:
    embedder = HashEmbedder()
    register(database, embedder)
    notes = add_notes(database, [text_of(number, 8) for number in range(4)])
    index(database, embedder)
    before = {row.id: row for row in row_versions(database)["chunks"]}
    edited = text_of(1, 8) + " Y al final volvimos en tren."
    edit(database, notes[1], edited)

    chunked, embedded, whole = index(database, embedder)

    after = {row.id: row for row in row_versions(database)["chunks"]}
    changed = {row.note_id for key, row in after.items() if before.get(key) != row}
    kept = [key for key in after if key in before and after[key].note_id == notes[1]]
    assert changed == {notes[1]}
    assert kept
    assert (chunked.notes, embedded.notes, whole.notes) == (1, 1, 1)
    fresh = {row.content for key, row in after.items() if key not in before}
    contextual = {
        contextual_text(row.context, row.content)
        for key, row in after.items()
        if before.get(key) != row
    }
    assert set(embedder.texts) == fresh | contextual | {edited}
    assert_chunks_are(database, SMALL)
    assert_fully_embedded(database, embedder)


def test_identical_text_of_two_notes_is_embedded_once(database: Database) -> None:
    """In one batch and in a later run, where only the titles in the prefixes are new."""
    embedder = HashEmbedder()
    register(database, embedder)
    add_notes(database, [text_of(1), text_of(1)])

    index(database, embedder)

    assert len(embedder.texts) == len(set(embedder.texts))
    add_notes(database, [text_of(1)], first=2)
    chunk_window(database, ALWAYS, SMALL)
    embedder.texts.clear()
    report = embed_chunks(database, embedder, ALWAYS)
    assert report.reused > 0
    assert report.embedded == report.reused
    assert all(text.startswith("Parte") for text in embedder.texts)
    assert_fully_embedded(database, embedder)


def test_expired_notes_are_skipped_and_later_expiry_is_not(database: Database) -> None:
    embedder = HashEmbedder()
    register(database, embedder)
    gone, later = add_notes(database, [text_of(1), text_of(2)])
    with database.transaction() as connection:
        connection.execute(
            "UPDATE notes SET expires_at = now() + (CASE WHEN id = %s THEN -1 ELSE 1 END) "
            "* interval '1 hour'",
            (gone,),
        )

    chunked, embedded, whole = index(database, embedder)

    assert (chunked.notes, embedded.notes, whole.notes) == (1, 1, 1)
    rows = fetch(database, "SELECT note_id FROM chunks WHERE id <> note_id")
    assert {row.note_id for row in rows} == {later}


@pytest.mark.parametrize("blank", ["", " \n\t ", "\u00a0\u3000", "\x1c\x85"])
def test_blank_legacy_note_is_done_without_chunks_or_vectors(
    database: Database, blank: str
) -> None:
    """Ingestion refuses blank notes, but an adopted database may hold some."""
    embedder = HashEmbedder()
    register(database, embedder)
    with database.transaction() as connection:
        connection.execute("INSERT INTO notes (content) VALUES (%s)", (blank,))

    chunked, embedded, whole = index(database, embedder)

    assert (chunked.notes, chunked.chunks, chunked.failed) == (1, 0, [])
    assert (embedded.notes, embedded.vectors) == (0, 0)
    assert whole.notes == 0
    assert embedder.texts == []
    assert pending(database) == set()
    assert index(database, embedder)[0] == ChunkReport()
    with database.transaction() as connection:
        assert chunk_store.find_broken(connection, ALWAYS, limit=10) == []


# --- What fails -------------------------------------------------------------------------------


def test_refused_text_is_recorded_alone_and_done_after_the_fix(database: Database) -> None:
    embedder = HashEmbedder(refuses="prohibida")
    register(database, embedder)
    texts = [text_of(number) for number in range(9)]
    texts[4] = text_of(4) + " Aquí va la palabra prohibida. " + text_of(40)
    notes = add_notes(database, texts)

    chunked, embedded, whole = index(database, embedder)

    refused = [
        chunk
        for chunk in expected_chunks(database, SMALL)[notes[4]]
        if "prohibida" in contextual_text(chunk.context, chunk.content)
    ]
    assert chunked.notes == 9
    assert (embedded.notes, whole.notes) == (8, 8)
    assert {failure.chunk_id for failure in embedded.failed} == {c.chunk_id for c in refused}
    assert [failure.note_id for failure in whole.failed] == [notes[4]]
    assert pending(database) == {notes[4]}
    recorded = recorded_failures(database)
    with database.transaction() as connection:
        gaps = count_gaps(connection, embedder.info, ALWAYS)
    reason = "El texto no se puede representar."
    assert set(recorded) == {
        ("embed_chunk", notes[4], "openai_hash", reason),
        ("embed_note", notes[4], "openai_hash", reason),
    }
    assert len(recorded) == len(refused) + 1
    assert {own.kind: own.missing for own in gaps} == {
        "chunk": len(refused),
        "contextual": len(refused),
        "note": 1,
    }

    again = index(database, embedder)
    assert (again[1].notes, again[1].vectors, again[2].notes) == (0, 0, 0)
    assert recorded_failures(database) == recorded

    embedder.refuses = ""
    _, embedded, whole = index(database, embedder)

    assert (embedded.notes, whole.notes) == (1, 1)
    assert_fully_embedded(database, embedder)
    assert recorded_failures(database) == []


class BrokenByAWord(HashEmbedder):
    """A model on a server that answers 500 to texts with a certain word, or to all."""

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Embed texts without the word."""
        if any(self.refuses in text for text in texts):
            raise ProviderUnavailableError("El servidor falla.", status=500)
        return super().embed_passages(texts)


def test_a_text_that_breaks_the_server_is_recorded_and_the_others_are_embedded() -> None:
    """It is no reason to stop, as a server that answers to nothing is."""
    texts = {bytes([number]): text_of(number) for number in range(100)}
    texts[b"x"] = "Aquí va la palabra prohibida."
    asked: list[None] = []

    made, errors = embed_each(
        BrokenByAWord(refuses="prohibida"), texts, between=lambda: asked.append(None)
    )

    assert errors == {b"x": "El servidor falla."}
    assert made.keys() == texts.keys() - {b"x"}
    assert len(asked) > 2, "a transaction says something between the batches"
    with pytest.raises(ProviderUnavailableError):
        embed_each(BrokenByAWord(), texts)


class BrokenEmbedder(HashEmbedder):
    """Fails for good after some batches."""

    def __init__(self, error: ProviderError, *, batches: int) -> None:
        super().__init__()
        self.error = error
        self.batches = batches

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Embed, as long as it lasts."""
        if self.batches == 0:
            raise self.error
        self.batches -= 1
        return super().embed_passages(texts)


@pytest.mark.parametrize("error", [ProviderUnavailableError("caído"), ModelMissingError("no está")])
def test_lost_model_ends_the_run_and_keeps_what_was_committed(
    database: Database, error: ProviderError
) -> None:
    """No failure is recorded against a note: the notes are not to blame."""
    broken = BrokenEmbedder(error, batches=2)
    register(database, broken)
    add_notes(database, [text_of(number, 1) for number in range(70)])
    chunk_window(database, ALWAYS, SMALL)

    with pytest.raises(type(error)):
        embed_chunks(database, broken, ALWAYS)
    assert len(pending(database)) == 6
    with pytest.raises(type(error)):
        embed_notes(database, broken, ALWAYS)
    assert fetch(database, "SELECT * FROM indexing_failures") == []

    assert embed_chunks(database, HashEmbedder(), ALWAYS).notes == 6
    assert_fully_embedded(database, broken)


REFUSING_TRIGGER = """
    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF NEW.id <> NEW.note_id AND NEW.content ~ 'maldita' THEN {refusal}; END IF;
        RETURN NEW;
    END $$;
    CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON chunks
    FOR EACH ROW EXECUTE FUNCTION refuse();
"""


@pytest.mark.parametrize(
    ("refusal", "reason"),
    [
        (
            "ALTER TABLE chunks ADD CHECK (id = note_id OR content !~ 'maldita')",
            "violates check constraint",
        ),
        (REFUSING_TRIGGER.format(refusal="RAISE 'no aquí'"), "no aquí"),
        (
            REFUSING_TRIGGER.format(
                refusal="PERFORM to_tsvector(string_agg(md5(n::text), ' '))"
                " FROM generate_series(1, 60000) AS n"
            ),
            "string is too long for tsvector",
        ),
    ],
    ids=["constraint", "trigger", "limit"],
)
def test_note_that_cannot_be_stored_is_recorded_and_the_others_go_on(
    database: Database, refusal: str, reason: str
) -> None:
    with database.transaction() as connection:
        connection.execute(refusal)  # type: ignore[arg-type]
    notes = add_notes(database, [text_of(1), "Una palabra maldita.", text_of(2)])

    report = chunk_window(database, ALWAYS, SMALL)

    assert report.notes == 2
    assert [failure.note_id for failure in report.failed] == [notes[1]]
    (recorded,) = fetch(database, "SELECT stage, note_id, error FROM indexing_failures")
    assert (recorded.stage, recorded.note_id) == ("chunk", notes[1])
    assert reason in recorded.error["text"]
    assert "maldita" not in str(recorded.error)

    edit(database, notes[1], "Una palabra bendita.")
    assert chunk_window(database, ALWAYS, SMALL).notes == 1
    assert fetch(database, "SELECT * FROM indexing_failures") == []


# --- Models -----------------------------------------------------------------------------------


def test_model_registered_later_queues_all_notes(database: Database) -> None:
    first, second = HashEmbedder(), HashEmbedder("second_model", dimension=8)
    register(database, first)
    notes = add_notes(database, [text_of(number) for number in range(3)])
    index(database, first)
    waiting = add_notes(database, [text_of(9)], first=9)

    register(database, second)

    assert pending(database, "second_model") == {*notes, *waiting}
    assert pending(database) == set(waiting)
    index(database, second)
    assert_fully_embedded(database, second)
    embed_chunks(database, first, ALWAYS)
    assert_fully_embedded(database, first)


def test_model_with_other_weights_or_dimension_is_refused(database: Database) -> None:
    embedder = HashEmbedder()
    register(database, embedder)
    stored = embedder.info
    for dimension, digest in ((32, "2"), (16, "1")):
        embedder.info = ModelInfo("openai_hash", dimension, "test", digest, 0.0, 8192)
        with pytest.raises(ProviderError, match="openai_hash"):
            register(database, embedder)

    with database.transaction() as connection:
        found = fetch_model(connection, "openai_hash")
        assert found is not None
        assert (found.dimension, found.digest) == (stored.dimension, stored.digest)
        assert fetch_model(connection, "unknown") is None
    embedder.info = ModelInfo("openai_hash", 32, "test", "1", 0.7, 8192)
    register(database, embedder)
    assert fetch(database, "SELECT similarity_threshold FROM embedding_models") == [(0.7,)]


# --- Beside other runs ------------------------------------------------------------------------


def waiting(database: Database) -> bool:
    """Whether some connection waits for a lock of another."""
    return bool(
        fetch(
            database,
            "SELECT pid FROM pg_stat_activity "
            "WHERE datname = current_database() AND wait_event_type = 'Lock'",
        )
    )


class PausingEmbedder(HashEmbedder):
    """Stops before its first batch until it is let go on."""

    def __init__(self, refuses: str = "") -> None:
        super().__init__(refuses=refuses)
        self.reached = threading.Event()
        self.go_on = threading.Event()

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Embed, later."""
        self.reached.set()
        assert self.go_on.wait(30)
        return super().embed_passages(texts)


@pytest.mark.parametrize("refuses", ["", "Vera"])
def test_note_is_chunked_again_while_its_chunks_are_being_embedded(
    database: Database, refuses: str
) -> None:
    """Chunking waits for the running batch, refused texts included, then queues the note."""
    slow = PausingEmbedder(refuses)
    register(database, slow)
    notes = add_notes(database, [text_of(1), text_of(2)])
    chunk_window(database, ALWAYS, SMALL)
    with ThreadPoolExecutor() as pool:
        embedding = pool.submit(embed_chunks, database, slow, ALWAYS)
        assert slow.reached.wait(20)
        chunking = pool.submit(chunk_window, database, ALWAYS, OTHER)
        wait_until(lambda: waiting(database))
        slow.go_on.set()
        first = embedding.result(timeout=30)
        assert chunking.result(timeout=30).notes == 2

    assert bool(first.failed) == bool(refuses)
    assert_chunks_are(database, OTHER)
    # The embedding that was in hand may get to see them in the queue, and takes them.
    taken_again = first.notes > len(notes)
    assert pending(database) == (set() if taken_again else set(notes))
    slow.refuses = ""
    embed_chunks(database, slow, ALWAYS)
    assert_fully_embedded(database, slow)


def test_note_edited_while_its_chunks_are_being_embedded(database: Database) -> None:
    """The edit does not wait, and the next run replaces old chunks and vectors."""
    slow = PausingEmbedder()
    register(database, slow)
    (note,) = add_notes(database, [text_of(1)])
    chunk_window(database, ALWAYS, SMALL)
    with ThreadPoolExecutor() as pool:
        embedding = pool.submit(embed_chunks, database, slow, ALWAYS)
        assert slow.reached.wait(20)
        edit(database, note, text_of(11))
        slow.go_on.set()
        embedding.result(timeout=30)

    assert fetch(database, "SELECT id, chunked_at FROM notes") == [(note, None)]
    index(database, slow)
    assert_chunks_are(database, SMALL)
    assert_fully_embedded(database, slow)


@pytest.mark.parametrize("refuses", ["", "Vera"])
def test_note_deleted_while_its_chunks_are_being_embedded(database: Database, refuses: str) -> None:
    """The deletion waits for the running batch, which leaves out the note and its failures."""
    slow = PausingEmbedder(refuses)
    register(database, slow)
    deleted, kept = add_notes(database, [text_of(1), text_of(2)])
    chunk_window(database, ALWAYS, SMALL)
    with ThreadPoolExecutor() as pool:
        embedding = pool.submit(embed_chunks, database, slow, ALWAYS)
        assert slow.reached.wait(20)
        deleting = pool.submit(delete, database, deleted)
        wait_until(lambda: waiting(database))
        slow.go_on.set()
        deleting.result(timeout=30)
        embedding.result(timeout=30)

    assert fetch(database, "SELECT id FROM notes") == [(kept,)]
    assert pending(database) == ({kept} if refuses else set())
    slow.refuses = ""
    index(database, slow)
    assert_fully_embedded(database, slow)


# --- Killed at any moment ---------------------------------------------------------------------


# --- Vector indexes ---------------------------------------------------------------------------


def add_vectors(database: Database, info: ModelInfo, count: int) -> Vectors:
    """Write chunks with random vectors directly, ten a note."""
    with database.bulk() as connection:
        connection.execute(
            "INSERT INTO notes (id, tenant_id, content, chunked_at) SELECT "
            "md5('note' || i)::uuid, 'ana', 'x', now() FROM generate_series(0, %s) AS i",
            ((count - 1) // 10,),
        )
        connection.execute("DELETE FROM chunks")  # the provisional ones
        connection.execute("DELETE FROM pending_vectors")
        rows = connection.execute(
            "INSERT INTO chunks (id, note_id, content, chunk_index, start_char, end_char) "
            "SELECT md5(i::text)::uuid, md5('note' || i / 10)::uuid, 'x', i %% 10, i %% 10, "
            "i %% 10 + 1 FROM generate_series(0, %s) AS i RETURNING id, note_id",
            (count - 1,),
        ).fetchall()
        values = np.random.default_rng(7).normal(size=(count, info.dimension))
        vectors = (values / np.linalg.norm(values, axis=1, keepdims=True)).astype(np.float32)
        places = {row.id: (Place(None, f"s{i}".encode()),) for i, row in enumerate(rows)}
        known = {f"s{i}".encode(): HalfVector(vector) for i, vector in enumerate(vectors)}
        for kind in (VectorKind.CHUNK, VectorKind.CONTEXTUAL):
            replace_vectors(connection, info.name, kind, places, known)
    return vectors


INDEXES = [
    "vectors_openai_hash_chunk_hnsw",
    "vectors_openai_hash_contextual_hnsw",
]


def valid_indexes(database: Database) -> dict[str, bool]:
    rows = fetch(
        database,
        "SELECT c.relname, i.indisvalid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid "
        "WHERE c.relname LIKE '%%hnsw'",
    )
    return {row.relname: row.indisvalid for row in rows}


def test_vector_indexes_are_built_once_and_only_when_needed(database: Database) -> None:
    embedder = HashEmbedder()
    register(database, embedder)
    add_vectors(database, embedder.info, 30)

    assert ensure_vector_indexes(database, embedder.info, min_rows=31) == []
    assert valid_indexes(database) == {}
    assert ensure_vector_indexes(database, embedder.info, min_rows=30) == INDEXES
    assert valid_indexes(database) == dict.fromkeys(INDEXES, True)
    before = fetch(database, "SELECT oid FROM pg_class WHERE relname LIKE '%%hnsw' ORDER BY oid")
    assert ensure_vector_indexes(database, embedder.info, min_rows=30) == []
    after = fetch(database, "SELECT oid FROM pg_class WHERE relname LIKE '%%hnsw' ORDER BY oid")
    assert after == before


def test_index_of_an_interrupted_build_is_replaced(database: Database) -> None:
    """A build that waits for another transaction is cancelled and leaves its index invalid."""
    embedder = HashEmbedder()
    register(database, embedder)
    add_vectors(database, embedder.info, 30)
    build = statement(
        "build_vector_index",
        index=sql.Identifier(INDEXES[0]),
        table=sql.Identifier("vectors_openai_hash_chunk"),
        dimension=sql.Literal(32),
    )
    with database.transaction() as blocking:
        blocking.execute("DELETE FROM vectors WHERE kind <> 'note'")
        with database.autocommit() as connection:
            connection.execute("SET statement_timeout = 300")
            with pytest.raises(psycopg.errors.QueryCanceled):
                connection.execute(build)
            connection.execute("SET statement_timeout = '600s'")
        blocking.rollback()
    assert valid_indexes(database) == {INDEXES[0]: False}

    assert ensure_vector_indexes(database, embedder.info, min_rows=1) == INDEXES
    assert valid_indexes(database) == dict.fromkeys(INDEXES, True)


def test_large_table_is_searched_by_its_index_and_finds_what_exact_search_finds(
    database: Database,
) -> None:
    """At 3,000 vectors the planner takes the HNSW index; recall@20 is at least 0.95."""
    embedder = HashEmbedder()
    register(database, embedder)
    vectors = add_vectors(database, embedder.info, 3000)
    ids = [
        row.id
        for row in fetch(
            database, "SELECT md5(i::text)::uuid AS id FROM generate_series(0, 2999) i"
        )
    ]
    ensure_vector_indexes(database, embedder.info, min_rows=1000)
    with database.autocommit() as connection:
        connection.execute("ANALYZE")
    questions = np.random.default_rng(8).normal(size=(25, 32))
    recalls = []
    for retriever, name in ((RankedList.SEMANTIC, INDEXES[0]), (RankedList.CONTEXTUAL, INDEXES[1])):
        for question in questions:
            vector = (question / np.linalg.norm(question)).astype(np.float32)
            embedded = EmbeddedQuery(embedder.info, vector, 0.0)
            request = only(SearchedList(retriever, embedded=embedded), tenant="ana", pool=20)
            with database.transaction() as connection:
                facts = read_facts(connection, "ana")
                outcome = search(connection, request, facts)
                query = sql.SQL("EXPLAIN ") + compose_search(request, facts)
                rows = connection.execute(query, search_parameters(request)).fetchall()
                plan = "\n".join(row[0] for row in rows)
            assert name in plan
            exact = [ids[i] for i in np.argsort(-(vectors @ vector), kind="stable")[:20]]
            found = [chunk.chunk_id for chunk in outcome.chunks]
            assert len(found) == 20
            recalls.append(len(set(found) & set(exact)) / 20)
            scores = [chunk.score for chunk in outcome.chunks]
            assert scores == sorted(scores, reverse=True)
    assert np.mean(recalls) >= 0.95
    with database.transaction() as connection:
        assert model_contents(connection, "openai_hash").count(VectorKind.CHUNK) == 3000
