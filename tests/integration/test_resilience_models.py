"""Retrieval while models fail over real HTTP: the results and messages for the user.

Failures of the database are `test_resilience_database`; many callers, `test_resilience_load`.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from rag_resources.core.configuration import (
    RerankingConfig,
    Strategy,
)
from rag_resources.core.deadline import Deadline
from rag_resources.core.types import Vectors
from rag_resources.database.pool import Database
from rag_resources.languages.messages import _
from rag_resources.providers.ollama import OllamaChat
from rag_resources.providers.protocols import Reranker
from rag_resources.retrieval.cache import build_caches
from tests.ollama_server import Fault, OllamaServer
from tests.retrieval_stand import (
    FAILURES,
    FULLTEXT,
    HYBRID,
    LATE_SEMANTIC,
    MISSING_SEMANTIC,
    MODEL,
    MODELS,
    QUERY,
    RESET_S,
    SEMANTIC,
    Stand,
    config,
)
from tests.waiting import wait_until

GENEROUS_MS = 10_000
"""Far more than the default deadline, far less than a fault lasts."""
ENDLESS_S = 60.0
EMBED = "/api/embed"


@pytest.fixture
def ollama() -> Iterator[OllamaServer]:
    with OllamaServer(embedding_models=dict(MODELS)) as server:
        yield server


@pytest.fixture
def stand(database: Database, database_url: str, ollama: OllamaServer) -> Iterator[Stand]:
    stand = Stand(database, database_url, ollama)
    yield stand
    stand.close()
    wait_until(lambda: ollama.open_connections == 0)
    assert database.statistics().in_use == 0


# --- Embeddings -------------------------------------------------------------------------------


def injected(fault: Fault, **options: Any) -> Callable[[OllamaServer], None]:
    return lambda ollama: ollama.inject(fault, path=EMBED, **options)


def heal(ollama: OllamaServer) -> None:
    ollama.heal()
    ollama.stop()
    ollama.start()


BROKEN = {
    "stopped": OllamaServer.stop,
    "error 500": injected(Fault.STATUS, status=500),
    "too many requests": injected(Fault.STATUS, status=429),
    "refused": injected(Fault.STATUS, status=403),
    "garbage": injected(Fault.GARBAGE),
    "wrong shape": injected(Fault.SHAPE),
    "wrong dimension": injected(Fault.DIMENSION),
    "too few vectors": injected(Fault.COUNT),
    "ragged vectors": injected(Fault.RAGGED),
    "not a number": injected(Fault.NAN),
    "zero vector": injected(Fault.ZERO),
    "cut connection": injected(Fault.CUT),
}
LATE = {
    "slow": injected(Fault.SLOW, seconds=ENDLESS_S),
    "trickle": injected(Fault.TRICKLE, seconds=0.2),
    "trickle of headers": injected(Fault.TRICKLE_HEADERS, seconds=0.2),
}


@pytest.mark.parametrize("provoke", BROKEN.values(), ids=BROKEN)
def test_broken_embeddings_leave_what_words_find(
    stand: Stand, ollama: OllamaServer, provoke: Callable[[OllamaServer], None]
) -> None:
    """Also where only meaning was asked for; and all is well as soon as the model is."""
    before = {wanted.strategy: stand.whole(wanted).results for wanted in (HYBRID, SEMANTIC)}
    words = stand.whole(FULLTEXT).results
    provoke(ollama)

    for wanted in (HYBRID, SEMANTIC):
        asked = stand.ask(wanted)
        assert asked.response.results == words
        assert asked.response.messages == MISSING_SEMANTIC
        assert asked.response.error is None
        (failure,) = asked.failures
        assert failure["stage"] == "embed"
        assert failure["component"] == f"embedding:{MODEL}"

    heal(ollama)
    for wanted in (HYBRID, SEMANTIC):
        assert stand.whole(wanted).results == before[wanted.strategy]


@pytest.mark.parametrize("provoke", LATE.values(), ids=LATE)
def test_slow_embeddings_leave_time_for_words(
    stand: Stand, ollama: OllamaServer, provoke: Callable[[OllamaServer], None]
) -> None:
    """The model's share of the time ends, nobody waits for it any longer, and the user is told."""
    before, words = stand.whole().results, stand.whole(FULLTEXT).results
    connections = ollama.open_connections
    provoke(ollama)

    asked = stand.ask(deadline_ms=4_000)

    assert asked.response.results == words
    assert asked.response.messages == LATE_SEMANTIC
    assert asked.errors == {"embed": "DeadlineExceededError"}
    assert asked.response.latency_ms < GENEROUS_MS
    wait_until(lambda: ollama.open_connections < connections)
    ollama.heal()
    assert stand.whole().results == before


