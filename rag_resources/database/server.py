"""Starts and stops the embedded PostgreSQL; its port, password and databases.

The programs it runs are in `binaries`, the system account and folders in `account`, the data folder
and the process in `cluster`, what is stored between starts in `record`. Connections for queries
belong in `pool`.
"""

import contextlib
import errno
import hashlib
import os
import secrets
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
from filelock import FileLock, Timeout
from psycopg import sql

from rag_resources.core.errors import EmbeddedServerError, InvalidParameterError
from rag_resources.database.account import choose_place, make_folder, server_account
from rag_resources.database.binaries import Binaries, usable_binaries
from rag_resources.database.cluster import ROLE, Cluster, advice
from rag_resources.database.faults import database_fault
from rag_resources.database.ports import HOST, choose_port
from rag_resources.database.queries import queries, statement
from rag_resources.database.record import ServerRecord, read_record, state_folder
from rag_resources.files import write_atomically
from rag_resources.languages.messages import _

POLL_SECONDS = 0.05
CONNECT_SECONDS = 5
# A start may replay a gigabyte of log; the server then logs its progress every 10 s. So only a
# silent log counts as a failure.
QUIET_SECONDS = 60
START_SECONDS = 600
LOCK_SECONDS = 630
ORPHANS_SECONDS = 60
STOP_SECONDS = 60
IMMEDIATE_STOP_SECONDS = 15
API_LOGIN = "rag_api"
"""The login of the HTTP API: no superuser, and a member of the product's roles only."""

MAX_NAME_BYTES = 63
PASSWORD_BYTES = 32

FILE_PROBLEMS = {
    errno.EACCES: _("there is no permission to read or write"),
    errno.EPERM: _("there is no permission to read or write"),
    errno.ENOSPC: _("the disk is full"),
    errno.EDQUOT: _("the disk is full"),
    errno.EROFS: _("it is on a read-only disk"),
    errno.ENOTDIR: _("there is a file where a folder should be"),
    errno.EEXIST: _("there is a file where a folder should be"),
}


@dataclass(frozen=True)
class ServerStatus:
    """The status of an embedded server.

    Args:
        running: Whether a process serves the data; it may still be starting up.
        pid: The id of that process.
        port: Its port, which is kept across starts; none before the first start.
        data_dir: Its data folder.
        version: PostgreSQL's version at the last start.
    """

    running: bool
    pid: int | None
    port: int | None
    data_dir: Path
    version: str | None


class _PortTakenError(Exception):
    """The port went to another program between our check and the start."""


