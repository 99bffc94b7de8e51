"""The embedded PostgreSQL server: really started, killed and damaged."""

import contextlib
import ctypes
import json
import os
import pwd
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import psycopg
import pytest
from filelock import FileLock

from rag_assets.webserver import bring_back_server
from rag_resources.core.errors import EmbeddedServerError, InvalidParameterError, RagError
from rag_resources.database import account, server
from rag_resources.database.binaries import find_binaries
from rag_resources.database.server import EmbeddedServer
from rag_resources.settings import load_settings
from tests.waiting import wait_until

REPOSITORY = Path(__file__).parents[2]
IS_ROOT = os.geteuid() == 0
PR_SET_CHILD_SUBREAPER = 36
needs_root = pytest.mark.skipif(not IS_ROOT, reason="switches accounts, as only root may")
needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

StartServer = Callable[..., EmbeddedServer]


def tidy(home: Path) -> None:
    """Stop the server of a home and remove what it keeps outside of it."""
    instance = EmbeddedServer(home)
    instance.down()
    place = instance.status().data_dir.parents[1]
    if place != home.resolve() / "postgres":
        shutil.rmtree(place)
    for socket_folder in Path("/tmp").glob(f"rag-*-{account.short_hash(place)}"):
        shutil.rmtree(socket_folder)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user can enter; pytest's own `tmp_path` is closed to others."""
    folder = Path(tempfile.mkdtemp(prefix="rag-test-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def start(open_folder: Path) -> Iterator[StartServer]:
    """Start a server in a home, by default one that everybody can enter."""
    homes: list[Path] = []

    def started(home: Path | None = None, **options: object) -> EmbeddedServer:
        home = home or open_folder / "home"
        homes.append(home)
        instance = EmbeddedServer(home, **options)  # type: ignore[arg-type]
        instance.up()
        return instance

    yield started
    for home in homes:
        tidy(home)


def query(instance: EmbeddedServer, statement: str, database: str = "postgres") -> list[tuple]:
    with psycopg.connect(instance.dsn(database), autocommit=True) as connection:
        cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


def kill(instance: EmbeddedServer) -> int:
    """Kill the postmaster like the out-of-memory killer does, and wait until it is gone."""
    pid = instance.status().pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not instance.status().running)
    return pid


def calling_up(home: Path) -> subprocess.Popen[str]:
    """Another process that calls `up` and ends."""
    code = "import sys; from pathlib import Path;"
    code += "from rag_resources.database.server import EmbeddedServer;"
    code += "EmbeddedServer(Path(sys.argv[1])).up()"
    return subprocess.Popen(
        [sys.executable, "-c", code, str(home)],
        stderr=subprocess.PIPE,
        text=True,
        cwd=REPOSITORY,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(REPOSITORY), *sys.path])},
    )


