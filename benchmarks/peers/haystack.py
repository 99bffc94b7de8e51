"""Haystack over PostgreSQL: vectors and keywords by its two retrievers, joined in a pipeline."""

from collections import Counter
from typing import Any

from haystack import Document, Pipeline, component
from haystack.components.joiners import DocumentJoiner
from haystack.document_stores.types import DuplicatePolicy
from haystack.utils import Secret
from haystack_integrations.components.retrievers.pgvector import (
    PgvectorEmbeddingRetriever,
    PgvectorKeywordRetriever,
)
from haystack_integrations.document_stores.pgvector import PgvectorDocumentStore

from benchmarks.peers.contender import CANDIDATES, EF_SEARCH, Search, Setup, count_texts
from benchmarks.peers.workload import LookedUpVectors

TABLE = "haystack_documents"
NOTE = "note"


@component
class LookUpTextEmbedder:
    """A text embedder that looks up."""

    def __init__(self, vectors: LookedUpVectors) -> None:
        self._vectors = vectors

    @component.output_types(embedding=list[float])
    def run(self, text: str) -> dict[str, list[float]]:
        """Look up a question."""
        return {"embedding": self._vectors.questions([text])[0].tolist()}


class Haystack:
    """A document store of 384 dimensions, and pipelines over it.

    The default is English, refuses to write what is there, joins by the raw scores, and all clients
    share its store. Careful is Spanish, skips what is there, joins by ranks, and gives each client
    a store of its own, since one is not safe to share.
    """

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._shared = None if setup.careful else self._pipeline()
        self._documents().count_documents()  # makes the table

    def ingest(self) -> None:
        """Embed and write in one go; ids are digests of the content."""
        setup = self._setup
        passages = setup.workload.passages
        vectors = setup.workload.vectors.passages([passage.text for passage in passages])
        documents = [
            Document(content=passage.text, meta={NOTE: passage.note}, embedding=vector.tolist())
            for passage, vector in zip(passages, vectors, strict=True)
        ]
        policy = DuplicatePolicy.SKIP if setup.careful else DuplicatePolicy.NONE
        self._documents().write_documents(documents, policy=policy)
        if setup.indexed:
            # Now: row by row an HNSW index takes longer.
            self._documents(indexed=True).count_documents()

    def client(self) -> Search:
        """Return the search of one client."""
        pipeline = self._shared or self._pipeline()

        def search(question: str, results: int) -> list[str]:
            candidates = CANDIDATES if self._setup.careful else results
            answer = pipeline.run(
                {
                    "embedder": {"text": question},
                    "vectors": {"top_k": candidates},
                    "words": {"query": question, "top_k": candidates},
                    "joiner": {"top_k": results},
                }
            )
            return [document.meta[NOTE] for document in answer["joiner"]["documents"]]

        return search

    def stored(self) -> Counter[str]:
        """Count the rows of its table."""
        return count_texts(self._setup.dsn, TABLE, "content")

    def close(self) -> None:
        """Its connections end with the process."""

    def _pipeline(self) -> Pipeline:
        setup = self._setup
        store = self._documents(indexed=setup.indexed)
        pipeline = Pipeline()
        pipeline.add_component("embedder", LookUpTextEmbedder(setup.workload.vectors))
        pipeline.add_component("vectors", PgvectorEmbeddingRetriever(document_store=store))
        pipeline.add_component("words", PgvectorKeywordRetriever(document_store=store))
        join = {"join_mode": "reciprocal_rank_fusion"} if setup.careful else {}
        pipeline.add_component("joiner", DocumentJoiner(**join))
        pipeline.connect("embedder.embedding", "vectors.query_embedding")
        pipeline.connect("vectors", "joiner")
        pipeline.connect("words", "joiner")
        return pipeline

    def _documents(self, *, indexed: bool = False) -> PgvectorDocumentStore:
        setup = self._setup
        options: dict[str, Any] = {"language": "spanish"} if setup.careful else {}
        if indexed:
            options |= {"search_strategy": "hnsw", "hnsw_ef_search": EF_SEARCH}
        return PgvectorDocumentStore(
            connection_string=Secret.from_token(setup.dsn),
            table_name=TABLE,
            embedding_dimension=setup.workload.vectors.dimension,
            **options,
        )


def open_contender(setup: Setup) -> Haystack:
    """Open either way of using Haystack."""
    return Haystack(setup)
