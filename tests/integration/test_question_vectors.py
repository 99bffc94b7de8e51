"""The vectors of one question from a slow server: long questions may take longer."""

import threading
import time
from collections.abc import Sequence

import numpy as np
import pytest

from rag_resources.core.deadline import Deadline
from rag_resources.core.errors import DeadlineExceededError
from rag_resources.core.query import MAX_QUERY_CHARS
from rag_resources.core.types import Vectors
from rag_resources.providers.cache import EMBEDDINGS, MemoryCache
from rag_resources.providers.cached_embedder import CachedEmbedder
from rag_resources.providers.ollama import OllamaEmbedder
from rag_resources.resilience.breakers import Breakers, CircuitBreaker
from rag_resources.retrieval.embedding import Asked, QuestionVectors
from tests.embedders import HashEmbedder
from tests.ollama_server import Fault, OllamaServer

DEADLINE_MS = 6_000.0
SLOW_S = 3.6
"""More than half of the deadline, and less than four fifths of it."""


def vectors(model: OllamaEmbedder, question: str) -> Vectors:
    deadline = Deadline.after(DEADLINE_MS, time.monotonic)
    made = QuestionVectors(Asked((question,)), lambda _: model, Breakers(CircuitBreaker), deadline)
    return made.of("ollama_bge_m3")


def test_a_long_question_keeps_its_vector_with_a_slow_model(ollama: OllamaServer) -> None:
    ollama.inject(Fault.SLOW, path="/api/embed", seconds=SLOW_S)
    with OllamaEmbedder("bge-m3", host=ollama.host) as model:
        assert vectors(model, "¿por qué? " * (MAX_QUERY_CHARS // 10)).shape == (1, 1024)
        with pytest.raises(DeadlineExceededError):
            vectors(model, "¿por qué?")


def test_a_question_whose_vector_is_at_hand_takes_no_thread() -> None:
    """Another one is embedded in a thread, which can be given up."""
    threads: list[str] = []

    class Told(HashEmbedder):
        def embed_queries(self, texts: Sequence[str]) -> Vectors:
            threads.append(threading.current_thread().name)
            return super().embed_queries(texts)

    cached = CachedEmbedder(Told(), MemoryCache(EMBEDDINGS))
    deadline = Deadline.after(DEADLINE_MS, time.monotonic)
    breakers = Breakers(CircuitBreaker)

    def asked(question: str, until: Deadline = deadline) -> Vectors:
        return QuestionVectors(Asked((question,)), lambda _: cached, breakers, until).of("m")

    first = asked("¿Dónde?")
    np.testing.assert_array_equal(asked("¿Dónde?"), first)
    assert [name.startswith("call-within") for name in threads] == [True]
    with pytest.raises(DeadlineExceededError):
        asked("¿Dónde?", Deadline.after(0, time.monotonic))
