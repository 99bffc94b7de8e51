"""Many callers while models, tables and the network fail: deadlines hold, and nothing is lost.

One caller and one failure at a time are `test_resilience_models` and `test_resilience_database`.
"""

import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from rag_resources.core.configuration import RetrievalConfig
from rag_resources.core.types import RetrievalResponse
from rag_resources.database.pool import MAX_CONNECTIONS, Database
from rag_resources.languages.messages import _
from rag_resources.resilience.breakers import Breakers, CircuitBreaker
from rag_resources.retrieval.pipeline import RetrievalPipeline
from tests.ollama_server import Fault, OllamaServer
from tests.retrieval_stand import (
    HYBRID,
    MODEL,
    MODELS,
    PATIENT_MS,
    SEMANTIC,
    Stand,
)
from tests.tcp_proxy import TcpProxy
from tests.waiting import wait_until

CALLERS = 8
DEADLINE_MS = 400.0
GENEROUS_MS = 10 * DEADLINE_MS
"""A busy machine may add what it likes; what is left waiting for ever does not come under this."""
ENDLESS_S = 60.0
WORDS = "lexeme_statistics"
VECTORS = f"vectors_{MODEL}_chunk"
QUESTIONS = ("ascensor", "¿Quién tiene fiebre?", "mermelada de naranja", "la escalera del padre")


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    """But those of the pool that all calls with a deadline share."""
    before = set(threading.enumerate())
    yield
    wait_until(
        lambda: all(
            thread in before or thread.name.startswith("call-within")
            for thread in threading.enumerate()
        )
    )


@pytest.fixture
def proxied(database_url: str, proxy: TcpProxy) -> Iterator[Database]:
    url = make_conninfo(database_url, host=proxy.host, port=proxy.port)
    with Database(url, min_connections=5) as database:
        yield database
        proxy.heal()


@pytest.fixture
def stand(proxied: Database, database_url: str) -> Iterator[Stand]:
    with OllamaServer(embedding_models=dict(MODELS)) as ollama:
        stand = Stand(proxied, database_url, ollama)
        yield stand
        ollama.heal()
        stand.close()


def many(
    pipeline: RetrievalPipeline, count: int, deadline_ms: float, config: RetrievalConfig = HYBRID
) -> list[RetrievalResponse]:
    """Answers to that many questions, asked by `CALLERS` at a time."""

    def asking(number: int) -> RetrievalResponse:
        query = QUESTIONS[number % len(QUESTIONS)]
        return pipeline.retrieve(query, config, deadline_ms=deadline_ms)

    with ThreadPoolExecutor(CALLERS) as executor:
        return list(executor.map(asking, range(count)))


# --- The deadline -----------------------------------------------------------------------------


def lock_words(stand: Stand, proxy: TcpProxy, stack: ExitStack) -> None:
    stack.enter_context(stand.locked(WORDS))


def lock_vectors(stand: Stand, proxy: TcpProxy, stack: ExitStack) -> None:
    stack.enter_context(stand.locked(VECTORS))


def slow_model(stand: Stand, proxy: TcpProxy, stack: ExitStack) -> None:
    stand.ollama.inject(Fault.SLOW, seconds=ENDLESS_S)


def slow_model_and_words(stand: Stand, proxy: TcpProxy, stack: ExitStack) -> None:
    slow_model(stand, proxy, stack)
    lock_words(stand, proxy, stack)


def stalled_network(stand: Stand, proxy: TcpProxy, stack: ExitStack) -> None:
    proxy.stall()


def slow_network(stand: Stand, proxy: TcpProxy, stack: ExitStack) -> None:
    proxy.delay(0.03)


def exhausted_pool(stand: Stand, proxy: TcpProxy, stack: ExitStack) -> None:
    for __ in range(MAX_CONNECTIONS):
        stack.enter_context(stand.database.transaction())


Provoke = Callable[[Stand, TcpProxy, ExitStack], None]
SLOW: list[Provoke] = [
    lock_words,
    lock_vectors,
    slow_model,
    slow_model_and_words,
    stalled_network,
    slow_network,
    exhausted_pool,
]


@pytest.mark.parametrize("provoke", SLOW, ids=lambda provoke: provoke.__name__)
def test_deadline_holds_whatever_is_slow(stand: Stand, proxy: TcpProxy, provoke: Provoke) -> None:
    """For 40 questions of 8 callers, without any open breaker."""
    breakers = Breakers(lambda name: CircuitBreaker(name, failures=1_000_000))
    pipeline = stand.new_pipeline(breakers=breakers)
    many(pipeline, CALLERS, PATIENT_MS)
    with ExitStack() as stack:
        provoke(stand, proxy, stack)
        responses = many(pipeline, 40, DEADLINE_MS)
        proxy.heal()

    for response in responses:
        assert response.latency_ms < GENEROUS_MS
        assert response.error or response.results
        if response.degraded and not response.error:
            assert _("Partial search completed (time limit exceeded)") in response.messages
    stand.ollama.heal()
    wait_until(lambda: stand.database.statistics().in_use == 0)
    wait_until(lambda: not stand.ask(pipeline=pipeline).response.error)
    stand.whole(pipeline=pipeline)


