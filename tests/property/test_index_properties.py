"""Properties of the stored index after edits, re-chunking, repeated runs and kills."""

import hashlib
import json
import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag_resources.core.configuration import ChunkingConfig
from rag_resources.core.contextual import contextual_text
from rag_resources.core.errors import InvalidGoldenDatasetError
from rag_resources.core.golden import GoldenEntry
from rag_resources.core.retrievers import RankedList
from rag_resources.core.types import Vectors
from rag_resources.database.connection import LimitedConnection
from rag_resources.database.pool import Database
from rag_resources.golden.files import import_golden
from rag_resources.indexing.chunk import ChunkReport, build_chunks, chunk_window
from rag_resources.indexing.embed import embed_chunks
from rag_resources.indexing.embedding_queue import EmbedReport
from rag_resources.ingestion.ingest import ingest
from rag_resources.providers.inputs import unit_vectors
from rag_resources.store.golden import find_broken
from rag_resources.store.notes import Upsert, fetch_notes
from rag_resources.store.rollback import drop_batch
from tests.corpus import ALWAYS, SMALL, SOURCE, START, Corpus, Draft, one_list, records
from tests.embedders import HashEmbedder
from tests.strategies import chunking_configs, drafts, golden_datasets, short_notes

# The database is emptied by every example itself.
one_database = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def corpus(database: Database) -> Corpus:
    return Corpus(database)


@one_database
@given(
    drafts(),
    st.lists(st.tuples(st.integers(0, 3), st.none() | short_notes()), max_size=4),
    chunking_configs(),
)
def test_property_06_every_chunk_has_one_existing_parent(
    corpus: Corpus,
    written: list[Draft],
    changes: list[tuple[int, str | None]],
    other: ChunkingConfig,
) -> None:
    """After any edits, deletions and re-chunking; vectors and queue entries go with their note."""
    notes_ = corpus.fill(written)
    for number, text in changes:
        note = notes_[number % len(notes_)]
        if text is None:
            corpus.fetch("DELETE FROM notes WHERE id = %s RETURNING id", note)
        else:
            corpus.fetch("UPDATE notes SET content = %s WHERE id = %s RETURNING id", text, note)
    chunk_window(corpus.database, ALWAYS, other)
    living = {row.id for row in corpus.fetch("SELECT id FROM notes")}
    chunks = corpus.fetch("SELECT id, note_id FROM chunks")
    assert {chunk.note_id for chunk in chunks} == living
    assert len({chunk.id for chunk in chunks}) == len(chunks)
    owners = {row.chunk_id for row in corpus.fetch("SELECT chunk_id FROM vectors")} - {None}
    assert owners <= {chunk.id for chunk in chunks}
    waiting = {row.note_id for row in corpus.fetch("SELECT note_id FROM pending_vectors")}
    assert waiting <= living


class UnevenEmbedder(HashEmbedder):
    """A model with vectors of any length, some of which are invalid, as real models have.

    Args:
        scale: Of its vectors.
        bad: What a component of a bad vector is.
        share: How many of 256 texts have one.
    """

    def __init__(self, scale: float, bad: float, share: int) -> None:
        super().__init__()
        self._scale, self._bad, self._share = scale, bad, share

    def is_bad(self, text: str) -> bool:
        """Whether the model can make nothing of a text."""
        return hashlib.sha256(text.encode()).digest()[0] < self._share

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Embed texts; what the model returns is checked as that of every real one."""
        rows = self._scale * super().embed_passages(texts)
        rows[[self.is_bad(text) for text in texts]] = self._bad
        return unit_vectors(rows, n_texts=len(texts), dimension=32, model=self.info.name)


@one_database
@given(
    drafts(),
    chunking_configs(),
    st.builds(
        UnevenEmbedder,
        scale=st.sampled_from([1e-6, 1.0, 1e6]),
        bad=st.sampled_from([0.0, float("nan"), float("inf")]),
        share=st.sampled_from([0, 30, 256]),
    ),
)
def test_property_19_every_embedded_chunk_has_both_vectors(
    corpus: Corpus, written: list[Draft], config: ChunkingConfig, embedder: UnevenEmbedder
) -> None:
    """Of the model's dimension, finite, of length 1; a chunk with a bad one has none and waits."""
    corpus.embedder = HashEmbedder()
    corpus.fill([replace(draft, state="new") for draft in written])
    with corpus.database.transaction() as connection:
        # A chunk that is a whole note would take over the vectors that there are.
        connection.execute("DELETE FROM vectors")
    corpus.embedder = embedder
    corpus.index(config)
    rows = corpus.fetch(
        "SELECT c.note_id, coalesce(c.rendered, c.content) AS content, c.context, e.chunk_id,"
        " e.embedding, x.embedding AS contextual_embedding FROM chunks AS c"
        " LEFT JOIN vectors AS e ON e.kind = 'chunk' AND e.chunk_id = c.id"
        " LEFT JOIN vectors AS x ON x.kind = 'contextual' AND x.chunk_id = c.id"
    )
    assert rows
    for row in rows:
        pair = (row.content, contextual_text(row.context, row.content))
        assert (row.chunk_id is None) == any(map(embedder.is_bad, pair))
        if row.chunk_id is None:
            continue
        stored = np.stack([row.embedding.to_numpy(), row.contextual_embedding.to_numpy()])
        assert stored.shape == (2, embedder.info.dimension)
        assert np.isfinite(stored).all()
        # Half precision keeps eleven bits of every component.
        np.testing.assert_allclose(np.linalg.norm(stored.astype(float), axis=1), 1, atol=2**-10)
        np.testing.assert_allclose(stored, HashEmbedder().embed_passages(pair), atol=2**-10)
    waiting = {row.note_id for row in corpus.fetch("SELECT note_id FROM pending_vectors")}
    assert waiting == {row.note_id for row in rows if row.chunk_id is None}


