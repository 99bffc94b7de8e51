"""The process that is killed: it indexes a corpus with the functions that the assets call."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import TypeVar

from rag_resources.core.errors import DatabaseUnavailableError
from rag_resources.core.retrievers import VectorKind
from rag_resources.database.pool import Database
from rag_resources.indexing.chunk import chunk_window
from rag_resources.indexing.embed import embed_chunks, embed_notes
from rag_resources.indexing.embedding_queue import EmbedReport
from rag_resources.store.chunks import update_statistics
from rag_resources.store.models import register_model
from rag_resources.store.vector_indexes import ensure_vector_indexes
from tests.crash.corpus import FIRST_MODEL, MONTHS, NEW, SECOND_MODEL, embedders
from tests.embedders import HashEmbedder

MIN_INDEXED_ROWS = 100

STAGES = (
    "whole notes",
    "chunks",
    "statistics",
    *(f"{step} {model}" for model in (FIRST_MODEL, SECOND_MODEL) for step in ("embed", "index")),
)
"""In the order in which they are gone through."""

_Result = TypeVar("_Result")


@dataclass
class Work:
    """What a run did; equal to `Work()` if and only if there was nothing to do."""

    chunked: int = 0
    vectors: int = 0
    embedded: int = 0
    failed: int = 0
    indexes: int = 0
    refreshed: bool = False


@dataclass(frozen=True)
class Lost:
    """The run ended because the database was gone."""


def run(url: str, channel: Connection) -> None:
    """Index everything.

    Args:
        url: Of the database.
        channel: Is sent the name of each stage as it begins, and at the end `Work` or `Lost`.
    """
    try:
        with Database(url) as database:
            channel.send(_Run(database, channel.send).everything())
    except DatabaseUnavailableError:
        channel.send(Lost())
        sys.exit(1)


class _Run:
    def __init__(self, database: Database, tell: Callable[[str], None]) -> None:
        self._database = database
        self._tell = tell
        self._work = Work()

    def everything(self) -> Work:
        first, second = embedders()
        self._stage("whole notes", lambda: self._whole_notes(first))
        self._stage("chunks", self._chunks)
        self._stage("statistics", self._statistics)
        for embedder in (first, second):
            name = embedder.info.name
            self._stage(f"embed {name}", lambda embedder=embedder: self._embed(embedder))
            self._stage(f"index {name}", lambda embedder=embedder: self._index(embedder))
        return self._work

    def _stage(self, name: str, step: Callable[[], None]) -> None:
        self._tell(name)
        step()

    def _whole_notes(self, embedder: HashEmbedder) -> None:
        with self._database.transaction() as connection:
            register_model(connection, embedder.info, {VectorKind.NOTE})
        self._count([embed_notes(self._database, embedder, month) for month in MONTHS])

    def _chunks(self) -> None:
        reports = [chunk_window(self._database, month, NEW) for month in MONTHS]
        self._work.chunked = sum(report.notes for report in reports)
        self._work.failed += sum(len(report.failed) for report in reports)

    def _statistics(self) -> None:
        with self._database.transaction() as connection:
            self._work.refreshed |= update_statistics(connection, rewritten=self._work.chunked)

    def _embed(self, embedder: HashEmbedder) -> None:
        with self._database.transaction() as connection:
            register_model(
                connection,
                embedder.info,
                {VectorKind.CHUNK, VectorKind.CONTEXTUAL, VectorKind.NOTE},
            )
        self._count([embed_chunks(self._database, embedder, month) for month in MONTHS])

    def _index(self, embedder: HashEmbedder) -> None:
        built = ensure_vector_indexes(self._database, embedder.info, min_rows=MIN_INDEXED_ROWS)
        self._work.indexes += len(built)

    def _count(self, reports: list[EmbedReport]) -> None:
        for report in reports:
            self._work.vectors += report.vectors
            self._work.embedded += report.embedded
            self._work.failed += len(report.failed)
