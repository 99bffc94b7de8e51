"""Chunking again, after an edit or with other settings, redoes only what changes."""

from threading import Event, Thread
from typing import Any
from uuid import UUID

import pytest

from rag_resources.core.configuration import ChunkingConfig, RetrievalConfig, Strategy
from rag_resources.database.pool import Database
from rag_resources.indexing.chunk import chunk_window
from tests.corpus import ALWAYS, SMALL, Corpus, Draft

LARGER = ChunkingConfig(max_tokens=40, overlap_tokens=0, min_tokens=0)
SHORT = [f"El día {number} llovió en Teruel." for number in range(4)]
LONG = [
    " ".join(f"El día {number} a las {hour} fuimos a Orriols con Vera." for hour in range(8))
    for number in range(10, 13)
]


@pytest.fixture
def tenant() -> str:
    return "ana"


@pytest.fixture
def corpus(database: Database) -> Corpus:
    return Corpus(database)


def filled(corpus: Corpus) -> tuple[list[UUID], list[UUID]]:
    """Index notes of one chunk in both ways and notes of several; returns the ids of both."""
    corpus.fill([Draft(text) for text in SHORT + LONG])
    corpus.index(SMALL)
    ids = {row.content: row.id for row in corpus.fetch("SELECT id, content FROM notes")}
    return [ids[text] for text in SHORT], [ids[text] for text in LONG]


def rows(corpus: Corpus, notes: list[UUID], *, versions: bool = True) -> dict[str, list[Any]]:
    """The chunks and vectors of some notes; with their versions, equal if nothing was written."""
    version = "t.xmin::text" if versions else "NULL"
    return {
        "chunks": corpus.fetch(
            f"SELECT {version}, t.id, t.note_id, t.content, t.context, t.start_char, t.end_char"
            " FROM chunks AS t WHERE t.note_id = ANY(%s) ORDER BY t.id",
            notes,
        ),
        "vectors": corpus.fetch(
            f"SELECT {version}, t.chunk_id, t.kind, t.embedding::text"
            " FROM vectors AS t JOIN chunks AS c ON c.id = t.chunk_id"
            " WHERE c.note_id = ANY(%s) ORDER BY t.chunk_id, t.kind",
            notes,
        ),
    }


def test_a_run_that_ends_halfway_is_finished_in_the_new_way(corpus: Corpus) -> None:
    """Only the notes that are still cut in the old way are taken up."""
    _, long = filled(corpus)
    chunk_window(corpus.database, ALWAYS, LARGER)
    with corpus.database.transaction() as connection:
        connection.execute(
            "UPDATE notes SET chunking_hash = 'before' WHERE id = ANY(%s)", (long[:1],)
        )
    assert chunk_window(corpus.database, ALWAYS, LARGER).notes == 1


def test_a_new_title_changes_contexts_only(corpus: Corpus) -> None:
    """The chunks and their own vectors stay; what is embedded is their contextual text."""
    _, long = filled(corpus)
    before = rows(corpus, long)
    contents = {row.content for row in before["chunks"]}
    corpus.fetch("UPDATE notes SET title = 'Viajes' WHERE id = %s RETURNING id", long[0])
    chunked, embedded, whole = corpus.index(SMALL)
    assert (chunked.notes, embedded.notes, whole.notes) == (1, 1, 0)
    assert not contents & set(corpus.embedder.texts)
    assert all("Viajes" in text for text in corpus.embedder.texts)
    after = rows(corpus, long)
    assert [row.id for row in after["chunks"]] == [row.id for row in before["chunks"]]
    vectors = [
        {r.chunk_id: r.embedding for r in found["vectors"] if r.kind == "chunk"}
        for found in (before, after)
    ]
    assert vectors[0] == vectors[1]


@pytest.mark.parametrize("strategy", [Strategy.FULLTEXT, Strategy.HYBRID])
def test_every_note_is_found_at_every_moment(corpus: Corpus, strategy: Strategy) -> None:
    """By a word only it has, while the notes are cut in one way and another, and embedded."""
    words = [f"palabra{number}única" for number in range(12)]
    filler = " ".join(f"A las {hour} fuimos a Orriols con Vera." for hour in range(6))
    corpus.fill([Draft(f"{filler} Se dijo {word}. {filler}") for word in words])
    corpus.index(SMALL)
    found = {row.content: row.id for row in corpus.fetch("SELECT id, content FROM notes")}
    wanted = {
        word: next(note for text, note in found.items() if f" {word}." in text) for word in words
    }
    config = RetrievalConfig(model="openai_hash", strategy=strategy)
    ended, lost, rounds = Event(), [], []

    def observe() -> None:
        while not ended.is_set():
            for word, note in wanted.items():
                response = corpus.ask(word, config)
                if response.degraded or response.results[0].note_id != note:
                    lost.append((word, response.degraded))
            rounds.append(len(wanted))

    observer = Thread(target=observe)
    observer.start()
    try:
        for way in (LARGER, SMALL, LARGER):
            corpus.index(way)
            seen = len(rounds)
            while len(rounds) < seen + 1 and observer.is_alive():
                corpus.index(way)
    finally:
        ended.set()
        observer.join(60)
    assert lost == []
    assert len(rounds) >= 3
