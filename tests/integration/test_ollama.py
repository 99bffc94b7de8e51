"""The Ollama embedder with the real client, over real HTTP, against every failure it names."""

import base64
import socket
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest

from rag_resources.core.deadline import Deadline
from rag_resources.core.errors import (
    DeadlineExceededError,
    InvalidEmbeddingError,
    ModelMissingError,
    ProviderError,
    ProviderUnavailableError,
)
from rag_resources.providers.ollama import OllamaEmbedder
from rag_resources.providers.protocols import Prefixes
from rag_resources.resilience.deadlines import call_within, deadline_scope
from tests.ollama_server import Fault, OllamaServer, embed_words
from tests.waiting import wait_until

MODEL = "nomic-embed-text"


@pytest.fixture
def embedder(ollama: OllamaServer) -> Iterator[OllamaEmbedder]:
    with OllamaEmbedder(MODEL, host=ollama.host) as built:
        yield built


def test_vectors_are_unit_float32_in_the_order_of_the_texts(embedder: OllamaEmbedder) -> None:
    texts = [f"nota número {i}" for i in range(20)]
    vectors = embedder.embed_passages(texts)
    assert vectors.dtype == np.float32
    expected = np.array([embed_words(text, 768) for text in texts])
    np.testing.assert_allclose(vectors, expected, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-6)


def test_batches_stay_under_the_size_from_which_ollama_is_reported_wrong(
    ollama: OllamaServer, embedder: OllamaEmbedder
) -> None:
    embedder.embed_passages(["x"] * 50)
    sizes = [len(body["input"]) for body in ollama.requests_to("/api/embed")]
    assert sum(sizes) == 50
    assert max(sizes) < 16


def test_each_kind_of_text_gets_its_prefix(ollama: OllamaServer) -> None:
    with OllamaEmbedder(MODEL, host=ollama.host, prefixes=Prefixes("q: ", "p: ")) as e:
        e.embed_queries(["uno"])
        e.embed_passages(["dos"])
    assert [b["input"] for b in ollama.requests_to("/api/embed")] == [["q: uno"], ["p: dos"]]


@pytest.mark.parametrize("model", ["no-existe", "no-existe:7b"])
def test_a_missing_model_says_how_to_pull_it(ollama: OllamaServer, model: str) -> None:
    with OllamaEmbedder(model, host=ollama.host) as e:
        with pytest.raises(ModelMissingError, match=f"ollama pull {model}"):
            e.embed_queries(["hola"])
        with pytest.raises(ModelMissingError, match=f"ollama pull {model}"):
            _ = e.info
    assert len(ollama.requests_to("/api/embed")) == 1


def test_a_slow_server_times_out_and_is_retried(ollama: OllamaServer) -> None:
    with OllamaEmbedder(MODEL, host=ollama.host, read_timeout_s=0.2) as e:
        ollama.inject(Fault.SLOW, times=1, seconds=5)
        assert e.embed_queries(["hola"]).shape == (1, 768)
        ollama.inject(Fault.SLOW, seconds=5)
        with pytest.raises(ProviderUnavailableError) as caught:
            e.embed_queries(["hola"])
    assert caught.value.context["reason"] == "ReadTimeout"


def test_a_host_that_never_accepts_times_out_on_connecting() -> None:
    with socket.socket() as listener:
        # A full backlog leaves further connections unanswered.
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        port = listener.getsockname()[1]
        with (
            socket.create_connection(("127.0.0.1", port)),
            OllamaEmbedder(MODEL, host=f"127.0.0.1:{port}", connect_timeout_s=0.2) as e,
            pytest.raises(ProviderUnavailableError),
        ):
            e.embed_queries(["hola"])


def test_a_model_that_changes_its_dimension_is_refused(
    ollama: OllamaServer, embedder: OllamaEmbedder
) -> None:
    embedder.embed_passages(["antes"])
    ollama.embedding_models[f"{MODEL}:latest"] = 512
    for _ in range(2):
        with pytest.raises(InvalidEmbeddingError):
            embedder.embed_passages(["después"])


def test_credentials_of_the_address_reach_the_server(ollama: OllamaServer) -> None:
    host = ollama.host.replace("http://", "http://ana:clave%2Fsecreta@")
    with OllamaEmbedder(MODEL, host=host) as e:
        e.embed_queries(["hola"])
    expected = base64.b64encode(b"ana:clave/secreta").decode()
    assert ollama.requests[0].authorization == f"Basic {expected}"


@pytest.mark.parametrize(("excluded", "reached"), [("", True), ("ollama.invalid", False)])
def test_the_environments_proxy_is_used_unless_the_server_is_excluded(
    ollama: OllamaServer, monkeypatch: pytest.MonkeyPatch, excluded: str, reached: bool
) -> None:
    """The test server is no proxy: that it was asked shows in its 404."""
    monkeypatch.setenv("http_proxy", ollama.host.removeprefix("http://"))
    monkeypatch.setenv("no_proxy", excluded)
    with (
        OllamaEmbedder(MODEL, host="http://ollama.invalid") as e,
        pytest.raises(ProviderError) as caught,
    ):
        e.embed_queries(["hola"])
    assert (caught.value.context.get("status") == 404) is reached


def test_a_failing_server_is_tried_again_only_while_there_is_time(
    ollama: OllamaServer, embedder: OllamaEmbedder
) -> None:
    """A clock that jumps at the first failure: what is left would be over before the next try."""
    ollama.inject(Fault.STATUS)
    deadline = Deadline(10.0, clock=lambda: 9.9 if ollama.requests else 0.0)
    with deadline_scope(deadline), pytest.raises(ProviderUnavailableError):
        embedder.embed_queries(["hola"])
    assert len(ollama.requests) == 1


def test_calls_given_up_leave_neither_threads_nor_connections(
    ollama: OllamaServer, embedder: OllamaEmbedder
) -> None:
    ollama.inject(Fault.SLOW, seconds=60)

    def give_up() -> None:
        for _ in range(25):
            with pytest.raises(DeadlineExceededError):
                call_within(Deadline.after(40, time.monotonic), lambda: embedder.embed_queries("h"))

    callers = [threading.Thread(target=give_up) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    wait_until(lambda: ollama.open_connections == 0)
    assert ollama.silences_over == 0
    assert sum(t.name.startswith("call-within") for t in threading.enumerate()) <= 32
    ollama.heal()
    deadline = Deadline.after(60_000, time.monotonic)
    assert call_within(deadline, lambda: embedder.embed_queries(["hola"])).shape == (1, 768)
    assert ollama.open_connections == 1