def as_normal_user(action: Callable[[], object]) -> object:
    """Run an action as `nobody` in a forked process if we are root, and return its result.

    A fork, not a new interpreter: that one may lie under a folder of root.
    """
    if not IS_ROOT:
        return action()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            entry = pwd.getpwnam("nobody")
            os.setgroups([])
            os.setgid(entry.pw_gid)
            os.setuid(entry.pw_uid)
            result = action()
        except BaseException as error:  # noqa: BLE001 - nothing may return into the parent's test run
            result = f"{type(error).__name__}: {error}"
        os.write(writer, json.dumps(result).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        result = json.loads(pipe.read())
    os.waitpid(child, 0)
    return result


def test_cold_start_gives_a_server_with_our_settings(start: StartServer) -> None:
    """A first start creates data, port and password, and the server is set up as we need it."""
    instance = start()

    status = instance.status()
    assert status.running
    assert status.data_dir.is_dir()
    assert status.version == query(instance, "SHOW server_version")[0][0]
    assert instance.dsn().endswith(f"@127.0.0.1:{status.port}/rag")
    settings = dict(query(instance, "SELECT name, setting FROM pg_settings"))
    assert settings["data_checksums"] == "on"
    assert settings["fsync"] == "on"
    assert settings["jit"] == "off"
    assert settings["TimeZone"] == "UTC"
    assert settings["listen_addresses"] == "127.0.0.1"
    assert settings["server_encoding"] == "UTF8"
    assert 16_384 <= int(settings["shared_buffers"]) <= 131_072
    assert 65_536 <= int(settings["maintenance_work_mem"]) <= 4_194_304


def test_text_is_ordered_by_code_point_and_split_as_unicode(start: StartServer) -> None:
    """Order does not depend on the machine, and "¿" is no letter to the text search parser."""
    instance = start()

    ordered = query(
        instance, "SELECT string_agg(t, '' ORDER BY t) FROM unnest('{é,b,B,a}'::text[]) t"
    )
    lexemes = query(instance, "SELECT tsvector_to_array(to_tsvector('simple', '¿QUÉ «ñandú»?'))")

    assert ordered == [("Babé",)]
    assert lexemes == [(["qué", "ñandú"],)]


def test_every_connection_needs_the_password(start: StartServer) -> None:
    """TCP and socket both ask for it, by SCRAM."""
    instance = start()
    port = instance.status().port
    sockets = query(instance, "SHOW unix_socket_directories")[0][0]

    for host in ("127.0.0.1", sockets):
        with pytest.raises(psycopg.OperationalError, match="password"):
            psycopg.connect(host=host, port=port, user="rag", dbname="postgres", password="no")
    methods = query(instance, "SELECT DISTINCT auth_method FROM pg_hba_file_rules")
    assert methods == [("scram-sha-256",)]


def test_six_processes_start_one_server_which_outlives_them(
    start: StartServer, open_folder: Path
) -> None:
    home = open_folder / "home"
    processes = [calling_up(home) for _ in range(6)]
    for process in processes:
        _, errors = process.communicate(timeout=60)
        assert (process.returncode, errors) == (0, "")

    first = EmbeddedServer(home).status()
    assert first.running
    assert start().status() == first
    data = str(first.data_dir)
    postmasters = [p for p in psutil.process_iter(["cmdline"]) if data in (p.info["cmdline"] or [])]
    assert [p.pid for p in postmasters] == [first.pid]


def test_killed_server_recovers_what_was_committed(start: StartServer) -> None:
    instance = start()
    query(instance, "CREATE TABLE kept AS SELECT generate_series(1, 1000) AS id")
    killed = kill(instance)
    assert (instance.status().data_dir / "postmaster.pid").exists()

    instance.up()

    assert instance.status().pid != killed
    assert query(instance, "SELECT count(*) FROM kept") == [(1000,)]


@needs_linux
def test_zombie_postmaster_counts_as_dead(start: StartServer) -> None:
    """A killed postmaster that its parent, this process, has not reaped."""
    prctl = ctypes.CDLL(None).prctl
    assert prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
    try:
        instance = start()
        assert psutil.Process(instance.status().pid).ppid() == os.getpid()
        killed = kill(instance)
        wait_until(lambda: psutil.Process(killed).status() == psutil.STATUS_ZOMBIE)

        instance.up()

        assert psutil.Process(killed).status() == psutil.STATUS_ZOMBIE
        assert instance.status().running
        instance.down()
    finally:
        prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
        # Those that have ended, not all: a forkserver of another test never does.
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def test_process_id_given_to_another_process_counts_as_dead(start: StartServer) -> None:
    """Usual after a container restarts: the id in `postmaster.pid` is some other live process."""
    instance = start()
    kill(instance)
    pid_file = instance.status().data_dir / "postmaster.pid"
    _, _, others = pid_file.read_text().partition("\n")
    pid_file.write_text(f"{os.getpid()}\n{others}")

    assert not instance.status().running
    instance.up()

    assert instance.status().running


def test_start_waits_for_orphans_of_a_killed_server(start: StartServer) -> None:
    """A backend ends its query before it sees that the postmaster died."""
    instance = start()
    connection = psycopg.connect(instance.dsn("postgres"))
    backend = connection.info.backend_pid

    def work() -> None:
        with pytest.raises(psycopg.OperationalError):
            connection.execute(
                "SELECT count(*) FROM generate_series(1, 10000) a, generate_series(1, 9000000) b"
            )

    worker = threading.Thread(target=work)
    worker.start()
    # Its query is under way: starting alone does not take as much of the processor.
    started_s = psutil.Process(backend).cpu_times().user
    wait_until(lambda: psutil.Process(backend).cpu_times().user > started_s + 0.2)
    kill(instance)
    threading.Timer(1.5, lambda: os.kill(backend, signal.SIGKILL)).start()
    try:
        instance.up()
    finally:
        worker.join()
        connection.close()

    assert not psutil.pid_exists(backend) or (
        psutil.Process(backend).status() == psutil.STATUS_ZOMBIE
    )
    assert instance.status().running


def test_down_and_up_keep_data_password_and_port(start: StartServer) -> None:
    instance = start()
    query(instance, "CREATE TABLE kept AS SELECT 'sí' AS word")
    url = instance.dsn()

    instance.down()
    stopped = instance.status()
    instance.down()
    instance.up()

    assert not stopped.running
    assert stopped.pid is None
    assert instance.dsn() == url
    assert query(instance, "SELECT word FROM kept") == [("sí",)]


def test_kept_port_in_use_is_replaced(start: StartServer) -> None:
    instance = start()
    instance.down()
    port = instance.status().port
    with socket.create_server(("127.0.0.1", port)):
        instance.up()

        assert instance.status().port != port
        assert query(instance, "SELECT 1") == [(1,)]


def test_prepared_socket_folder_is_refused(open_folder: Path, tmp_path: Path) -> None:
    """An attacker guessed the name of the short socket folder and put a link there."""
    home = open_folder / ("largo-" * 20)
    place = home / "postgres"
    uid = account.server_account(place).uid
    link = Path("/tmp") / f"rag-{uid}-{account.short_hash(place)}"
    link.symlink_to(tmp_path)
    try:
        with pytest.raises(EmbeddedServerError, match="no es de fiar"):
            EmbeddedServer(home).up()
    finally:
        link.unlink()


@needs_root
def test_folder_prepared_by_another_user_is_refused(open_folder: Path) -> None:
    prepared = open_folder / "postgres"
    prepared.mkdir()
    os.chown(prepared, 12345, 12345)

    with pytest.raises(EmbeddedServerError, match="no es de fiar"):
        EmbeddedServer(open_folder).up()


@needs_root
def test_root_works_under_a_folder_closed_to_others(start: StartServer, tmp_path: Path) -> None:
    """The data go where the server's account can reach them, and no permission is changed."""
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    instance = start(closed / "home")

    status = instance.status()
    assert status.data_dir.is_relative_to("/var/lib/brain-sync-rag")
    assert psutil.Process(status.pid).username() == "nobody"
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700
    assert stat.S_IMODE((status.data_dir.parents[1] / "password").stat().st_mode) == 0o600
    instance.down()
    (closed / "home").rename(closed / "moved")
    assert start(closed / "moved").status().data_dir == status.data_dir


@needs_root
def test_copied_home_does_not_share_the_data(start: StartServer, tmp_path: Path) -> None:
    first = start(tmp_path / "home")
    shutil.copytree(tmp_path / "home", tmp_path / "copy")

    second = start(tmp_path / "copy")

    assert second.status().data_dir != first.status().data_dir


@needs_root
def test_lost_record_of_a_running_server_is_found_again(start: StartServer, tmp_path: Path) -> None:
    instance = start(tmp_path / "home")
    before = instance.status()
    (tmp_path / "home" / "postgres" / "server.json").write_text("{")

    instance.up()

    assert instance.status() == before


@needs_root
def test_unreachable_binaries_are_copied_once(start: StartServer, tmp_path: Path) -> None:
    """A virtual environment under a folder of root: the account gets a copy, libraries included."""
    wheel = find_binaries(None).parents[1]
    package = tmp_path / "lib" / wheel.name
    shutil.copytree(wheel / "pginstall18", package / "pginstall18")
    shutil.copytree(wheel.with_suffix(".libs"), package.with_suffix(".libs"))
    copies = set(Path("/var/lib/brain-sync-rag").glob("binaries-*"))

    instance = start(tmp_path / "home", binaries=package / "pginstall18" / "bin")
    (copy,) = set(Path("/var/lib/brain-sync-rag").glob("binaries-*")) - copies
    try:
        made = copy.stat().st_ctime_ns
        program = Path(psutil.Process(instance.status().pid).exe())
        assert program.is_relative_to(copy)
        instance.down()
        instance.up()
        assert copy.stat().st_ctime_ns == made
        instance.ensure_database("rag")
    finally:
        instance.down()
        shutil.rmtree(copy)


def test_normal_user(open_folder: Path) -> None:
    """Everything lies in the home of the user, who runs the server."""
    home = open_folder / "user"
    home.mkdir(mode=0o700)
    if IS_ROOT:
        os.chown(home, pwd.getpwnam("nobody").pw_uid, pwd.getpwnam("nobody").pw_gid)

    def action() -> object:
        instance = EmbeddedServer(home)
        try:
            instance.up()
            instance.ensure_database("rag")
            status = instance.status()
            owner = psutil.Process(status.pid).uids().real
            return [owner == os.getuid(), query(instance, "SELECT 1"), str(status.data_dir)]
        finally:
            instance.down()

    assert as_normal_user(action) == [
        True,
        [[1]] if IS_ROOT else [(1,)],
        str(home / "postgres/cluster/data"),
    ]


def test_interrupted_initdb_is_done_again(start: StartServer, open_folder: Path) -> None:
    """The process and its `initdb` are killed half-way: the next start begins anew."""
    home = open_folder / "home"
    folder = home / "postgres" / "cluster"
    process = calling_up(home)
    wait_until(lambda: any(folder.glob("new-*/data/base")))
    process.kill()
    process.communicate()
    for other in psutil.process_iter(["name", "cmdline"]):
        if str(folder) in " ".join(other.info["cmdline"] or []):
            other.kill()
    assert any(folder.glob("new-*"))

    instance = start()

    assert query(instance, "SELECT 1") == [(1,)]
    assert not any(folder.glob("new-*"))


def test_corrupted_data_are_explained(start: StartServer) -> None:
    instance = start()
    instance.down()
    data = instance.status().data_dir
    (data / "global" / "pg_control").write_bytes(b"\0" * 8192)

    with pytest.raises(EmbeddedServerError) as caught:
        instance.up()

    assert "Los datos parecen dañados" in caught.value.message
    assert str(data) in caught.value.message
    assert "FATAL" in caught.value.message
    assert "Traceback" not in caught.value.message


def test_data_of_another_version_are_explained(start: StartServer) -> None:
    instance = start()
    instance.down()
    (instance.status().data_dir / "PG_VERSION").write_text("16\n")

    with pytest.raises(EmbeddedServerError, match="son de PostgreSQL 16"):
        instance.up()


def test_lost_password_is_explained(start: StartServer) -> None:
    instance = start()
    instance.down()
    password = instance.status().data_dir.parents[1] / "password"
    password.unlink()

    with pytest.raises(EmbeddedServerError, match="Falta la contraseña"):
        instance.up()


@needs_root
@needs_linux
def test_full_disk_is_explained(start: StartServer, open_folder: Path) -> None:
    disk = open_folder / "disk"
    disk.mkdir()
    mounting = ["mount", "-t", "tmpfs", "-o", "size=120m,mode=755", "tmpfs", str(disk)]
    if subprocess.run(mounting, check=False, capture_output=True).returncode != 0:
        pytest.skip("may not mount")
    try:
        instance = start(disk / "home")
        instance.down()
        with (disk / "filler").open("wb", buffering=0) as filler:
            room = os.statvfs(disk)
            os.posix_fallocate(filler.fileno(), 0, room.f_bavail * room.f_frsize)
        with pytest.raises(EmbeddedServerError, match=r"[Nn]o queda espacio en el disco"):
            instance.up()
        with pytest.raises(EmbeddedServerError, match=r"[Nn]o queda espacio en el disco"):
            EmbeddedServer(disk / "other").up()
        (disk / "filler").unlink()
        instance.up()
        assert query(instance, "SELECT 1") == [(1,)]
        instance.down()
    finally:
        tidy(disk / "home")
        subprocess.run(["umount", str(disk)], check=True)


def test_lock_held_by_another_process_is_explained(
    open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "LOCK_SECONDS", 0.2)
    folder = open_folder / "postgres"
    folder.mkdir(mode=0o700)
    with (
        FileLock(folder / "lock"),
        pytest.raises(EmbeddedServerError, match="Otro proceso lleva más de"),
    ):
        EmbeddedServer(open_folder).up()


def test_ensure_database_creates_it_once_with_vector(start: StartServer) -> None:
    instance = start()
    name = 'notas "ñ" %'
    failures: list[RagError] = []

    def ensure() -> None:
        try:
            instance.ensure_database(name)
        except RagError as error:
            failures.append(error)

    threads = [threading.Thread(target=ensure) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failures == []
    assert query(instance, "SELECT '[1,2]'::vector::text", name) == [("[1,2]",)]
    for bad in ("", "ñ" * 32, "a\0b"):
        with pytest.raises(InvalidParameterError, match="no válido"):
            instance.ensure_database(bad)
    instance.down()
    with pytest.raises(EmbeddedServerError, match="no responde"):
        instance.ensure_database(name)


@needs_linux
def test_no_secret_shows_in_files_or_processes(
    start: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the password, nor the text of notes, nor the caller's environment leaks."""
    monkeypatch.setenv("SOME_API_KEY", "clave-secreta")
    instance = start()
    password = psycopg.conninfo.conninfo_to_dict(instance.dsn())["password"]
    for statement in ("SELECT 'diario-secreto'::int", "SELEC 'diario-secreto'"):
        with pytest.raises(psycopg.Error):
            query(instance, statement)
    crash = "SELECT pg_terminate_backend(pg_backend_pid()), 'diario-secreto'"
    with pytest.raises(psycopg.OperationalError):
        query(instance, crash)
    connection = psycopg.connect(instance.dsn("postgres"))
    pid = connection.info.backend_pid
    threading.Timer(0.3, lambda: os.kill(pid, signal.SIGKILL)).start()
    with pytest.raises(psycopg.OperationalError):
        connection.execute("SELECT pg_sleep(60), 'diario-secreto'")
    connection.close()
    instance.up()

    data = instance.status().data_dir
    log = (data.parent / "server.log").read_text()
    assert "terminated by signal 9" in log
    for secret in (password, "diario-secreto", "clave-secreta"):
        assert secret not in log
    files = [
        path for path in data.parents[1].rglob("*") if path.is_file() and path.name != "password"
    ]
    assert not [path for path in files if password.encode() in path.read_bytes()]
    postmaster = psutil.Process(instance.status().pid)
    for process in (postmaster, *postmaster.children()):
        shown = " ".join(process.cmdline()) + repr(process.environ())
        assert password not in shown
        assert "clave-secreta" not in shown


def test_the_ui_brings_back_a_server_that_was_killed_and_leaves_a_stopped_one(
    start: StartServer, open_folder: Path
) -> None:
    """A backfill goes on, and `rag down --force` is obeyed."""
    server = start()
    settings = load_settings().model_copy(update={"rag_home": open_folder / "home"})
    killed = kill(server)
    bring_back_server(settings)
    assert server.status().pid not in (None, killed)
    server.down()
    bring_back_server(settings)
    assert not server.status().running
