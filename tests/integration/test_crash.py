"""Indexing and PostgreSQL are killed with SIGKILL; `make crash` does it many times more."""

import random
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from rag_resources.database.server import EmbeddedServer
from tests.crash.harness import KILLS_A_CORPUS, choose_kills, crash
from tests.crash.worker import STAGES

CRASHES = 6


@pytest.fixture
def own_server() -> Iterator[EmbeddedServer]:
    """A server that may be killed: no other test uses it."""
    with TemporaryDirectory(prefix="rag-crash-") as home:
        Path(home).chmod(0o755)
        own = EmbeddedServer(Path(home))
        own.up()
        yield own
        own.down()


def test_property_42_killed_runs_and_servers_leave_every_note_whole(
    own_server: EmbeddedServer,
) -> None:
    """At every moment and in the end: the index is that of a run that nobody killed."""
    report = crash(own_server, crashes=CRASHES, seed=42)

    assert report.problems == []
    assert (report.crashes, report.server_kills.total()) == (CRASHES, 1)
    assert report.observations > CRASHES


def test_kills_are_spread_over_all_stages() -> None:
    """Short ones and long ones, of the run and of the server."""
    durations_s = {stage: 4.0 if stage == "chunks" else 0.1 for stage in STAGES}
    chance = random.Random(1)
    kills = [
        kill
        for before in range(0, 30 * KILLS_A_CORPUS, KILLS_A_CORPUS)
        for kill in choose_kills(chance, durations_s, count=KILLS_A_CORPUS, before=before)
    ]

    for server in (False, True):
        assert {kill.stage for kill in kills if kill.server == server} == set(range(len(STAGES)))
    assert sum(kill.server for kill in kills) == len(kills) // 5
    assert all(0 <= kill.share < 1 for kill in kills)