# --- Anything, at any moment ------------------------------------------------------------------


class Chaos:
    """Breaks and repairs one thing after another, chosen by a seed.

    Args:
        settle: Called after each repair.
    """

    def __init__(
        self, stand: Stand, proxy: TcpProxy, seed: int, settle: Callable[[], None]
    ) -> None:
        self._settle = settle
        self._stand = stand
        self._proxy = proxy
        self._random = random.Random(seed)
        self._tick = threading.Event()

    def model(self) -> None:
        """An embedding model that fails in any way."""
        faults = [f for f in Fault if f not in (Fault.CONTENT, Fault.SLOW, Fault.STALL)]
        fault = self._random.choice([*faults, None])
        if fault is None:
            self._stand.ollama.stop()
            self._pause()
            self._stand.ollama.start()
        else:
            self._stand.ollama.inject(fault, seconds=0.1)
            self._pause()
            self._stand.ollama.heal()

    def slow_model(self) -> None:
        """An embedding model that takes longer than usual, but not too long."""
        self._stand.ollama.inject(Fault.SLOW, seconds=0.2)
        self._pause()
        self._stand.ollama.heal()

    def vectors(self) -> None:
        """A model whose vectors are gone."""
        with self._stand.gone(VECTORS):
            self._pause()

    def words(self) -> None:
        """Full text without its statistics."""
        with self._stand.gone(WORDS):
            self._pause()

    def locked_words(self) -> None:
        """Full text that waits."""
        with self._stand.locked(WORDS):
            self._pause()

    def cut(self) -> None:
        """Every connection reset at once."""
        self._proxy.cut()
        self._pause()

    def cut_in_the_middle(self) -> None:
        """One connection reset within an answer."""
        self._proxy.cut_after(self._random.randrange(5_000))
        self._pause()

    def _pause(self) -> None:
        self._tick.wait(self._random.uniform(0.01, 0.3))

    def run(self) -> None:
        """Break 30 things."""
        kinds = [
            self.model,
            self.slow_model,
            self.vectors,
            self.words,
            self.locked_words,
            self.cut,
            self.cut_in_the_middle,
        ]
        for __ in range(30):
            self._random.choice(kinds)()
            self._settle()


@pytest.mark.parametrize("seed", [1, 2])
def test_property_35_something_is_always_found_while_things_break_and_heal(
    stand: Stand, proxy: TcpProxy, proxied: Database, database_url: str, seed: int
) -> None:
    """One thing at a time is broken, so every question can be answered, whatever breakers do."""
    before = stand.whole().results
    breakers = Breakers(lambda name: CircuitBreaker(name, failures=2, reset_s=0.1))
    pipeline = stand.new_pipeline(breakers=breakers)
    responses: list[RetrievalResponse] = []
    rounds = 0

    def settle() -> None:
        """Wait until no question has met the last fault and could meet the next, too."""
        begun = rounds
        wait_until(
            lambda: (
                rounds > begun + 1
                and all(item.is_closed for item in breakers._made.copy().values())
            )
        )

    with ThreadPoolExecutor(1) as executor:
        chaos = executor.submit(Chaos(stand, proxy, seed, settle).run)
        while not chaos.done() or len(responses) < 200:
            responses += many(pipeline, 8, 20_000)
            rounds += 1
        chaos.result()

    assert [response.error for response in responses if not response.results] == []
    assert any(response.degraded for response in responses)
    assert any(not response.degraded for response in responses)
    proxy.heal()
    wait_until(lambda: not stand.ask(pipeline=pipeline).response.degraded)
    assert stand.whole(pipeline=pipeline).results == before
    assert proxied.statistics().in_use == 0
    with psycopg.connect(database_url, autocommit=True) as observer:

        def backends() -> list[str]:
            rows = observer.execute(
                "SELECT state FROM pg_stat_activity WHERE datname = current_database()"
                " AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
            )
            return [row[0] for row in rows.fetchall()]

        wait_until(lambda: len(backends()) <= proxied.statistics().size)
        wait_until(lambda: set(backends()) == {"idle"})


def test_nothing_is_mixed_up_between_callers(stand: Stand, proxy: TcpProxy) -> None:
    """Each caller gets the answer to its own question, also while connections come and go."""
    alone = {query: stand.whole(SEMANTIC, query=query).results for query in QUESTIONS}
    over = threading.Event()

    def cutting() -> None:
        while not over.wait(0.2):
            proxy.cut()

    thread = threading.Thread(target=cutting)
    thread.start()
    try:
        responses = many(stand.pipeline, 80, PATIENT_MS, SEMANTIC)
    finally:
        over.set()
        thread.join()
    assert any(response.results for response in responses)
    for response in responses:
        if not response.error:
            assert response.results == alone[response.query]
