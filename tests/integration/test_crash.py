"""Indexing and PostgreSQL are killed with SIGKILL; `make crash` does it many times more."""

import random
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from rag_resources.core.chunking_version import chunking_hash
from rag_resources.database.pool import Connection, Database
from rag_resources.database.server import EmbeddedServer
from tests.crash.content import content, differences
from tests.crash.corpus import FIRST_MODEL, NEW, prepare
from tests.crash.harness import KILLS_A_CORPUS, choose_kills, crash
from tests.crash.observer import observe
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


DAMAGE = {
    "neither all": "DELETE FROM chunks WHERE id = (SELECT id FROM chunks WHERE chunk_index = 1 "
    "ORDER BY id LIMIT 1)",
    "not those that it says": "UPDATE notes SET chunking_hash = '{new}' WHERE id = "
    "(SELECT note_id FROM chunks ORDER BY id LIMIT 1)",
    "lacks vectors": "DELETE FROM chunk_embeddings WHERE chunk_id IN (SELECT c.id FROM chunks c "
    "JOIN notes n ON n.id = c.note_id WHERE n.chunked_at IS NOT NULL ORDER BY c.id LIMIT 1)",
    "or neither": "DELETE FROM chunks WHERE id = (SELECT id FROM notes WHERE chunked_at IS NULL "
    "ORDER BY id LIMIT 1)",
    "is gone": "DELETE FROM notes WHERE id = (SELECT id FROM notes ORDER BY id LIMIT 1)",
    "is not found": "UPDATE notes SET expires_at = now() WHERE id = "
    "(SELECT id FROM notes ORDER BY id LIMIT 1)",
}


def test_the_observer_sees_what_must_never_be(database: Database) -> None:
    """Each kind of damage, in a transaction that is rolled back; and nothing without damage."""
    expected = prepare(database, seed=1)

    def look(connection: Connection) -> str:
        return "; ".join(observe(connection, expected, FIRST_MODEL))

    with database.transaction() as connection:
        assert look(connection) == ""
        for problem, damage in DAMAGE.items():
            with connection.transaction(force_rollback=True):
                connection.execute(damage.format(new=chunking_hash(NEW)))
                assert problem in look(connection)


def test_the_comparison_sees_a_bit_that_is_another(database: Database) -> None:
    prepare(database, seed=1)
    wanted = content(database)
    assert differences(content(database), wanted) == []

    with database.transaction() as connection:
        connection.execute(
            "UPDATE chunk_embeddings SET contextual_embedding = embedding WHERE chunk_id = "
            "(SELECT chunk_id FROM chunk_embeddings ORDER BY chunk_id LIMIT 1)"
        )

    (problem,) = differences(content(database), wanted)
    assert problem.startswith("vectors: 1 rows too many, 1 missing")
