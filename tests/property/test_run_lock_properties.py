"""Properties of a run's lock on a real PostgreSQL, for any end of its session."""

from collections.abc import Iterator
from typing import Literal, get_args
from uuid import uuid4

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag_resources.core.errors import RunLostError
from rag_resources.database.pool import Database
from rag_resources.database.run_lock import (
    RunLock,
    held_run_locks,
    hold_run_lock,
    release_run_lock,
    run_guard,
)
from tests.waiting import wait_until

Step = Literal["start", "end", "kill"]
RUNS = 3

one_server = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
steps = st.lists(st.tuples(st.sampled_from(get_args(Step)), st.integers(0, RUNS - 1)), max_size=12)


@pytest.fixture
def administrator(database_url: str) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    with psycopg.connect(database_url, autocommit=True) as connection:
        yield connection


def end_session(connection: psycopg.Connection[tuple[object, ...]], lock: RunLock) -> None:
    """End the session of a lock from outside, as a server that goes down does."""
    connection.execute("SELECT pg_terminate_backend(%s)", [lock.backend_pid])
    wait_until(lambda: not lock.is_held)


@one_server
@given(steps)
def test_property_59_a_run_is_alive_exactly_while_its_session_is(
    database_url: str,
    administrator: psycopg.Connection[tuple[object, ...]],
    history: list[tuple[Step, int]],
) -> None:
    """Runs that start, end and are killed in any order: the server knows which are left."""
    names = [str(uuid4()) for _ in range(RUNS)]
    alive: dict[int, RunLock] = {}
    for step, run in history:
        if step == "start" and run not in alive:
            alive[run] = RunLock(database_url, names[run])
        elif step == "end" and run in alive:
            alive.pop(run).release()
        elif step == "kill" and run in alive:
            end_session(administrator, alive.pop(run))
    expected = frozenset(names[run] for run in alive)
    # A session that was told to end has ended a little later.
    wait_until(lambda: held_run_locks(database_url, names) == expected)
    assert all(lock.is_held for lock in alive.values())
    for lock in alive.values():
        lock.release()


@one_server
@given(st.integers(0, 4))
def test_property_55_a_run_that_lost_its_lock_writes_nothing_more(
    database_url: str,
    administrator: psycopg.Connection[tuple[object, ...]],
    writes_before: int,
) -> None:
    """Its pool lends no connection, though the server would answer."""
    administrator.execute("CREATE TABLE IF NOT EXISTS written (run text)")
    run_id = str(uuid4())
    lock = hold_run_lock(database_url, run_id)
    with Database(database_url, guard=run_guard(run_id)) as database:
        for _ in range(writes_before):
            with database.transaction() as connection:
                connection.execute("INSERT INTO written VALUES (%s)", [run_id])
        end_session(administrator, lock)
        with pytest.raises(RunLostError, match=run_id), database.transaction() as connection:
            connection.execute("INSERT INTO written VALUES (%s)", [run_id])
    rows = administrator.execute("SELECT count(*) FROM written WHERE run = %s", [run_id])
    assert rows.fetchone() == (writes_before,)
    release_run_lock(run_id)
