"""All calls to the language models of one server share one limit; the server counts."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest

from rag_resources.core.configuration import TransformationConfig
from rag_resources.core.deadline import Deadline
from rag_resources.core.errors import DeadlineExceededError
from rag_resources.evaluation.judge import LanguageModelJudge
from rag_resources.providers.model_server import MAX_CALLS
from rag_resources.providers.ollama import OllamaChat
from rag_resources.retrieval.rerank_llm import LanguageModelReranker
from rag_resources.retrieval.transform import QueryTransformer
from tests.ollama_server import Json, OllamaServer, smallest_instance

GRACE_S = 0.3
"""How long an answer waits for calls beyond the limit; a limit that holds needs none of it."""


class Counter:
    """Answers of a server that counts the calls in flight and holds them while more may come."""

    def __init__(self) -> None:
        self.most = 0
        self._now = 0
        self._full = threading.Condition()

    def answer(self, schema: Json, _: Any) -> Any:
        with self._full:
            self._now += 1
            self.most = max(self.most, self._now)
            self._full.notify_all()
            self._full.wait_for(lambda: self.most >= MAX_CALLS, timeout=60)
            self._full.wait_for(lambda: self.most > MAX_CALLS, timeout=GRACE_S)
            self._now -= 1
        return smallest_instance(schema)


def soon(milliseconds: float = 120_000) -> Deadline:
    return Deadline.after(milliseconds, time.monotonic)


def test_re_ranking_hypothetical_answers_and_judging_share_one_limit(ollama: OllamaServer) -> None:
    """Each alone would fill it, and each has a client of its own."""
    counter = Counter()
    ollama.answers = counter.answer
    clients = [OllamaChat("llama3.2", host=ollama.host) for _ in range(3)]
    reranker = LanguageModelReranker(clients[0], batch_size=1)
    transformer = QueryTransformer(clients[1], now=lambda: datetime.now(UTC))
    judge = LanguageModelJudge(clients[2])
    config = TransformationConfig()
    abstract = transformer.by_rules("Felinos y felicidad", config)
    passages = [f"Pasaje {number}." for number in range(MAX_CALLS)]
    work: list[Callable[[], object]] = [
        lambda: reranker.score("gato", passages, deadline=soon()),
        *[lambda: transformer.refined(abstract, config, deadline=soon())] * MAX_CALLS,
        *[lambda: judge.judge("¿Quién?", "Fue Ana.", passages[:1])] * MAX_CALLS,
    ]
    with ThreadPoolExecutor(len(work)) as threads:
        for done in [threads.submit(each) for each in work]:
            done.result()
    for client in clients:
        client.close()
    assert len(ollama.requests_to("/api/chat")) == 3 * MAX_CALLS
    assert counter.most == MAX_CALLS


def test_a_stream_holds_its_place_until_it_ends_and_waiting_ends_at_the_deadline(
    ollama: OllamaServer,
) -> None:
    with OllamaChat("llama3.2", host=ollama.host) as chat:
        streams = [chat.stream("hola", deadline=soon()) for _ in range(MAX_CALLS)]
        for stream in streams:
            next(stream)
        with pytest.raises(DeadlineExceededError) as late:
            list(chat.stream("hola", deadline=soon(50)))
        assert late.value.context["begun"] is False
        streams.pop().close()  # type: ignore[attr-defined]
        assert list(chat.stream("hola", deadline=soon()))
        for stream in streams:
            assert list(stream)
