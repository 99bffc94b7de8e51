"""Questions are answered from a real standby while it is fresh, and from the primary otherwise."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

import psycopg
import pytest
from structlog.testing import capture_logs

from rag_resources.application import Application, open_application
from rag_resources.core.errors import DatabaseUnavailableError
from rag_resources.core.types import NoteRecord
from rag_resources.database import locate
from rag_resources.database.pool import Database
from rag_resources.database.readers import PROBE_S, Readers, StandbyState, look_at_standbys
from rag_resources.database.server import EmbeddedServer
from rag_resources.settings import Settings, load_settings
from rag_resources.store.notes import upsert_notes
from tests.command_line import call_rag, isolate
from tests.standby import Standby
from tests.waiting import wait_until

STALENESS_S = 2.0
ATTEMPTS = 10


@pytest.fixture(scope="module")
def standby(server: EmbeddedServer) -> Iterator[Standby]:
    """A standby of the session's server, which writes nothing by itself meanwhile."""
    with (
        psycopg.connect(server.dsn("postgres"), autocommit=True) as connection,
        TemporaryDirectory(prefix="rag-standby-") as folder,
    ):
        connection.execute("ALTER SYSTEM SET autovacuum = off")
        connection.execute("SELECT pg_reload_conf()")
        Path(folder).chmod(0o755)
        made = Standby(server, Path(folder))
        yield made
        made.kill()
        connection.execute("ALTER SYSTEM RESET autovacuum")
        connection.execute("SELECT pg_reload_conf()")


@pytest.fixture
def readers(database: Database, database_url: str, standby: Standby) -> Iterator[Readers]:
    """The test's database with its standby."""
    name = urlsplit(database_url).path.lstrip("/")
    made = Readers(database, [Database(standby.dsn(name))], staleness_s=STALENESS_S).open()
    yield made
    made.close()


def reads_standby(readers: Readers) -> bool:
    """Whether a question would be answered from the standby now."""
    with readers.snapshot() as connection:
        [(is_standby,)] = connection.execute("SELECT pg_is_in_recovery()").fetchall()
        return bool(is_standby)


def wait_for(readers: Readers, *, standby: bool) -> None:
    """Wait until questions are answered from the standby, or from the primary."""
    wait_until(lambda: reads_standby(readers) is standby, 60)


def test_a_fresh_standby_is_read_and_one_that_lags_is_not(
    readers: Readers, standby: Standby
) -> None:
    """Also while nobody writes; and it is said when the number of standbys in use changes."""
    with capture_logs() as logs:

        def told() -> list[int]:
            return [entry["used"] for entry in logs if entry["event"] == "readers_changed"]

        for _ in range(ATTEMPTS):
            wait_for(readers, standby=True)
            with standby.behind():
                # Only what is written makes it lag, however long nothing is.
                before = written(readers)
                if standby.replayed() != before:
                    continue  # The server itself has written, as autovacuum does: once more.
                outlast_staleness(readers)
                is_used = reads_standby(readers)
                if written(readers) != before:
                    continue
                assert is_used
                write(readers)
                wait_for(readers, standby=False)
                [behind_s] = readers.staleness_s
                assert behind_s is not None
                assert behind_s > STALENESS_S
                wait_until(lambda: told()[-2:] == [1, 0])
            wait_for(readers, standby=True)
            wait_until(lambda: told()[-3:] == [1, 0, 1])
            return
    pytest.fail("the server always writes something")


def outlast_staleness(readers: Readers) -> None:
    """Wait for half as long again as a standby may lag, by the probes of the primary."""
    enough = len(readers._written) + int(1.5 * STALENESS_S / PROBE_S)
    wait_until(lambda: len(readers._written) >= enough)


def written(readers: Readers) -> object:
    """How far the primary has written."""
    with readers._primary.transaction() as connection:
        [(place,)] = connection.execute("SELECT pg_current_wal_insert_lsn()").fetchall()
        return place


def write(readers: Readers) -> None:
    """Write something on the primary."""
    with readers._primary.transaction() as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS written (at timestamptz)")


def test_who_reads_from_a_standby_that_is_killed_reads_elsewhere_next(
    readers: Readers, standby: Standby
) -> None:
    """And from the standby again once it is back."""
    wait_for(readers, standby=True)
    with readers.one_source():
        with pytest.raises(DatabaseUnavailableError):
            read_while_it_is_killed(readers, standby)
        assert not reads_standby(readers)
    standby.start()
    wait_for(readers, standby=True)


def read_while_it_is_killed(readers: Readers, standby: Standby) -> None:
    """Lose the standby in the midst of reading."""
    with readers.snapshot() as connection:
        standby.kill()
        connection.execute("SELECT 1")


def test_the_whole_application_answers_from_a_standby_and_writes_to_the_primary(
    database: Database,
    database_url: str,
    standby: Standby,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A note is found once the standby has it; the log of questions is written on the primary."""
    monkeypatch.setattr(locate, "STALENESS_S", 60)
    name = urlsplit(database_url).path.lstrip("/")
    settings = Settings(
        _env_file=None,
        rag_home=tmp_path,
        database_url=database_url,
        database_read_url=standby.dsn(name),
    )
    with open_application(settings) as application:
        assert application.readers is not None
        wait_for(application.readers, standby=True)
        with standby.behind():
            store(database, "El ascensor de la escalera no funciona desde el apagón.")
            assert found(application) == 0
        wait_until(lambda: found(application) == 1, 60)
        assert reads_standby(application.readers)


def store(database: Database, text: str) -> None:
    """Store a note."""
    at = datetime(2025, 3, 1, tzinfo=UTC)
    with database.transaction() as connection:
        upsert_notes(
            connection,
            [NoteRecord(external_id="1", title="Ascensor", content=text, created_at=at)],
            tenant="default",
            source="diario",
        )


def found(application: Application) -> int:
    """Return how many passages answer a question."""
    answered = application.retrieve(
        "¿funciona el ascensor?", overrides={"strategy": "fulltext"}, deadline_ms=60_000
    )
    assert answered.response.error is None
    return len(answered.response.results)


def test_the_status_says_how_far_a_standby_is(
    database: Database,
    database_url: str,
    standby: Standby,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    """Up to date, behind, or without an answer; no password is shown."""
    url = standby.dsn(urlsplit(database_url).path.lstrip("/"))
    place = f"127.0.0.1:{urlsplit(url).port}"
    isolate(monkeypatch, tmp_path, DATABASE_URL=database_url, DATABASE_READ_URL=url)

    def state() -> object:
        shown = call_rag(monkeypatch, capsys, "status", "--json")
        assert "password" not in shown.out
        assert str(urlsplit(url).password) not in shown.out
        [seen] = shown.json["server"]["standbys"]
        assert seen["address"] == place
        return seen["state"]

    with open_application(load_settings()):
        wait_until(lambda: state() == "current", 60)
        with standby.behind():
            store(database, "El ascensor no funciona.")
            assert state() == "behind"
            shown = call_rag(monkeypatch, capsys, "status").out
            assert f"Réplica {place}: le faltan" in shown
        standby.kill()
        assert state() == "lost"
        standby.start()


def test_a_standby_that_was_promoted_is_not_read(readers: Readers, standby: Standby) -> None:
    """It goes its own way, and may lack what the primary writes; this test is the last."""
    wait_for(readers, standby=True)
    standby.promote()
    wait_for(readers, standby=False)
    primary = readers._primary._dsn
    [seen] = look_at_standbys(primary, [readers._standbys[0].database._dsn])
    assert seen.state is StandbyState.NO_STANDBY