class EmbeddedServer:
    """A PostgreSQL server in a folder, for users without a server of their own.

    It outlives the process that starts it, and stops only by `down`. Several processes may call
    `up` at once. Everything is stored in `<home>/postgres`; port and data location are in its
    `server.json`. The exception: if root runs the server and `nobody` cannot enter `home`, data
    and password are in `/var/lib/brain-sync-rag/<hash of home>` (see `account.system_folder`).
    They stay there if `home` is deleted, and are found again if it is created again.

    Args:
        home: The folder of the state; created if missing.
        binaries: Folder of the PostgreSQL programs; by default those of the installed wheel.
    """

    def __init__(self, home: Path, *, binaries: Path | None = None) -> None:
        self._home = home.resolve()
        self._folder = state_folder(self._home)
        self._binaries = binaries

    def up(self) -> None:
        """Start the server unless it runs, and wait until it answers a query.

        Raises:
            EmbeddedServerError: It cannot be started; holds the end of its log and what to do.
        """
        with _file_problems(self._folder):
            if self._answers():
                return
            self._home.mkdir(parents=True, exist_ok=True)
            mode, owners = 0o700, {os.geteuid()}
            if os.geteuid() == 0:
                mode, owners = 0o711, {0, self._home.stat().st_uid}
            make_folder(self._folder, mode, owners=owners)
            with self._locked():
                if not self._answers():
                    self._start()

    def down(self) -> None:
        """Stop the server if it runs; open transactions are rolled back.

        Raises:
            EmbeddedServerError: It does not stop.
        """
        with _file_problems(self._folder):
            if not self._folder.exists():
                return
            with self._locked():
                self._stop()

    def status(self) -> ServerStatus:
        """Return the server's status without changing anything.

        Raises:
            EmbeddedServerError: The state belongs to somebody else.
        """
        with _file_problems(self._folder):
            record = read_record(self._home)
            cluster = self._cluster(record)
            pid = cluster.postmaster()
            return ServerStatus(
                running=pid is not None,
                pid=pid,
                port=record.port if record else None,
                data_dir=cluster.data,
                version=record.version if record else None,
            )

    @property
    def exists(self) -> bool:
        """Whether its data were ever created; looking changes nothing."""
        return self._folder.exists()

    def dsn(self, database: str = "rag", *, login: str = ROLE) -> str:
        """The URL of a database on this server, with the password of a login: not for logs.

        Raises:
            EmbeddedServerError: The server was never started.
        """
        with _file_problems(self._folder):
            record = read_record(self._home)
            password = self._password(self._cluster(record))
        if record is None or password is None:
            raise EmbeddedServerError(
                _(
                    "The embedded PostgreSQL server has not been created in {home} yet: start it "
                    "once and try again."
                ).format(home=self._home),
                home=str(self._home),
            )
        own = password if login == ROLE else login_password(password, login)
        return f"postgresql://{login}:{own}@{HOST}:{record.port}/{quote(database, safe='')}"

    def ensure_database(self, name: str) -> None:
        """Create a database with the extension `vector`, and the API's login, unless they exist.

        Raises:
            InvalidParameterError: PostgreSQL would refuse or truncate the name.
            EmbeddedServerError: The server does not answer, or lacks `vector`.
        """
        if not 0 < len(name.encode()) <= MAX_NAME_BYTES or "\0" in name:
            raise InvalidParameterError(
                _(
                    "Invalid name of a database: {name!r} (between 1 and 63 bytes, without NUL "
                    "characters)."
                ).format(name=name),
                name=name,
            )
        identifier = sql.Identifier(name)
        with self._connected("postgres") as connection:
            if not queries().database_exists(connection, name=name):
                # Two processes may get here at once; the second gets one of these two errors.
                with contextlib.suppress(
                    psycopg.errors.DuplicateDatabase, psycopg.errors.UniqueViolation
                ):
                    connection.execute(statement("create_database", database=identifier))
            if not queries().role_exists(connection, name=API_LOGIN):
                password = sql.Literal(login_password(connection.info.password, API_LOGIN))
                login = sql.Identifier(API_LOGIN)
                with contextlib.suppress(
                    psycopg.errors.DuplicateObject, psycopg.errors.UniqueViolation
                ):
                    connection.execute(statement("create_login", login=login, password=password))
        with (
            self._connected(name) as connection,
            contextlib.suppress(psycopg.errors.UniqueViolation, psycopg.errors.DuplicateObject),
        ):
            queries().create_vector_extension(connection)

    @contextlib.contextmanager
    def _connected(self, database: str) -> Iterator[psycopg.Connection[Any]]:
        try:
            with self._connect(database) as connection:
                yield connection
        except (psycopg.errors.UndefinedFile, psycopg.errors.FeatureNotSupported) as error:
            raise EmbeddedServerError(
                _(
                    "The PostgreSQL programs in use lack the extension “vector” (pgvector), which "
                    "semantic search needs: use the embedded ones or add it to those of "
                    "RAG_POSTGRES_BIN."
                ),
                database=database,
            ) from error
        except psycopg.errors.DiskFull as error:
            raise EmbeddedServerError(
                _(
                    "The embedded PostgreSQL server cannot use {path}: {reason}. Check the "
                    "permissions and the free space, or choose another working folder."
                ).format(path=self._folder, reason=_("the disk is full"))
            ) from error
        except psycopg.OperationalError as error:
            if fault := database_fault(error):
                raise fault from error
            port = self.status().port
            raise EmbeddedServerError(
                _(
                    "The embedded PostgreSQL server does not answer on port {port}: start it and "
                    "try again."
                ).format(port=port),
                database=database,
                port=port,
            ) from error

    def _connect(self, database: str) -> psycopg.Connection[Any]:
        # Besides the URL: settings that PG* environment variables could change, and a requirement
        # that keeps the password from being sent to another program on this port.
        return psycopg.connect(
            self.dsn(database),
            hostaddr=HOST,
            sslmode="disable",
            gssencmode="disable",
            require_auth="scram-sha-256",
            options="",
            connect_timeout=CONNECT_SECONDS,
            autocommit=True,
        )

    def _cluster(self, record: ServerRecord | None) -> Cluster:
        place = Path(record.place) if record and record.place else self._folder
        return Cluster(place, server_account(self._folder))

    def _password_path(self, cluster: Cluster) -> Path:
        return cluster.place / "password"

    def _password(self, cluster: Cluster) -> str | None:
        try:
            return self._password_path(cluster).read_text("ascii").strip() or None
        except (FileNotFoundError, NotADirectoryError):
            return None

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        path = self._folder / "lock"
        lock = FileLock(path, timeout=LOCK_SECONDS)
        try:
            lock.acquire()
        except Timeout as error:
            raise EmbeddedServerError(
                _(
                    "Another process has been starting or stopping the embedded PostgreSQL server "
                    "for more than {seconds} seconds (file {path}). Wait until it ends, or close "
                    "it, and try again."
                ).format(seconds=LOCK_SECONDS, path=path),
                path=str(path),
            ) from error
        try:
            if os.geteuid() == 0:
                owner = self._folder.stat()
                os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)
            yield
        finally:
            lock.release()

    def _answers(self) -> bool:
        record = read_record(self._home)
        if record is None:
            return False
        cluster = self._cluster(record)
        if cluster.postmaster() is None:
            return False
        return self._answers_a_query(cluster)

    def _answers_a_query(self, cluster: Cluster) -> bool:
        try:
            with self._connect("postgres") as connection:
                return bool(queries().answers(connection) == 1)
        except psycopg.OperationalError as error:
            problem = str(error)
            fault = database_fault(error)
        if fault and fault.message == _(
            "The database server runs, but accepts no more connections: all are taken. Close "
            "those that are not needed or raise max_connections, and try again."
        ):
            return True
        if "password authentication failed" in problem and cluster.says_ready():
            raise EmbeddedServerError(
                _(
                    "The embedded PostgreSQL server rejects the password in {path}: give the role "
                    "{role} that password again or get the file back from a copy."
                ).format(path=self._password_path(cluster), role=ROLE),
                path=str(self._password_path(cluster)),
            )
        return False

    def _start(self) -> None:
        record = read_record(self._home)
        cluster = self._cluster(record)
        if cluster.place == self._folder or not cluster.exists:
            cluster = Cluster(choose_place(self._folder, cluster.account), cluster.account)
        binaries = usable_binaries(self._binaries, cluster.account)
        if (pid := cluster.postmaster()) is not None:
            # The process that started it died before it was ready, or the record was lost.
            if record is None:
                self._note(cluster, cluster.running_port(), binaries)
            self._wait_until_ready(cluster, pid)
            return
        if not cluster.exists:
            self._create(cluster, binaries)
        if self._password(cluster) is None:
            path = self._password_path(cluster)
            raise EmbeddedServerError(
                _(
                    "The password of the embedded PostgreSQL server is missing ({path}), but its "
                    "data exist: get that file back from a copy, or put the folder {data} aside "
                    "and load the notes again."
                ).format(path=path, data=cluster.data),
                path=str(path),
            )
        cluster.require_version(binaries)
        kept = record.port if record else None
        while True:
            port = choose_port(kept)
            self._note(cluster, port, binaries)
            try:
                self._launch(cluster, binaries, port)
            except _PortTakenError:
                kept = None
            else:
                return

    def _create(self, cluster: Cluster, binaries: Binaries) -> None:
        password = self._password(cluster)
        if password is None:
            password = secrets.token_urlsafe(PASSWORD_BYTES)
            write_atomically(self._password_path(cluster), password, mode=0o600)
        cluster.create(binaries, password)

    def _note(self, cluster: Cluster, port: int, binaries: Binaries) -> None:
        place = None if cluster.place == self._folder else str(cluster.place)
        ServerRecord(str(self._home), place, port, binaries.version).write()

    def _launch(self, cluster: Cluster, binaries: Binaries, port: int) -> None:
        deadline = time.monotonic() + ORPHANS_SECONDS
        while not self._wait_until_ready(cluster, cluster.launch(binaries, port)):
            log = cluster.log_tail()
            if "could not bind" in log:
                raise _PortTakenError
            # Backends of a killed server finish their query before they exit.
            orphans = "pre-existing shared memory block" in log
            if not orphans or time.monotonic() > deadline:
                raise EmbeddedServerError(
                    _(
                        "The embedded PostgreSQL server could not start. {advice}\nLast lines of "
                        "{path}:\n{log}"
                    ).format(advice=advice(log, cluster.data), path=cluster.log, log=log),
                    data=str(cluster.data),
                    port=port,
                )
            time.sleep(0.5)

    def _wait_until_ready(self, cluster: Cluster, pid: int) -> bool:
        """Wait for an answer, as long as the log shows progress; false if the process died."""
        started = changed = time.monotonic()
        size = cluster.log_size()
        while not self._answers_a_query(cluster):
            # A process that is just replacing its program shows no arguments for a moment.
            if not cluster.is_served_by(pid):
                time.sleep(POLL_SECONDS)
                if not cluster.is_served_by(pid):
                    return False
            now = time.monotonic()
            if cluster.log_size() != size:
                size, changed = cluster.log_size(), now
            if now - changed > QUIET_SECONDS or now - started > START_SECONDS:
                raise EmbeddedServerError(
                    _(
                        "The embedded PostgreSQL server is still starting after {seconds} "
                        "seconds. Wait a little and try again; if nothing changes, stop it and "
                        "look at the log.\nLast lines of {path}:\n{log}"
                    ).format(
                        seconds=round(now - started), path=cluster.log, log=cluster.log_tail()
                    ),
                    pid=pid,
                )
            time.sleep(POLL_SECONDS)
        return True

    def _stop(self) -> None:
        cluster = self._cluster(read_record(self._home))
        for stop, seconds in (
            (signal.SIGINT, STOP_SECONDS),
            (signal.SIGQUIT, IMMEDIATE_STOP_SECONDS),
        ):
            pid = cluster.postmaster()
            if pid is None:
                return
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, stop)
            deadline = time.monotonic() + seconds
            while cluster.is_served_by(pid):
                if time.monotonic() > deadline:
                    break
                time.sleep(POLL_SECONDS)
            else:
                return
        raise EmbeddedServerError(
            _(
                "The embedded PostgreSQL server (process {pid}) did not stop within {seconds} "
                "seconds. Close the programs that use it and try again."
            ).format(pid=pid, seconds=STOP_SECONDS + IMMEDIATE_STOP_SECONDS),
            pid=pid,
        )


def login_password(password: str, login: str) -> str:
    """Return the password of another login, from which that of the owner cannot be found."""
    return hashlib.sha256(f"{login} {password}".encode()).hexdigest()


@contextlib.contextmanager
def _file_problems(folder: Path) -> Iterator[None]:
    """Report a problem with the state's files to the user, in Spanish."""
    try:
        yield
    except OSError as error:
        path = error.filename or folder
        reason = FILE_PROBLEMS.get(error.errno or 0) or error.strerror or type(error).__name__
        raise EmbeddedServerError(
            _(
                "The embedded PostgreSQL server cannot use {path}: {reason}. Check the "
                "permissions and the free space, or choose another working folder."
            ).format(path=path, reason=reason),
            path=str(path),
        ) from error