@pytest.mark.parametrize("wanted", [HYBRID, SEMANTIC], ids=["hybrid", "semantic"])
def test_removed_model_is_named_with_what_to_do(
    stand: Stand, ollama: OllamaServer, wanted: Any
) -> None:
    """However often: no breaker hides it, and no restart is needed once it is pulled again."""
    words = stand.whole(FULLTEXT).results
    dimension = ollama.embedding_models.pop("nomic-embed-text:latest")

    for __ in range(FAILURES + 1):
        asked = stand.ask(wanted)
        assert asked.response.results == words
        assert asked.response.messages == (
            _("Semantic search is unavailable, using keyword search"),
            _("The model server does not have the model {model}. {advice}").format(
                model="nomic-embed-text",
                advice=_("Download it with: ollama pull {model}").format(model="nomic-embed-text"),
            ),
        )
        assert "ollama pull nomic-embed-text" in asked.response.messages[1]
        assert asked.errors == {"embed": "ModelMissingError"}

    ollama.embedding_models["nomic-embed-text:latest"] = dimension
    stand.whole(wanted)


def test_model_of_another_dimension_than_the_index_is_not_searched(
    stand: Stand, ollama: OllamaServer
) -> None:
    """A process that starts after the model was replaced believes it, but not the index."""
    words = stand.whole(FULLTEXT).results
    ollama.embedding_models["nomic-embed-text:latest"] = 32
    stand.embedders[MODEL] = stand.embedder()

    asked = stand.ask()

    assert asked.response.results == words
    assert asked.response.messages == MISSING_SEMANTIC
    assert asked.errors == {"semantic": "InvalidEmbeddingError"}
    ollama.embedding_models["nomic-embed-text:latest"] = MODELS["nomic-embed-text:latest"]
    stand.embedders[MODEL] = stand.embedder()
    stand.whole()


def test_model_that_keeps_failing_is_left_alone_and_tried_once_after_a_while(
    stand: Stand, ollama: OllamaServer
) -> None:
    words = stand.whole(FULLTEXT).results
    ollama.inject(Fault.STATUS, path=EMBED, status=403)
    for __ in range(FAILURES):
        ollama.inject(Fault.GARBAGE, path=EMBED)
        assert stand.ask().response.results == words
    requests = len(ollama.requests_to(EMBED))

    asked = stand.ask()
    assert asked.response.results == words
    assert asked.response.messages == MISSING_SEMANTIC
    assert asked.errors == {"embed": "DependencyOpenError"}
    assert len(ollama.requests_to(EMBED)) == requests

    ollama.heal()
    stand.clock.now += RESET_S
    stand.whole()
    stand.whole()


