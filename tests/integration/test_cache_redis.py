"""The cache in Redis, with a real server that is killed, stopped, filled and tampered with."""

import signal
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import numpy as np
import pytest
from structlog.testing import capture_logs

from rag_resources.core.configuration import RetrievalConfig
from rag_resources.core.deadline import Deadline
from rag_resources.core.errors import InvalidParameterError
from rag_resources.core.filters import RetrievalFilters
from rag_resources.core.retrievers import RankedList
from rag_resources.core.types import RetrievalResponse, RetrievalResult
from rag_resources.database.pool import Database
from rag_resources.database.server import EmbeddedServer
from rag_resources.languages.messages import _
from rag_resources.providers.cache_redis import FAILURES, RedisCache
from rag_resources.providers.cached_embedder import CachedEmbedder
from rag_resources.resilience.breakers import CircuitBreaker
from rag_resources.retrieval.cache import KeptAnswer, build_caches
from rag_resources.retrieval.request import Request
from rag_resources.retrieval.response_cache import AnswerCache
from rag_resources.retrieval.stages import Stages
from rag_resources.store.index_state import IndexVersion, read_index_version
from tests.databases import cloned
from tests.embedders import HashEmbedder
from tests.redis_server import RedisServer
from tests.waiting import wait_until


class Clock:
    """Time that goes by when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    """A running Redis."""
    server = RedisServer(tmp_path)
    server.start()
    yield server
    server.kill()


def words(
    server: RedisServer,
    name: str = "words",
    *,
    lifetime_s: float = 60,
    breaker: CircuitBreaker | None = None,
) -> RedisCache[str]:
    """A cache of texts."""
    return RedisCache(
        server.url,
        name,
        lifetime_s=lifetime_s,
        encode=str.encode,
        decode=lambda data: data.decode("utf-8"),
        breaker=breaker,
    )


def request(query: str = "¿Qué?") -> Request:
    return Request(
        query=query,
        config=RetrievalConfig(),
        tenant="ana",
        filters=RetrievalFilters(),
        top_k=5,
        distinct_notes=0,
        deadline=Deadline.after(2_000, Clock()),
        cached=True,
    )


RESPONSE = RetrievalResponse(
    results=(
        RetrievalResult(
            chunk_id=UUID(int=1),
            note_id=UUID(int=2),
            content="el ñandú 😀",
            expanded_content="Vi el ñandú 😀.",
            score=0.1 + 0.2,
            chunk_index=0,
            matched_bounds=(3, 13),
            lists=(RankedList.SEMANTIC, RankedList.FULLTEXT),
            original_score=1 / 3,
            created_at=datetime(2025, 1, 2, 3, 4, 5, 678901, tzinfo=UTC),
        ),
    ),
    query="¿Qué vi?",
    strategy="hybrid",
    model="e5_small",
    latency_ms=12.345678901234567,
    stages={"embed": 1.5, "search": 2.5},
)
ANSWER = KeptAnswer(RESPONSE, IndexVersion(7, "db/1", datetime(2025, 1, 2, tzinfo=UTC)))


def test_answers_and_vectors_come_back_from_redis(redis: RedisServer) -> None:
    """In another process as well: nothing of the first one's is needed."""
    model = HashEmbedder()
    first, second = build_caches(redis.url), build_caches(redis.url)
    first.answers.put("key", ANSWER)
    vectors = CachedEmbedder(model, first.embeddings).embed_passages(["uno", "dos", "uno"])
    assert model.texts == ["uno", "dos"]

    assert second.answers.get("key") == ANSWER
    again = CachedEmbedder(model, second.embeddings).embed_passages(["dos", "uno"])
    np.testing.assert_array_equal(again, vectors[[1, 0]])
    assert model.texts == ["uno", "dos"]


def test_every_entry_has_a_lifetime(redis: RedisServer) -> None:
    words(redis, lifetime_s=60).put_many({"a": "1", "b": "2"})
    with redis.client() as client:
        lifetimes = [client.pttl(key) for key in client.scan_iter()]
    assert len(lifetimes) == 2
    assert all(0 < lifetime <= 60_000 for lifetime in lifetimes)


