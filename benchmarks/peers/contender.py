"""What is compared: one protocol, one module per product behind it, and what all of them share."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Protocol

import psycopg

from benchmarks.peers.workload import Workload

CANDIDATES = 50
"""Passages that a careful set-up takes from each of its searches, as our default does."""

INDEXED_FROM = 1_000
"""Passages from which on a careful set-up has an HNSW index; the product's own threshold."""

EF_SEARCH = 100
"""Of a careful HNSW index; under `CANDIDATES` it would cut them off."""

Search = Callable[[str, int], list[str]]
"""From a question and how many passages are wanted to the notes of those found, best first."""


@dataclass(frozen=True, slots=True)
class Setup:
    """What a contender is opened with.

    Attributes:
        dsn: Of a database of its own, with the extension `vector`.
        folder: For files of its own; empty at first.
        careful: Set up after reading the documentation; else as in its first example.
        contender: Its name in `CONTENDERS`.
    """

    dsn: str
    folder: Path
    workload: Workload
    careful: bool
    contender: str

    @property
    def indexed(self) -> bool:
        """Whether the corpus is large enough for an approximate index."""
        return self.careful and len(self.workload.passages) >= INDEXED_FROM


class Contender(Protocol):
    """A product over one database, its tables made if they are missing."""

    def ingest(self) -> None:
        """Index the workload; if it is already indexed, do what a rerun of a pipeline does."""
        ...

    def client(self) -> Search:
        """Return the search of one client; each client is a thread."""
        ...

    def stored(self) -> Counter[str]:
        """Count how often each passage can be found."""
        ...

    def close(self) -> None:
        """Release the database."""
        ...


@dataclass(frozen=True, slots=True)
class Entry:
    """A contender by name.

    Attributes:
        title: What a reader knows it by.
        module: Beside this one; its `open_contender` takes a `Setup`.
        packages: Whose versions make the result.
    """

    title: str
    module: str
    careful: bool
    packages: tuple[str, ...]


_LLAMA_INDEX = ("llama-index-core", "llama-index-vector-stores-postgres")
_HAYSTACK = ("haystack-ai", "pgvector-haystack")
_LANG_CHAIN = ("langchain-core", "langchain-postgres")

OURS = "brain_sync"
ALIKE = "brain_sync_alike"
WINDOWED = "brain_sync_windows"
OUR_OWN = (OURS, ALIKE, WINDOWED)
"""Both vectors of a chunk and words; one vector and words, as the peers have; the default."""

CONTENDERS = {
    OURS: Entry("Brain Sync RAG, two vectors", "brain_sync", True, ()),
    ALIKE: Entry("Brain Sync RAG, one vector", "brain_sync", True, ()),
    WINDOWED: Entry("Brain Sync RAG, default (windows)", "brain_sync", True, ()),
    "llama_index": Entry("LlamaIndex, default", "llama_index", False, _LLAMA_INDEX),
    "llama_index_careful": Entry(
        "LlamaIndex, careful",
        "llama_index",
        True,
        (*_LLAMA_INDEX, "llama-index-retrievers-bm25", "bm25s"),
    ),
    "haystack": Entry("Haystack, default", "haystack", False, _HAYSTACK),
    "haystack_careful": Entry("Haystack, careful", "haystack", True, _HAYSTACK),
    "langchain": Entry("LangChain, default", "langchain", False, _LANG_CHAIN),
    "langchain_careful": Entry(
        "LangChain, careful", "langchain", True, (*_LANG_CHAIN, "langchain-classic")
    ),
}


def open_contender(name: str, setup: Setup) -> Contender:
    """Open a contender; its product is imported only here."""
    module = import_module(f"benchmarks.peers.{CONTENDERS[name].module}")
    contender: Contender = module.open_contender(setup)
    return contender


def count_texts(dsn: str, table: str, column: str) -> Counter[str]:
    """Count the rows of each text in a table; none if there is no such table."""
    with psycopg.connect(dsn) as connection:
        try:
            return Counter(text for (text,) in connection.execute(f"SELECT {column} FROM {table}"))
        except psycopg.errors.UndefinedTable:
            return Counter()