@one_database
@given(drafts(), golden_datasets(min_size=1), st.data())
def test_property_31_every_relevant_note_exists(
    corpus: Corpus,
    tmp_path: Path,
    written: list[Draft],
    entries: list[GoldenEntry],
    data: st.DataObject,
) -> None:
    """A file with an unknown note is refused entirely; a note deleted later is reported."""
    notes_ = corpus.fill([replace(draft, state="new") for draft in written])
    corpus.fetch("DELETE FROM golden_dataset RETURNING id")
    chosen = st.lists(st.sampled_from(notes_), min_size=1, unique=True).map(tuple)
    entries = [replace(each, relevant_note_ids=data.draw(chosen), places=()) for each in entries]
    file = tmp_path / "oro.json"

    def load(dataset: list[GoldenEntry]) -> None:
        file.write_text(json.dumps([each.to_json() for each in dataset]), "utf-8")
        # Replaced, since questions that an earlier example deleted would stay away.
        import_golden(corpus.database, file, tenant="ana", replace=True)

    wrong = data.draw(st.integers(0, len(entries) - 1))
    stranger = data.draw(st.uuids())
    names_it = replace(
        entries[wrong], relevant_note_ids=(*entries[wrong].relevant_note_ids, stranger)
    )
    with pytest.raises(InvalidGoldenDatasetError) as caught:
        load([*entries[:wrong], names_it, *entries[wrong + 1 :]])
    (problem,) = caught.value.problems
    assert problem.startswith(f"entrada {wrong + 1}")
    assert str(stranger) in problem
    assert corpus.fetch("SELECT FROM golden_dataset") == []

    load(entries)
    relevant = corpus.fetch("SELECT unnest(relevant_note_ids) AS id FROM golden_dataset")
    assert {row.id for row in relevant} <= set(notes_)
    gone = data.draw(st.sampled_from(notes_))
    corpus.fetch("DELETE FROM notes WHERE id = %s RETURNING id", gone)
    with corpus.database.transaction() as connection:
        broken = {each.query: each.missing for each in find_broken(connection)}
    assert broken == {each.query: (gone,) for each in entries if gone in each.relevant_note_ids}


@one_database
@given(drafts(), chunking_configs(), chunking_configs())
def test_property_40_a_migrated_note_is_untouched(
    corpus: Corpus, written: list[Draft], first: ChunkingConfig, second: ChunkingConfig
) -> None:
    """Chunking, embedding and chunking anew leave id, creation time and content as they were."""
    kept = "SELECT id, tenant_id, external_id, title, content, created_at, updated_at FROM notes"
    corpus.fill([replace(draft, state="new") for draft in written])
    before = sorted(corpus.fetch(kept))
    for config in (first, second):
        corpus.index(config)
    assert sorted(corpus.fetch(kept)) == before
    assert [row.created_at for row in before].count(START) == 1
    assert corpus.fetch("SELECT id FROM notes WHERE chunked_at IS NULL") == []


STEPS = ("content", "title", "chunk", "rechunk", "roll back")


@one_database
@given(
    drafts(),
    st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 3), short_notes()), max_size=6),
    chunking_configs(),
    chunking_configs(),
)
def test_property_65_a_note_is_chunks_at_every_moment(
    corpus: Corpus,
    written: list[Draft],
    steps: list[tuple[str, int, str]],
    first: ChunkingConfig,
    second: ChunkingConfig,
) -> None:
    """After whatever is committed it has a chunk, and a word of its text finds it."""
    ids = corpus.fill([replace(d, text=f"{d.text} {mark(n)}.") for n, d in enumerate(written)])
    assert_found_by_marks(corpus, ids)
    for step, place, text in steps:
        number = place % len(ids)
        with corpus.database.transaction() as connection:
            if step == "content":
                connection.execute(
                    "UPDATE notes SET content = %s WHERE id = %s",
                    (f"{text} {mark(number)}.", ids[number]),
                )
            elif step == "title":
                connection.execute(
                    "UPDATE notes SET title = %s WHERE id = %s", (text[:100], ids[number])
                )
            elif step == "roll back":
                drop_batch(connection, UUID(int=0), batch_size=place + 1)
        if step in {"chunk", "rechunk"}:
            chunk_window(corpus.database, ALWAYS, first if step == "chunk" else second)
        assert_found_by_marks(corpus, ids)