def test_a_killed_server_is_a_miss_and_comes_back(redis: RedisServer) -> None:
    """The log says so once, Redis is left alone for a minute, then one trial is enough."""
    clock = Clock()
    breaker = CircuitBreaker("cache:words", failures=FAILURES, reset_s=60, clock=clock)
    cache = words(redis, breaker=breaker)
    cache.put("a", "1")
    assert cache.get("a") == "1"
    redis.kill()
    with capture_logs() as logs:
        for __ in range(3 * FAILURES):
            assert cache.get("a") is None
            cache.put("a", "2")
    assert [log["event"] for log in logs] == ["breaker_opened"]
    assert not breaker.is_closed

    redis.start()
    cache.put("a", "3")
    assert cache.get("a") is None
    with redis.client() as client:
        assert client.dbsize() == 0
    clock.now = 60
    cache.put("a", "4")
    assert cache.get("a") == "4"
    assert breaker.is_closed


def test_a_server_that_does_not_answer_is_given_up(redis: RedisServer) -> None:
    """A late answer is never taken as the answer to the next question."""
    cache = words(redis)
    cache.put_many({"a": "1", "b": "2"})
    redis.send(signal.SIGSTOP)
    assert cache.get("a") is None
    redis.send(signal.SIGCONT)
    wait_until(lambda: cache.get("b") == "2")
    assert cache.get("a") == "1"


def test_what_was_tampered_with_is_a_miss_and_made_anew(redis: RedisServer) -> None:
    """A cut, anything else, or another type, or bytes that only look whole."""
    answers = build_caches(redis.url).answers
    answers.put("a", ANSWER)
    with redis.client() as client:
        (name,) = client.keys()
        whole = client.get(name)
        assert isinstance(whole, bytes)
        changed = bytes([whole[0] ^ 1]) + whole[1:]
        others = (b"", b"\x80\x04]\x94.", b"{}", bytes(300))
        for garbage in (changed, whole[:-1], whole + b"x", *others):
            client.set(name, garbage)
            assert answers.get("a") is None
            answers.put("a", ANSWER)
            assert answers.get("a") == ANSWER
        client.delete(name)
        cache = words(redis)
        cache.put("a", "uno")
        (name,) = client.keys()
        client.delete(name)
        client.rpush(name, "uno")
        assert cache.get("a") is None
        cache.put("a", "tres")
        assert cache.get("a") == "tres"
    latin = RedisCache[str](
        redis.url, "words", lifetime_s=60, encode=lambda t: t.encode("latin-1"), decode=str
    )
    latin.put("a", "ñandú")
    assert cache.get("a") is None


@pytest.mark.parametrize("url", ["http://:secreta@h", "redis://:secreta@h:puerto/0", ""])
def test_what_is_no_url_is_told_without_the_password(url: str) -> None:
    with pytest.raises(InvalidParameterError) as caught:
        build_caches(url)
    assert caught.value.message == _(
        "REDIS_URL is not valid: redis://…, rediss://… or unix://… is expected, with a numeric "
        "port."
    )
    assert caught.value.__cause__ is None
    assert "secreta" not in repr(caught.value.context)


def test_databases_that_share_a_redis_never_share_an_answer(
    redis: RedisServer, server: EmbeddedServer, template_database: str
) -> None:
    """Clones of one template, at the same number of their versions."""
    cache = build_caches(redis.url).answers
    with cloned(server, template_database, template_database) as names:
        for name in (*names, *names):
            with Database(server.dsn(name)) as database:
                with database.transaction() as reading:
                    version = read_index_version(reading, "ana")
                made = (replace(RESPONSE, model=name), version)
                answers = AnswerCache(database, cache, {})
                stages = Stages(config_hash=lambda: "", query="")
                first, again = (
                    answers.get_or_make(request(), stages, lambda made=made: made) for _ in "12"
                )
                assert first == made[0]
                assert again == replace(made[0], cached=True)
