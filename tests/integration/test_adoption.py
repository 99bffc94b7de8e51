"""A database of 5,000 notes that another application wrote, from its dump to an answer.

That application goes on writing. What keeps a table from being adopted is `test_migrations`.
"""

import subprocess
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Event, Thread
from typing import Any
from uuid import UUID, uuid4

import numpy as np
import psycopg
import pytest

from rag_resources.core.configuration import ChunkingConfig, RetrievalConfig, Strategy
from rag_resources.core.errors import (
    InvalidParameterError,
)
from rag_resources.core.filters import RetrievalFilters
from rag_resources.core.retrievers import VectorKind
from rag_resources.core.text import is_blank
from rag_resources.core.types import TimeWindow
from rag_resources.database.binaries import find_binaries
from rag_resources.database.migrations import migrate
from rag_resources.database.pool import Database
from rag_resources.database.server import EmbeddedServer
from rag_resources.indexing.adopt import adopt_vectors
from rag_resources.indexing.chunk import chunk_window
from rag_resources.indexing.embed import embed_chunks, embed_notes
from rag_resources.providers.ollama import OllamaEmbedder
from rag_resources.providers.protocols import Embedder
from rag_resources.retrieval.pipeline import RetrievalPipeline
from rag_resources.store.chunks import find_broken, refresh_statistics, stream_spans
from rag_resources.store.models import register_model
from rag_resources.store.vectors import count_gaps
from tests.corpus import KINDS
from tests.databases import cloned
from tests.embedders import HashEmbedder
from tests.legacy import BLANK, WEIRD, create_legacy, fingerprint
from tests.ollama_server import OllamaServer
from tests.waiting import wait_until

NOTES = 5_000
EVER = TimeWindow(datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))
CONFIG = ChunkingConfig()
PATIENT_MS = 60_000.0
OLD_MODEL = "ollama_nomic_embed_text"
OLD_SEARCH = RetrievalConfig(
    model=OLD_MODEL, unit="notes", strategy=Strategy.SEMANTIC, similarity_threshold=0.5
)

CreateDatabase = Callable[..., str]


@dataclass(frozen=True)
class Adopted:
    """A restored dump that was adopted, and what was in it before."""

    template: str
    before: list[tuple[Any, ...]]


