"""Embeddings of an OpenAI-compatible server over real HTTP, against all its failures."""

from collections.abc import Iterator

import numpy as np
import pytest

from rag_resources.core.errors import (
    InvalidEmbeddingError,
    ModelMissingError,
    ProviderUnavailableError,
)
from rag_resources.providers.openai import OpenAIEmbedder
from rag_resources.providers.protocols import Prefixes
from tests.ollama_server import Fault, embed_words
from tests.openai_server import OpenAIServer

PATH = "/v1/embeddings"


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    """A server with models of different dimensions."""
    models = {"small:latest": 3, "nomic-embed-text:latest": 768, "x:latest": 1024}
    with OpenAIServer(embedding_models=models) as running:
        yield running


@pytest.fixture
def embedder(server: OpenAIServer) -> Iterator[OpenAIEmbedder]:
    with OpenAIEmbedder("nomic-embed-text", base_url=server.base_url) as built:
        yield built


def test_texts_go_in_batches_of_100_and_vectors_come_in_their_order(
    server: OpenAIServer, embedder: OpenAIEmbedder
) -> None:
    texts = [f"texto número {number}" for number in range(250)]
    vectors = embedder.embed_passages(texts)
    assert [len(body["input"]) for body in server.requests_to(PATH)] == [100, 100, 50]
    assert vectors.shape == (250, 768)
    expected = np.array([embed_words(text, 768) for text in texts])
    assert np.allclose(vectors, expected, atol=1e-6)


def test_prefixes_are_put_before_texts_and_change_the_digest(server: OpenAIServer) -> None:
    prefixes = Prefixes("pregunta: ", "pasaje: ")
    with OpenAIEmbedder("small", base_url=server.base_url, prefixes=prefixes) as embedder:
        embedder.embed_queries(["uno"])
        embedder.embed_passages(["dos"])
        sent = [body["input"] for body in server.requests_to(PATH)]
        assert sent == [["pregunta: uno"], ["pasaje: dos"]]
        with OpenAIEmbedder("small", base_url=server.base_url) as plain:
            assert plain.info.digest != embedder.info.digest


@pytest.mark.parametrize(
    "fault", [Fault.DIMENSION, Fault.COUNT, Fault.RAGGED, Fault.NAN, Fault.ZERO]
)
def test_invalid_vectors_are_refused(
    server: OpenAIServer, embedder: OpenAIEmbedder, fault: Fault
) -> None:
    embedder.embed_passages(["uno"])
    server.inject(fault)
    with pytest.raises((InvalidEmbeddingError, ProviderUnavailableError)):
        embedder.embed_passages(["uno", "dos"])


def test_a_missing_model_is_named(server: OpenAIServer) -> None:
    with (
        OpenAIEmbedder("nada", base_url=server.base_url) as embedder,
        pytest.raises(ModelMissingError, match="nada"),
    ):
        _ = embedder.info
