"""Watches a database while others index it, and records violations."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import cycle
from typing import Any
from uuid import UUID

from rag_resources.core.chunking_version import chunking_hash
from rag_resources.core.retrievers import RankedList
from rag_resources.database.pool import Connection, Database
from rag_resources.store.search import SearchedList, read_facts, search
from tests.corpus import only
from tests.crash.corpus import FIRST_MODEL, NEW, SECOND_MODEL, TENANT, Expected

_PAUSE_S = 0.005
_WORDS_A_QUESTION = 80
_POOL = 1000

_NOTES = """
    SELECT n.id, n.chunked_at IS NOT NULL AS chunked, n.chunking_hash,
        EXISTS (SELECT FROM chunks c WHERE c.id = n.id) AS is_provided,
        coalesce(array_agg(c.id ORDER BY c.chunk_index) FILTER (WHERE c.id IS NOT NULL), '{}')
            AS ids,
        array_agg(c.chunk_index ORDER BY c.chunk_index) AS indexes,
        array_agg(c.start_char ORDER BY c.chunk_index) AS starts,
        array_agg(c.end_char ORDER BY c.chunk_index) AS ends
    FROM notes n LEFT JOIN chunks c ON c.note_id = n.id AND c.id <> n.id GROUP BY n.id"""
_DONE_WITHOUT_VECTORS = """
    SELECT DISTINCT m.name, n.id FROM notes n
    CROSS JOIN embedding_models m
    JOIN chunks c ON c.note_id = n.id
    LEFT JOIN vectors e ON e.kind = 'chunk' AND e.model = m.name AND e.chunk_id = c.id
    WHERE n.chunked_at IS NOT NULL AND 'chunk' = ANY(m.kinds)
        AND NOT EXISTS (
            SELECT FROM pending_vectors p WHERE p.model = m.name AND p.note_id = n.id)
        AND e.text_sha256 IS DISTINCT FROM text_sha256(coalesce(c.rendered, c.content))"""


class Observer:
    """Observes in a separate thread until the context manager is left.

    Args:
        url: Of the database.
        expected: The permitted states of each note.

    Attributes:
        problems: The violations seen, each once.
        observations: How often it has looked at everything.
    """

    def __init__(self, url: str, expected: Mapping[UUID, Expected]) -> None:
        self.problems: list[str] = []
        self.observations = 0
        self._url = url
        self._expected = expected
        self._looking = threading.Lock()
        self._left = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="observer")

    def __enter__(self) -> "Observer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._left.set()
        self._thread.join()

    @contextmanager
    def looking_away(self) -> Iterator[None]:
        """Between two observations: while the server is down there is nothing to be seen."""
        with self._looking:
            yield

    def _watch(self) -> None:
        models = cycle((FIRST_MODEL, SECOND_MODEL))
        with Database(self._url) as database:
            while not self._left.is_set():
                with self._looking:
                    self._note(self._observe(database, next(models)))
                    self.observations += 1
                self._left.wait(_PAUSE_S)

    def _note(self, problems: Sequence[str]) -> None:
        self.problems.extend(problem for problem in problems if problem not in self.problems)

    def _observe(self, database: Database, model: str) -> list[str]:
        try:
            with database.snapshot() as connection:
                return observe(connection, self._expected, model)
        except Exception as error:  # noqa: BLE001 - whatever a reader is told is a finding
            return [f"a reader was told: {error!r}"]


def observe(connection: Connection, expected: Mapping[UUID, Expected], model: str) -> list[str]:
    """Return the violations in one snapshot; `model` is the one that is searched."""
    rows = connection.execute(_NOTES).fetchall()
    problems = [f"note {lost} is gone" for lost in expected.keys() - {row.id for row in rows}]
    problems += [
        f"note {row.id}: {_problem(row, expected[row.id])}"
        for row in rows
        if _problem(row, expected[row.id])
    ]
    problems += [
        f"note {row.id} counts as embedded by {row.name}, and lacks vectors"
        for row in connection.execute(_DONE_WITHOUT_VECTORS)
    ]
    return problems + _unfound(connection, expected, model)


def _problem(row: Any, expected: Expected) -> str:
    spans = tuple(zip(row.ids, row.indexes, row.starts, row.ends, strict=False))
    if spans not in (expected.old, expected.new):
        return f"{len(spans)} chunks, neither all {len(expected.old)} old nor all new ones"
    if row.is_provided == row.chunked:
        return "has a provisional chunk beside current ones, or neither"
    migrated = row.chunked and row.chunking_hash == chunking_hash(NEW)
    if spans != (expected.new if migrated else expected.old):
        return "its chunks are not those that it says it has"
    return ""


def _unfound(connection: Connection, expected: Mapping[UUID, Expected], model: str) -> list[str]:
    """Check that every note is found by its own word."""
    notes = list(expected)
    problems: list[str] = []
    for start in range(0, len(notes), _WORDS_A_QUESTION):
        asked = notes[start : start + _WORDS_A_QUESTION]
        question = " ".join(expected[note].word for note in asked)
        request = only(SearchedList(RankedList.FULLTEXT), question, tenant=TENANT, pool=_POOL)
        outcome = search(connection, request, read_facts(connection, TENANT))
        found = {chunk.note_id for chunk in outcome.chunks}
        problems += [f"note {note} is not found" for note in asked if note not in found]
    return problems
