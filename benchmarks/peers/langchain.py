"""LangChain over PostgreSQL: `PGVectorStore` with hybrid search."""

import asyncio
from collections import Counter

import psycopg
from langchain_classic.indexes import SQLRecordManager
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.indexing import index
from langchain_postgres import PGEngine, PGVectorStore
from langchain_postgres.v2.hybrid_search_config import HybridSearchConfig
from langchain_postgres.v2.indexes import HNSWIndex, HNSWQueryOptions

from benchmarks.peers.contender import CANDIDATES, EF_SEARCH, Search, Setup, count_texts
from benchmarks.peers.workload import LookedUpVectors

TABLE = "passages"
WORDS = "content_tsv"
WORDS_INDEX = "langchain_tsv_index"
VECTORS_INDEX = "langchain_vector_index"
NOTE = "note"
SPANISH = "pg_catalog.spanish"


class LookUpEmbeddings(Embeddings):
    """Embeddings that are looked up."""

    def __init__(self, vectors: LookedUpVectors) -> None:
        self._vectors = vectors

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Look up passages."""
        return self._vectors.passages(texts).tolist()

    def embed_query(self, text: str) -> list[float]:
        """Look up a question."""
        return self._vectors.questions([text])[0].tolist()


class LangChain:
    """A vector store with a column for words.

    The default is English and has one hybrid configuration, which keeps the words of the first
    question that is asked. Careful is Spanish, has a configuration per question, and a record
    manager by which a rerun knows what is there.
    """

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        url = setup.dsn.replace("postgresql://", "postgresql+psycopg://", 1)
        self._engine = PGEngine.from_connection_string(url)
        if not self._has(TABLE):
            self._engine.init_vectorstore_table(
                TABLE, setup.workload.vectors.dimension, hybrid_search_config=self._hybrid(0)
            )
        self._store = PGVectorStore.create_sync(
            self._engine,
            LookUpEmbeddings(setup.workload.vectors),
            TABLE,
            hybrid_search_config=self._hybrid(0),
            index_query_options=HNSWQueryOptions(EF_SEARCH) if setup.indexed else None,
        )
        self._url = url

    def ingest(self) -> None:
        """Add all passages; the default gives them new ids in every run."""
        documents = [
            Document(page_content=passage.text, metadata={NOTE: passage.note})
            for passage in self._setup.workload.passages
        ]
        if not self._setup.careful:
            self._store.add_documents(documents)
            return
        records = SQLRecordManager(f"postgres/{TABLE}", db_url=self._url)
        records.create_schema()
        index(
            documents,
            records,
            self._store,
            cleanup="incremental",
            source_id_key=NOTE,
            key_encoder="sha1",
        )
        if not self._has(WORDS_INDEX):
            self._store.apply_hybrid_search_index()
        if self._setup.indexed and not self._has(VECTORS_INDEX):
            self._store.apply_vector_index(HNSWIndex(name=VECTORS_INDEX))

    def client(self) -> Search:
        """Clients share a store, which runs them all in one thread of its engine."""
        careful = self._setup.careful
        shared = self._hybrid(0)

        def search(question: str, results: int) -> list[str]:
            if careful:
                hybrid = self._hybrid(CANDIDATES)
            else:
                hybrid = shared
                hybrid.primary_top_k = hybrid.secondary_top_k = results
            found = self._store.similarity_search(question, k=results, hybrid_search_config=hybrid)
            return [document.metadata[NOTE] for document in found]

        return search

    def stored(self) -> Counter[str]:
        """Count the rows of its table."""
        return count_texts(self._setup.dsn, TABLE, "content")

    def close(self) -> None:
        """Close its engine."""
        asyncio.run(self._engine.close())

    def _hybrid(self, candidates: int) -> HybridSearchConfig:
        """Make a configuration; without a number of candidates it has the default's."""
        config = HybridSearchConfig(tsv_column=WORDS, index_name=WORDS_INDEX)
        if self._setup.careful:
            config.tsv_lang = SPANISH
        if candidates:
            config.primary_top_k = config.secondary_top_k = candidates
        return config

    def _has(self, relation: str) -> bool:
        with psycopg.connect(self._setup.dsn) as connection:
            row = connection.execute("SELECT to_regclass(%s)", (relation,)).fetchone()
        return row is not None and row[0] is not None


def open_contender(setup: Setup) -> LangChain:
    """Open either way of using LangChain."""
    return LangChain(setup)
