"""Shared fixtures, and Hypothesis profiles.

`dev` explores, `ci` repeats, `fuzz` goes on and on, `mutation` is quick: it runs for every mutant.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

import psycopg
import pytest
import structlog
from hypothesis import HealthCheck, Phase, settings
from psycopg.conninfo import conninfo_to_dict

from rag_resources.database.migrations import migrate
from rag_resources.database.pool import Database
from rag_resources.database.server import EmbeddedServer
from tests.databases import cloned, server_folder
from tests.ollama_server import OllamaServer
from tests.tcp_proxy import TcpProxy
from tests.waiting import wait_until

pytest_plugins = ["tests.skips"]

settings.register_profile("dev", max_examples=100, deadline=None)
settings.register_profile(
    "ci",
    max_examples=100,
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],  # a busy machine is no defect
)
settings.register_profile(
    "fuzz",
    max_examples=int(os.environ.get("EXAMPLES", "10000")),
    deadline=None,
    phases=set(Phase) - {Phase.explain},
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile(
    "mutation",
    max_examples=25,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],  # a killed mutant needs no smallest example
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))


@pytest.fixture(autouse=True)
def environment_as_before() -> Iterator[None]:
    """Undo what a test or a command set: the next test and its processes would inherit it."""
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture(autouse=True)
def logs_by_default() -> Iterator[None]:
    """Undo the log configuration of whatever entry point ran before in this process."""
    structlog.reset_defaults()
    yield
    structlog.reset_defaults()


@pytest.fixture(scope="session")
def server() -> Iterator[EmbeddedServer]:
    """One embedded PostgreSQL for the whole session, in a folder that every user can enter."""
    with TemporaryDirectory(prefix="rag-tests-", dir=server_folder()) as home:
        Path(home).chmod(0o755)
        own = EmbeddedServer(Path(home))
        own.up()
        _do_not_wait_for_the_disk(own)
        yield own
        own.down()


def _do_not_wait_for_the_disk(server: EmbeddedServer) -> None:
    """Switch off durability, which is most of the cost of a database per test."""
    with psycopg.connect(server.dsn("postgres"), autocommit=True) as connection:
        for name in ("fsync", "full_page_writes"):
            connection.execute(f"ALTER SYSTEM SET {name} = off")
        connection.execute("SELECT pg_reload_conf()")


@pytest.fixture
def create_database(server: EmbeddedServer) -> Iterator[Callable[..., str]]:
    """Create an empty database, with options of CREATE DATABASE, and return its URL."""
    names: list[str] = []

    def created(options: str = "") -> str:
        names.append(f"test_{uuid4().hex}")
        connection.execute(
            f"CREATE DATABASE {names[-1]} TEMPLATE template0 STRATEGY file_copy {options}"
        )
        return server.dsn(names[-1])

    with psycopg.connect(server.dsn("postgres"), autocommit=True) as connection:
        yield created
        for name in names:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(scope="session")
def template_database(server: EmbeddedServer) -> str:
    """Name of a migrated, empty database that tests clone."""
    server.ensure_database("template_rag")
    migrate(server.dsn("template_rag"))
    return "template_rag"


@pytest.fixture
def database_url(server: EmbeddedServer, template_database: str) -> Iterator[str]:
    """URL of a fresh migrated database, dropped afterwards."""
    with cloned(server, template_database) as (name,):
        yield server.dsn(name)


@pytest.fixture
def proxy(database_url: str) -> Iterator[TcpProxy]:
    """A proxy in front of that database, which a test can stall, cut or close."""
    place = conninfo_to_dict(database_url)
    with TcpProxy(str(place["host"]), int(str(place["port"]))) as proxy:
        yield proxy
        proxy.heal()
        wait_until(lambda: proxy.open_connections == 0)


@pytest.fixture
def tenant() -> str:
    """Whose rows `database` reads and writes; a module may override it."""
    return "default"


@pytest.fixture
def database(database_url: str, tenant: str) -> Iterator[Database]:
    """An open pool over a fresh migrated database."""
    with Database(database_url, tenant=tenant) as opened:
        yield opened


@pytest.fixture
def ollama() -> Iterator[OllamaServer]:
    """A model server with all models."""
    with OllamaServer() as running:
        yield running
