"""LlamaIndex over PostgreSQL: its hybrid mode, and fusion with Spanish BM25."""

from collections import Counter
from typing import Any

import Stemmer
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.ingestion import DocstoreStrategy, IngestionPipeline
from llama_index.core.llms import MockLLM
from llama_index.core.retrievers import BaseRetriever, QueryFusionRetriever
from llama_index.core.schema import TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.retrievers.bm25 import BM25Retriever
from llama_index.vector_stores.postgres import PGVectorStore
from pydantic import PrivateAttr

from benchmarks.peers.contender import (
    CANDIDATES,
    EF_SEARCH,
    Contender,
    Search,
    Setup,
    count_texts,
)
from benchmarks.peers.workload import LookedUpVectors

TABLE = "passages"
STORED_IN = "data_passages"
NOTE = "note"


class LookUpEmbedding(BaseEmbedding):
    """An embedding model that looks up."""

    _vectors: LookedUpVectors = PrivateAttr()

    def __init__(self, vectors: LookedUpVectors) -> None:
        super().__init__(model_name="looked up")
        self._vectors = vectors

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._vectors.questions([query])[0].tolist()

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._vectors.passages([text])[0].tolist()

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return self._vectors.passages(texts).tolist()


class Hybrid:
    """`VectorStoreIndex` with `vector_store_query_mode="hybrid"`, as its example has it."""

    def __init__(self, setup: Setup) -> None:
        self._dsn = setup.dsn
        self._passages = setup.workload.passages
        self._embedding = LookUpEmbedding(setup.workload.vectors)
        self._store = _store(setup, hybrid_search=True, text_search_config="english")

    def ingest(self) -> None:
        """Nodes get new ids in every run."""
        nodes = [_node(passage.text, passage.note) for passage in self._passages]
        context = StorageContext.from_defaults(vector_store=self._store)
        VectorStoreIndex(nodes, storage_context=context, embed_model=self._embedding)

    def client(self) -> Search:
        """Clients share a store, whose sessions are its engine's."""
        index = VectorStoreIndex.from_vector_store(self._store, embed_model=self._embedding)

        def search(question: str, results: int) -> list[str]:
            retriever = index.as_retriever(
                vector_store_query_mode="hybrid", similarity_top_k=results, sparse_top_k=results
            )
            return _notes(retriever, question)

        return search

    def stored(self) -> Counter[str]:
        """Count the rows of its table."""
        return count_texts(self._dsn, STORED_IN, "text")

    def close(self) -> None:
        """Its connections end with the process."""


class Fusion:
    """`QueryFusionRetriever` with relative scores over vectors and BM25 in Spanish.

    Ingestion keeps a document store beside the database, by which a rerun knows what is there.
    """

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._embedding = LookUpEmbedding(setup.workload.vectors)
        self._documents = setup.folder / "docstore.json"
        self._words = setup.folder / "bm25"

    def ingest(self) -> None:
        """Upsert by the document store, then build BM25 of all it has."""
        setup = self._setup
        documents = (
            SimpleDocumentStore.from_persist_path(str(self._documents))
            if self._documents.exists()
            else SimpleDocumentStore()
        )
        nodes = [
            _node(passage.text, passage.note, id_=passage.passage_id)
            for passage in setup.workload.passages
        ]
        pipeline = IngestionPipeline(
            transformations=[self._embedding],
            vector_store=_store(setup),
            docstore=documents,
            docstore_strategy=DocstoreStrategy.UPSERTS,
            disable_cache=True,
        )
        written = pipeline.run(nodes=nodes)
        if setup.indexed:
            # Now: row by row an HNSW index takes longer.
            _store(setup, hnsw_kwargs=_hnsw()).add([])
        if written or not self._words.exists():
            documents.persist(str(self._documents))
            words = BM25Retriever.from_defaults(
                docstore=documents, stemmer=Stemmer.Stemmer("spanish"), language="es"
            )
            words.persist(str(self._words))

    def client(self) -> Search:
        """Clients have a stemmer each, which is not safe to share, and the same BM25 index."""
        setup = self._setup
        store = _store(setup, hnsw_kwargs=_hnsw() if setup.indexed else None)
        index = VectorStoreIndex.from_vector_store(store, embed_model=self._embedding)
        vectors = index.as_retriever(similarity_top_k=CANDIDATES)
        words = BM25Retriever.from_persist_dir(str(self._words))
        words = BM25Retriever(
            existing_bm25=words.bm25,
            stemmer=Stemmer.Stemmer("spanish"),
            language="es",
            similarity_top_k=CANDIDATES,
        )

        def search(question: str, results: int) -> list[str]:
            fusion = QueryFusionRetriever(
                [vectors, words],
                llm=MockLLM(),
                mode="relative_score",
                similarity_top_k=results,
                num_queries=1,
                use_async=False,
            )
            return _notes(fusion, question)

        return search

    def stored(self) -> Counter[str]:
        """Count the rows of its table."""
        return count_texts(self._setup.dsn, STORED_IN, "text")

    def close(self) -> None:
        """Its connections end with the process."""


def open_contender(setup: Setup) -> Contender:
    """Open either way of using LlamaIndex."""
    return Fusion(setup) if setup.careful else Hybrid(setup)


def _store(setup: Setup, **options: Any) -> PGVectorStore:
    scheme, rest = setup.dsn.split("://", 1)
    return PGVectorStore.from_params(
        connection_string=f"{scheme}+psycopg2://{rest}",
        async_connection_string=f"{scheme}+asyncpg://{rest}",
        table_name=TABLE,
        embed_dim=setup.workload.vectors.dimension,
        **options,
    )


def _hnsw() -> dict[str, int]:
    """A new one for each store, which takes it apart."""
    return {"hnsw_m": 16, "hnsw_ef_construction": 64, "hnsw_ef_search": EF_SEARCH}


def _node(text: str, note: str, **fields: Any) -> TextNode:
    """Make a node whose note is neither embedded nor searched as text."""
    return TextNode(
        text=text,
        metadata={NOTE: note},
        excluded_embed_metadata_keys=[NOTE],
        excluded_llm_metadata_keys=[NOTE],
        **fields,
    )


def _notes(retriever: BaseRetriever, question: str) -> list[str]:
    return [found.node.metadata[NOTE] for found in retriever.retrieve(question)]