def run(program: str, *arguments: str) -> None:
    command = [str(find_binaries(None) / program), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def adopted(server: EmbeddedServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Adopted]:
    """The old database, dumped, restored somewhere else, and adopted there."""
    dump = tmp_path_factory.mktemp("dump") / "legacy.dump"
    with cloned(server, "template0", "template0") as (old, restored):
        create_legacy(server.dsn(old), NOTES)
        run("pg_dump", "--format=custom", f"--file={dump}", server.dsn(old))
        run("pg_restore", "--exit-on-error", f"--dbname={server.dsn(restored)}", str(dump))
        before = fingerprint(server.dsn(restored))
        assert before == fingerprint(server.dsn(old))
        migrate(server.dsn(restored))
        yield Adopted(restored, before)


@pytest.fixture
def url(server: EmbeddedServer, adopted: Adopted) -> Iterator[str]:
    """A copy of it."""
    with cloned(server, adopted.template) as (name,):
        yield server.dsn(name)


@pytest.fixture
def small(create_database: CreateDatabase) -> str:
    """A smaller old database, not yet adopted."""
    created = create_database()
    create_legacy(created, 300)
    return created


@pytest.fixture
def old_model() -> Iterator[tuple[OllamaServer, OllamaEmbedder]]:
    """The model of the old application, where it always was."""
    with OllamaServer() as running, OllamaEmbedder("nomic-embed-text", host=running.host) as model:
        yield running, model


def fetch(url: str, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement, parameters or None)
        return cursor.fetchall() if cursor.description else []


def register(database: Database, embedder: Embedder, kinds: Collection[VectorKind] = KINDS) -> None:
    with database.transaction() as connection:
        register_model(connection, embedder.info, kinds)


def index(database: Database, embedder: Embedder) -> None:
    """All months, and the time before and after them."""
    assert chunk_window(database, EVER, CONFIG).failed == []
    assert embed_notes(database, embedder, EVER).failed == []
    assert embed_chunks(database, embedder, EVER).failed == []


def assert_all_indexed(database: Database, embedder: Embedder) -> set[UUID]:
    """Every note that is not blank is covered by its chunks, and these have vectors."""
    with database.transaction() as connection:
        assert find_broken(connection, EVER, limit=10) == []
        assert sum(own.total for own in count_gaps(connection, embedder.info, EVER)) == 0
        covered = set()
        for note in stream_spans(connection, EVER):
            left = "".join(
                note.content[before:after]
                for (_, before), (after, _) in zip(
                    [(0, 0), *note.spans], [*note.spans, (len(note.content), 0)], strict=True
                )
                if after > before
            )
            assert is_blank(left), note.note_id
            covered.add(note.note_id)
        waiting = connection.execute("SELECT note_id FROM pending_vectors").fetchall()
        assert waiting == []
    return covered


def test_adoption_leaves_what_the_old_application_wrote_as_it_was(
    adopted: Adopted, url: str
) -> None:
    """Ids, contents, times and vectors stay; the application's column, view and trigger work."""
    assert adopted.before[0][0] == NOTES
    assert fingerprint(url) == adopted.before
    fetch(url, "INSERT INTO notes (content) VALUES ('Hola.')")
    assert fetch(url, "SELECT content FROM recent WHERE content = 'Hola.'") == [("Hola.",)]
    assert fetch(url, "SELECT count(*) FROM written WHERE at > now() - interval '1 minute'")[0][0]
    assert fetch(url, "SELECT 1 FROM pg_indexes WHERE indexname = 'notes_embedding_old'")
    assert fetch(url, "SELECT name FROM embedding_models") == []


def test_every_note_of_the_dump_is_found_or_blank(adopted: Adopted, url: str) -> None:
    """Every note, in and outside the months, is indexed and found by its own words."""
    embedder = HashEmbedder()
    with Database(url) as database:
        register(database, embedder)
        index(database, embedder)
        with database.bulk() as connection:
            refresh_statistics(connection)
        covered = assert_all_indexed(database, embedder)
        contents = dict(fetch(url, "SELECT id, content FROM notes"))
        assert covered == {note for note, content in contents.items() if not is_blank(content)}
        assert len(contents) - len(covered) == len(BLANK)

        pipeline = RetrievalPipeline(
            database,
            embedder=lambda _: embedder,
            tenant="default",
        )
        words = RetrievalConfig(model=embedder.info.name, strategy=Strategy.FULLTEXT)
        both = RetrievalConfig(model=embedder.info.name, strategy=Strategy.HYBRID)
        numbers = range(100, NOTES, 137)
        plain = {f"palabra{number}única" for number in numbers if number % 50}
        for word in plain:
            response = pipeline.retrieve(word, words, deadline_ms=PATIENT_MS)
            assert word.capitalize() in response.results[0].content, word
        weird = [note for note, content in contents.items() if content in WEIRD]
        assert len(weird) == len(WEIRD)
        for note in weird:
            response = pipeline.retrieve(
                contents[note][:200],
                both,
                filters=RetrievalFilters(note_ids=(note,)),
                deadline_ms=PATIENT_MS,
            )
            assert response.results[0].note_id == note
    assert fingerprint(url) == adopted.before


# --- Its vectors --------------------------------------------------------------------------------


def stored(url: str) -> dict[UUID, tuple[Any, ...]]:
    rows = fetch(
        url, "SELECT note_id, xmin::text, embedding::text FROM vectors WHERE note_id IS NOT NULL"
    )
    return {note: rest for note, *rest in rows}  # type: ignore[misc]


def test_the_old_search_is_a_configuration_to_evaluate(
    url: str, old_model: tuple[OllamaServer, OllamaEmbedder]
) -> None:
    """Its vectors are taken over, those of no use are named, and the answers are the old ones."""
    server, embedder = old_model
    usable = "vector_dims(embedding) = 768 AND vector_norm(embedding) > 0"
    said = "content ~ '[^\\s\\x1c-\\x1f]'"
    with Database(url) as database:
        register(database, embedder, {VectorKind.NOTE})
        asked = len(server.requests)
        report = adopt_vectors(database, embedder, EVER)
        assert len(server.requests) == asked + 1
        assert [(report.adopted,)] == fetch(
            url, f"SELECT count(*) FROM notes WHERE {usable} AND {said}"
        )
        assert {item.note_id for item in report.unusable} == {
            row[0] for row in fetch(url, f"SELECT id FROM notes WHERE NOT ({usable})")
        }
        assert {item.dimension for item in report.unusable} == {3, 768}

        before = stored(url)
        assert adopt_vectors(database, embedder, EVER).adopted == 0
        embedded = embed_notes(database, embedder, EVER)
        assert stored(url).items() >= before.items()
        assert [(report.adopted + embedded.vectors,)] == fetch(
            url, f"SELECT count(*) FROM notes WHERE {said}"
        )

        pipeline = RetrievalPipeline(database, embedder=lambda _: embedder, tenant="default")
        fetch(url, f"DELETE FROM notes WHERE ({usable}) IS NOT TRUE")
        for question in ("¿quién tiene el acta de Teruel?", "comprar leche", "palabra4321única"):
            response = pipeline.retrieve(question, OLD_SEARCH, top_k=10, deadline_ms=PATIENT_MS)
            (vector,) = embedder.embed_queries([question])
            old = fetch(
                url,
                f"SELECT 1 - (embedding <=> %s::vector) FROM notes WHERE {said}"
                " ORDER BY 1 DESC LIMIT 10",
                str(vector.tolist()),
            )
            scores = [result.score for result in response.results]
            expected = [max(0.0, row[0]) for row in old if row[0] >= 0.5]
            np.testing.assert_allclose(scores, expected[: len(scores)], atol=2e-3)
            assert len(scores) == len(expected)


def test_vectors_the_old_application_goes_on_writing_come_along(
    small: str, old_model: tuple[OllamaServer, OllamaEmbedder]
) -> None:
    """New vectors are taken over; a vector older than its note's text is not."""
    _, embedder = old_model
    migrate(small)
    with Database(small) as database:
        register(database, embedder, {VectorKind.NOTE})
        adopt_vectors(database, embedder, EVER)
        embed_notes(database, embedder, EVER)
        usable = "vector_dims(embedding) = 768 AND vector_norm(embedding) > 0 AND content <> ''"
        both, text, vector = (
            row[0] for row in fetch(small, f"SELECT id FROM notes WHERE {usable} LIMIT 3")
        )
        before = stored(small)
        made = [str(row.tolist()) for row in embedder.embed_passages(["Nueva.", "Otra."])]
        (new,) = fetch(
            small,
            "INSERT INTO notes (content, embedding) VALUES ('Nueva.', %s) RETURNING id",
            made[0],
        )[0]
        edit = "UPDATE notes SET content = 'Otra.' WHERE id = %s"
        fetch(small, edit, both)
        fetch(small, edit, text)
        change = "UPDATE notes SET embedding = %s WHERE id = ANY(%s)"
        fetch(small, change, made[1], [both, vector])

        assert adopt_vectors(database, embedder, EVER).adopted == 2
        assert embed_notes(database, embedder, EVER).notes == 1
        after = stored(small)
    changed = {note for note in after if after[note] != before.get(note)}
    assert changed == {new, both, text}
    assert after[both][1] == after[text][1]


def test_vectors_of_another_model_are_refused(
    small: str, old_model: tuple[OllamaServer, OllamaEmbedder]
) -> None:
    """Many models have the same dimension: nothing is taken over, and the cosine is told."""
    _, embedder = old_model
    migrate(small)
    fetch(
        small,
        "UPDATE notes SET embedding = (SELECT array_agg(x.v ORDER BY x.i DESC)"
        " FROM unnest(embedding::real[]) WITH ORDINALITY AS x (v, i))::vector"
        " WHERE vector_dims(embedding) = 768",
    )
    with Database(small) as database:
        register(database, embedder, {VectorKind.NOTE})
        with pytest.raises(InvalidParameterError, match=r"no son de ollama_nomic.*0\.\d\d"):
            adopt_vectors(database, embedder, EVER)
    assert stored(small) == {}


# --- While it goes on writing -------------------------------------------------------------------


class OldApplication:
    """Writes, edits and deletes notes until it is told to stop, knowing its own columns only."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.notes: dict[UUID, str | None] = dict(fetch(url, "SELECT id, content FROM notes"))  # type: ignore[arg-type]
        self.rounds = 0
        self.error: Exception | None = None
        self._ended = Event()
        self._thread = Thread(target=self._work)

    def __enter__(self) -> "OldApplication":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(60)

    def _work(self) -> None:
        try:
            with psycopg.connect(self.url, autocommit=True) as connection:
                # At the pace of people: whoever writes faster than notes are chunked never waits.
                while not self._ended.wait(0.05):
                    self._round(connection)
        except Exception as error:  # noqa: BLE001 -- told to the test
            self.error = error

    def _round(self, connection: psycopg.Connection[Any]) -> None:
        number, notes = self.rounds, list(self.notes)
        new, edited, deleted = uuid4(), notes[number % len(notes)], notes[-1 - number % 7]
        content = f"Ronda{number}única en Teruel. Vera no vino." if number % 5 else None
        connection.execute(
            "INSERT INTO notes (id, content, embedding, created_at) VALUES (%s, %s, NULL, %s)",
            (new, content, datetime.now(UTC) if number % 3 else None),
        )
        self.notes[new] = content
        changed = f"Editada en la ronda {number}. " * (1 + number % 90) if number % 6 else None
        connection.execute("UPDATE notes SET content = %s WHERE id = %s", (changed, edited))
        self.notes[edited] = changed
        if number % 4 == 0:
            connection.execute("DELETE FROM notes WHERE id = %s", (deleted,))
            del self.notes[deleted]
        self.rounds += 1

    def goes_on(self, rounds: int) -> None:
        """Wait until it has done so many rounds more."""
        until = self.rounds + rounds
        wait_until(lambda: self.rounds >= until or self.error)
        assert self.error is None


def test_the_old_application_writes_all_the_time(small: str) -> None:
    """The application writes during adoption and indexing without errors."""
    embedder = HashEmbedder()
    with OldApplication(small) as application:
        application.goes_on(5)
        migrate(small)
        application.goes_on(5)
        with Database(small) as database:
            register(database, embedder)
            for _ in range(4):
                index(database, embedder)
                application.goes_on(20)
    assert application.error is None

    with Database(small) as database:
        index(database, embedder)
        covered = assert_all_indexed(database, embedder)
        rows = fetch(small, "SELECT id, content FROM notes")
        assert dict(rows) == {note: text or "" for note, text in application.notes.items()}
        assert covered == {note for note, text in rows if not is_blank(text)}