class BrokenEmbedder:
    """Implements `Embedder` as a model's library may: it raises errors that are not ours."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    @property
    def info(self) -> Any:
        raise self.error

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        raise self.error

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        raise self.error


@pytest.mark.parametrize("error", [ValueError("shape"), MemoryError(), OSError("weights")])
def test_whatever_an_embedder_raises_words_are_searched(stand: Stand, error: Exception) -> None:
    stand.embedders[MODEL] = BrokenEmbedder(error)  # type: ignore[assignment]
    asked = stand.ask()
    assert asked.response.results
    assert asked.errors == {"embed": type(error).__name__}


# --- Language models --------------------------------------------------------------------------

ABSTRACT = "El ascensor de la escalera"
RERANKED = config(
    Strategy.HYBRID_RERANK, reranking=RerankingConfig(method="llm", model=MODEL, weight=1.0)
)


CHAT = {
    "stopped": OllamaServer.stop,
    "error 500": lambda ollama: ollama.inject(Fault.STATUS, path="/api/chat", status=500),
    "garbage": lambda ollama: ollama.inject(Fault.GARBAGE, path="/api/chat"),
    "wrong shape": lambda ollama: ollama.inject(Fault.SHAPE, path="/api/chat"),
    "broken answer": lambda ollama: ollama.inject(Fault.CONTENT, path="/api/chat"),
    "cut connection": lambda ollama: ollama.inject(Fault.CUT, path="/api/chat"),
    "slow": lambda ollama: ollama.inject(Fault.SLOW, path="/api/chat", seconds=ENDLESS_S),
    "trickle": lambda ollama: ollama.inject(Fault.TRICKLE, path="/api/chat", seconds=0.1),
    "removed": lambda ollama: ollama.chat_models.clear(),
}


@pytest.mark.parametrize("stage", ["transform", "rerank"])
@pytest.mark.parametrize("provoke", CHAT.values(), ids=CHAT)
def test_language_model_on_a_server_can_be_done_without(
    stand: Stand, provoke: Callable[[OllamaServer], None], stage: str
) -> None:
    wanted, query = {"transform": (HYBRID, ABSTRACT), "rerank": (RERANKED, QUERY)}[stage]
    with OllamaServer() as server, OllamaChat("llama3.2", host=server.host) as chat:
        pipeline = stand.new_pipeline(language_model=chat)
        before = stand.whole(wanted, pipeline=pipeline, query=query)
        provoke(server)

        asked = stand.ask(wanted, pipeline, query, deadline_ms=5_000)

        assert asked.response.results == stand.whole(query=query).results
        assert asked.response.degraded == (stage,)
        assert asked.response.error is None
        assert all("ollama pull llama3.2" in message for message in asked.response.messages)
        assert asked.response.latency_ms < GENEROUS_MS
        server.chat_models = ["llama3.2:latest"]
        heal(server)
        after = stand.whole(wanted, pipeline=pipeline, query=query)
        assert after.results == before.results


class OddReranker(Reranker):
    """Scores by whatever a test wants."""

    def __init__(self, scores: Callable[[int], Sequence[float]]) -> None:
        self._scores = scores

    def score(self, query: str, passages: Sequence[str], *, deadline: Deadline) -> list[float]:
        """Score passages without regard to the deadline."""
        return list(self._scores(len(passages)))


def raising(_: int) -> Sequence[float]:
    raise ValueError("shape (3, 4)")


@pytest.mark.parametrize(
    "scores",
    [raising, lambda n: [0.5] * (n - 1), lambda n: [0.5] * (n + 1), lambda _: []],
    ids=["raises", "too few", "too many", "none"],
)
def test_reranker_that_misbehaves_changes_nothing(
    stand: Stand, scores: Callable[[int], Sequence[float]]
) -> None:
    pipeline = stand.new_pipeline(reranker=lambda *_: OddReranker(scores))
    asked = stand.ask(RERANKED, pipeline)
    assert asked.response.results == stand.whole().results
    assert asked.errors == {"rerank": "ValueError"}
    assert asked.response.messages == ()


# --- What is shown, and what is kept ----------------------------------------------------------


def test_answer_that_lacks_something_is_never_kept(stand: Stand, ollama: OllamaServer) -> None:
    pipeline = stand.new_pipeline(caches=build_caches(None))
    ollama.inject(Fault.GARBAGE, path=EMBED)
    for __ in range(2):
        assert not stand.ask(HYBRID, pipeline).response.cached
        assert stand.ask(HYBRID, pipeline).response.degraded == ("embed",)
    with stand.gone("lexeme_statistics"):
        nothing = stand.ask(HYBRID, pipeline).response
        assert (nothing.error, nothing.cached) == (
            _("No results could be retrieved. Please try again."),
            False,
        )

    ollama.heal()
    stand.clock.now += RESET_S
    answers = [stand.whole(pipeline=pipeline) for __ in range(2)]

    assert [answer.cached for answer in answers] == [False, True]
    assert answers[0].results == answers[1].results == stand.whole().results


def test_kept_answer_outlives_the_models(stand: Stand, ollama: OllamaServer) -> None:
    pipeline = stand.new_pipeline(caches=build_caches(None))
    before = stand.whole(pipeline=pipeline)
    ollama.stop()
    after = stand.whole(pipeline=pipeline)
    assert after.cached
    assert after.results == before.results