def mark(number: int) -> str:
    """A word that only one note has."""
    return f"zarzamarca{'abcd'[number]}"


def assert_found_by_marks(corpus: Corpus, ids: Sequence[UUID]) -> None:
    """Each note has chunks and is found by its mark."""
    owners = {row.note_id for row in corpus.fetch("SELECT DISTINCT note_id FROM chunks")}
    assert owners == set(ids)
    for number, note in enumerate(ids):
        found = one_list(corpus.database, corpus.embedder, mark(number), RankedList.FULLTEXT)
        assert {chunk.note_id for chunk in found} == {note}


TABLES = "notes chunks vectors pending_vectors lexeme_statistics"


def row_versions(corpus: Corpus) -> list[set[Any]]:
    """The versions and places of all rows: equal if and only if nothing was written."""
    return [
        {(row.xmin, row.ctid) for row in corpus.fetch(f"SELECT xmin::text, ctid::text FROM {name}")}
        for name in TABLES.split()
    ]


@one_database
@given(drafts(foreign=True), chunking_configs())
def test_property_41_a_second_run_writes_and_embeds_nothing(
    corpus: Corpus, written: list[Draft], config: ChunkingConfig
) -> None:
    """Of ingestion, chunking, embedding of chunks and of notes, and the statistics."""
    corpus.fill(written)

    def load() -> set[Upsert]:
        outcomes = set()
        for tenant in ("ana", "blas"):
            report = ingest(corpus.database, records(written, tenant), tenant=tenant, source=SOURCE)
            outcomes |= {name for counts in report.by_month.values() for name in counts}
        return outcomes

    corpus.index(config)
    before = row_versions(corpus)
    assert load() == {Upsert.UNCHANGED}
    assert corpus.index(config) == (ChunkReport(), EmbedReport(), EmbedReport())
    assert corpus.embedder.texts == []
    assert row_versions(corpus) == before


class KilledError(Exception):
    """The process would be no more."""


@contextmanager
def killed_after(exchanges: int) -> Iterator[None]:
    """Let every connection end after this many exchanges with the server.

    The server sees the same when a process dies.
    """
    left = count(exchanges, -1)
    wait = LimitedConnection.wait

    def perhaps(connection: LimitedConnection, *arguments: Any, **options: Any) -> Any:
        if next(left) > 0:
            return wait(connection, *arguments, **options)
        if not connection.closed:
            with socket.socket(fileno=os.dup(connection.fileno())) as end, suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        raise KilledError

    with pytest.MonkeyPatch.context() as patch, suppress(KilledError):
        patch.setattr(LimitedConnection, "wait", perhaps)
        yield


@one_database
@given(drafts(), chunking_configs(), st.integers(0, 50))
def test_property_42_a_run_killed_at_any_moment_leaves_every_note_whole(
    corpus: Corpus,
    database_url: str,
    written: list[Draft],
    one: ChunkingConfig,
    moment: int,
) -> None:
    """It has all of its old chunks or all of its new ones, and a rerun finishes the rest."""
    ids = corpus.fill(
        [replace(draft, state="new", text="\n\n".join([draft.text] * 3)) for draft in written]
    )
    corpus.index(one)
    with corpus.database.transaction() as connection:
        notes = fetch_notes(connection, ids).values()

    def cut(config: ChunkingConfig) -> dict[UUID, set[UUID]]:
        return {n.note_id: {c.chunk_id for c in build_chunks(n, config)} for n in notes}

    def stored(table: str) -> dict[UUID, set[UUID]]:
        found: dict[UUID, set[UUID]] = {note: set() for note in ids}
        for row in corpus.fetch(f"SELECT c.note_id, c.id FROM chunks AS c {table}"):
            found[row.note_id].add(row.id)
        return found

    with Database(database_url) as own, killed_after(moment):
        chunk_window(own, ALWAYS, SMALL)
        embed_chunks(own, corpus.embedder, ALWAYS)
    old, new = cut(one), cut(SMALL)
    left = stored("")
    assert all(left[note] in (old[note], new[note]) for note in ids)

    corpus.index(SMALL)
    assert stored("") == stored("JOIN vectors AS e ON e.chunk_id = c.id") == new
    assert corpus.fetch("SELECT FROM pending_vectors") == []
