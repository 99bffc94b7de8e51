"""The database under a deadline: slow statements, locks, dead networks, a stopped server.

Each is provoked for real. What must hold is that the caller is back by its deadline, that it is
told what happened, and that nothing is left behind: no statement, connection or thread.
"""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from rag_resources.core.deadline import Deadline
from rag_resources.core.errors import DatabaseError, DatabaseTimeoutError, DatabaseUnavailableError
from rag_resources.database.pool import MAX_CONNECTIONS, Database
from rag_resources.languages.messages import _
from rag_resources.resilience.retry import retried
from tests.tcp_proxy import TcpProxy
from tests.waiting import wait_until

ENDLESS = "SELECT pg_sleep(30)"
GENEROUS_S = 5
"""Far more than any deadline here, far less than `ENDLESS`."""


def after(duration_ms: float) -> Deadline:
    return Deadline.after(duration_ms, time.monotonic)


class Observer:
    """Looks at the backends of a database from a connection of its own."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True)

    def close(self) -> None:
        self._connection.close()

    def backends(self) -> dict[int, str]:
        """The state of every other client's backend, by process."""
        rows = self._connection.execute(
            "SELECT pid, state FROM pg_stat_activity WHERE datname = current_database()"
            " AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )
        return dict(rows.fetchall())

    def is_running(self) -> bool:
        return "active" in self.backends().values()


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    wait_until(lambda: set(threading.enumerate()) <= before)


@pytest.fixture
def observer(database_url: str) -> Iterator[Observer]:
    """After each test no backend of the pool is left, whatever the test did."""
    observer = Observer(database_url)
    yield observer
    wait_until(lambda: not observer.backends())
    observer.close()


@pytest.fixture
def direct(database_url: str, observer: Observer) -> Iterator[Database]:
    with Database(database_url) as database:
        yield database


@pytest.fixture
def proxied(database_url: str, observer: Observer, proxy: TcpProxy) -> Iterator[Database]:
    with Database(make_conninfo(database_url, host=proxy.host, port=proxy.port)) as database:
        yield database
        proxy.heal()


@pytest.fixture
def executor() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(MAX_CONNECTIONS) as executor:
        yield executor


def run(
    database: Database, statement: str, deadline: Deadline | None = None, borrow: str = "snapshot"
) -> Any:
    with getattr(database, borrow)(deadline) as connection:
        return connection.execute(statement).fetchone()[0]


def backend(database: Database) -> int:
    pid: int = run(database, "SELECT pg_backend_pid()")
    return pid


def limit_ms(connection: psycopg.Connection[Any]) -> int:
    row = connection.execute(
        "SELECT setting::int FROM pg_settings WHERE name = 'statement_timeout'"
    ).fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.parametrize("borrow", ["snapshot", "transaction"])
def test_slow_statement_is_cancelled_at_the_server(
    direct: Database, observer: Observer, borrow: str
) -> None:
    """The server cancels the statement, and the connection serves the next caller."""
    pid, started = backend(direct), time.monotonic()

    with pytest.raises(
        DatabaseTimeoutError, match=_("There is no time left for this part of the search.")
    ):
        run(direct, ENDLESS, after(300), borrow)

    assert time.monotonic() - started < GENEROUS_S
    assert not observer.is_running()
    assert backend(direct) == pid


def test_every_statement_has_what_remains(direct: Database) -> None:
    """The limit shrinks with time; a step may have less, and the next one has the rest."""
    with direct.snapshot(after(60_000)) as connection:
        first = limit_ms(connection)
        connection.execute("SELECT pg_sleep(0.1)")
        second = limit_ms(connection)
        with connection.within(after(10_000)):
            part = limit_ms(connection)
        with connection.within(after(600_000)):
            more_than_there_is = limit_ms(connection)
        rest = limit_ms(connection)

    assert first <= 60_000
    assert second <= first - 80
    assert part <= 10_000
    assert 10_000 < rest <= more_than_there_is <= second


def test_limit_survives_a_commit_inside(direct: Database) -> None:
    with direct.transaction(after(60_000)) as connection:
        with connection.within(after(10_000)):
            assert limit_ms(connection) <= 10_000
        connection.commit()
        assert 10_000 < limit_ms(connection) <= 60_000


def test_without_a_deadline_the_session_limit_holds(direct: Database) -> None:
    """Also on a connection that was lent under a deadline before, and cancelled."""
    with pytest.raises(DatabaseTimeoutError):
        run(direct, ENDLESS, after(50))

    with direct.transaction() as connection:
        assert limit_ms(connection) == 600_000
        with connection.within(after(10_000)):
            assert limit_ms(connection) <= 10_000
        assert limit_ms(connection) == 600_000
    with direct.autocommit() as connection:
        assert limit_ms(connection) == 0
    with direct.transaction() as connection:
        assert limit_ms(connection) == 600_000


def test_expired_deadline_sends_nothing(direct: Database) -> None:
    requests = direct.statistics().requests
    with pytest.raises(DatabaseTimeoutError):
        run(direct, "SELECT 1", after(0))
    assert direct.statistics().requests == requests

    with direct.snapshot(after(60_000)) as connection:
        with pytest.raises(DatabaseTimeoutError), connection.within(after(0)):
            connection.execute("SELECT 1")
        assert connection.execute("SELECT 2").fetchone() == (2,)


@pytest.mark.parametrize("moment", ["first statement", "later statement", "commit"])
def test_stalled_network_does_not_hold_the_caller(
    proxied: Database, proxy: TcpProxy, observer: Observer, moment: str
) -> None:
    """The caller is back while the network still stalls; the connection is not used again."""
    pid, deadline = backend(proxied), after(500)

    def stalling() -> None:
        with proxied.transaction(deadline) as connection:
            if moment != "first statement":
                connection.execute("SELECT 1")
            proxy.stall()
            if moment != "commit":
                connection.execute("SELECT 2")

    started = time.monotonic()
    with pytest.raises(
        DatabaseTimeoutError, match=_("There is no time left for this part of the search.")
    ):
        stalling()

    assert deadline.expired
    assert time.monotonic() - started < GENEROUS_S
    assert not observer.is_running()
    proxy.heal()
    assert run(proxied, "SELECT pg_backend_pid()", after(10_000)) != pid
    wait_until(lambda: len(observer.backends()) == proxied.statistics().size)
    assert pid not in observer.backends()


def test_server_stops_by_itself_when_its_answer_cannot_arrive(
    proxied: Database, proxy: TcpProxy, observer: Observer, executor: ThreadPoolExecutor
) -> None:
    deadline = after(1_000)
    running = executor.submit(run, proxied, ENDLESS, deadline)
    wait_until(observer.is_running)
    proxy.stall()

    with pytest.raises(DatabaseTimeoutError):
        running.result(GENEROUS_S)
    wait_until(lambda: not observer.is_running(), seconds=GENEROUS_S)


def test_dead_connection_costs_a_caller_only_a_part_of_its_time(
    proxied: Database, proxy: TcpProxy
) -> None:
    """One pooled connection's path is dead, new ones are fine: the caller gets a new one."""
    pid = backend(proxied)
    proxy.stall(new=False)

    assert run(proxied, "SELECT pg_backend_pid()", after(10_000)) != pid


def test_slow_network_works_within_the_deadline_and_trickles_do_not_pass_it(
    proxied: Database, proxy: TcpProxy
) -> None:
    proxy.delay(0.02)
    assert run(proxied, "SELECT 1", after(10_000)) == 1

    deadline = after(500)
    with (
        pytest.raises(DatabaseTimeoutError),
        proxied.snapshot(deadline) as connection,
    ):
        connection.execute("SELECT repeat('x', 1000000) FROM generate_series(1, 100)")
    assert deadline.expired
    proxy.heal()
    assert run(proxied, "SELECT 1", after(10_000)) == 1


def test_connections_cut_in_the_pool_are_not_noticed_by_callers(
    database_url: str, observer: Observer, proxy: TcpProxy
) -> None:
    """However many died while they were idle, the next callers are served at once."""
    url = make_conninfo(database_url, host=proxy.host, port=proxy.port)
    with Database(url, min_connections=5) as database:
        wait_until(lambda: len(observer.backends()) == 5)
        proxy.cut()
        assert [run(database, f"SELECT {n}", after(2_000)) for n in range(5)] == [0, 1, 2, 3, 4]


def test_outage_is_told_and_ends_with_it(proxied: Database, proxy: TcpProxy) -> None:
    """Refused connections are an error of the connection; after them the next caller is served."""
    proxy.refuse()
    proxy.cut()
    for deadline in (after(500), None):
        with pytest.raises(
            DatabaseUnavailableError, match=_("Connection error. Please try again later.")
        ):
            run(proxied, "SELECT 1", deadline)

    proxy.heal()
    assert run(proxied, "SELECT 1") == 1


def test_exhausted_pool(direct: Database, observer: Observer, executor: ThreadPoolExecutor) -> None:
    """When all connections are in use, a caller gets an error at its deadline."""
    with ExitStack() as lent:
        for __ in range(MAX_CONNECTIONS):
            lent.enter_context(direct.transaction())
        with pytest.raises(
            DatabaseTimeoutError, match=_("There is no time left for this part of the search.")
        ):
            run(direct, "SELECT 1", after(300))
        with pytest.raises(
            DatabaseUnavailableError, match=_("Connection error. Please try again later.")
        ):
            run(direct, "SELECT 1")
        assert direct.statistics().in_use == MAX_CONNECTIONS
        waiting: Future[int] = executor.submit(run, direct, "SELECT 1", after(20_000))
        wait_until(lambda: direct.statistics().waiting == 1)

    assert waiting.result(GENEROUS_S) == 1
    assert len(observer.backends()) == MAX_CONNECTIONS


def test_no_caller_gets_an_answer_of_another(
    proxied: Database, proxy: TcpProxy, observer: Observer, executor: ThreadPoolExecutor
) -> None:
    """Eight callers with short deadlines over a network that stalls and is cut again and again."""
    enough = threading.Event()

    def calling(caller: int) -> tuple[int, int]:
        answered = failed = 0
        while not enough.is_set():
            number = caller * 1_000_000 + answered + failed
            try:
                assert run(proxied, f"SELECT {number}, pg_sleep(0.001)", after(60)) == number
                answered += 1
            except DatabaseError:
                failed += 1
        return answered, failed

    calls = [executor.submit(calling, caller) for caller in range(8)]
    tick = threading.Event()
    for __ in range(8):
        proxy.stall()
        with suppress(TimeoutError):
            proxy.wait_held(1)
        tick.wait(0.1)
        proxy.heal()
        tick.wait(0.1)
        proxy.cut()
        tick.wait(0.1)
    enough.set()
    answered, failed = map(sum, zip(*(call.result(GENEROUS_S) for call in calls), strict=True))

    assert answered > 0
    assert failed > 0
    assert retried(lambda: run(proxied, "SELECT 1"), deadline=after(20_000)) == 1
    assert proxied.statistics().in_use == 0
