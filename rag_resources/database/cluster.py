"""One PostgreSQL data folder: its creation, its log and its postmaster process.

Its settings belong in `tuning`; when it starts and stops, on which port, and locking against other
callers in `server`.
"""

import contextlib
import os
import re
import secrets
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from rag_resources.core.errors import EmbeddedServerError
from rag_resources.database.account import ServerAccount, short_hash
from rag_resources.database.binaries import Binaries
from rag_resources.database.tuning import folder_bytes, settings_text
from rag_resources.files import write_atomically
from rag_resources.languages.messages import _

ROLE = "rag"
INITDB_SECONDS = 300
LOG_TAIL_LINES = 8
LOG_TAIL_BYTES = 64_000
SOCKET_PATH_BYTES = 107
SOCKET_NAME_BYTES = len("/.s.PGSQL.65535")
BUILTIN_LOCALE_SINCE = 17
SCRAM_ITERATIONS_SINCE = 16
UTF8_LOCALES = ("C.UTF-8", "en_US.UTF-8", "es_ES.UTF-8", "UTF-8")
# Above any process id of Linux or macOS.
NO_PROCESS = 2**31 - 1
# Not `tempfile.gettempdir()`: that path may be long and differ between sessions.
TEMPORARY_FOLDER = Path("/tmp")  # noqa: S108 - what is made there is checked

# The shell starts the postmaster in the background and exits at once. So the postmaster does not
# become our zombie and holds no pipe of ours; paths are passed as arguments and need no quoting.
# The shell's only output is the postmaster's process id.
LAUNCH = 'log=$1; shift; "$@" </dev/null >>"$log" 2>&1 & echo $!'


@dataclass(frozen=True)
class Cluster:
    """A data folder and the process that serves it.

    Args:
        place: The folder of the state, trusted; holds `cluster`, the account's own folder.
        account: Who runs the programs and owns the data.
    """

    place: Path
    account: ServerAccount

    @property
    def folder(self) -> Path:
        """The folder of the account: data and logs."""
        return self.place / "cluster"

    @property
    def data(self) -> Path:
        """The data folder of PostgreSQL."""
        return self.folder / "data"

    @property
    def log(self) -> Path:
        """The server's log since its last start; the log of the start before is kept as `.1`."""
        return self.folder / "server.log"

    @property
    def settings(self) -> Path:
        """The settings file, rewritten at each start; `ALTER SYSTEM` still overrides it."""
        return self.place / "postgresql.conf"

    @property
    def exists(self) -> bool:
        """Whether the data folder exists."""
        return self.data.exists()

    def create(self, binaries: Binaries, password: str) -> None:
        """Create the data folder completely or not at all: under another name, then renamed.

        Raises:
            EmbeddedServerError: `initdb` failed.
        """
        for leftover in self.folder.glob("new-*"):
            shutil.rmtree(leftover, ignore_errors=True)
        beside = self.folder / f"new-{secrets.token_hex(4)}"
        self.account.own(beside)
        try:
            password_file = beside / "password"
            write_atomically(password_file, f"{password}\n", mode=0o600)
            if self.account.switches:
                os.chown(password_file, self.account.uid, self.account.gid)
            self._initdb(binaries, beside / "data", password_file)
            (beside / "data").rename(self.data)
        finally:
            shutil.rmtree(beside, ignore_errors=True)

    def _initdb(self, binaries: Binaries, data: Path, password_file: Path) -> None:
        options = ["-U", ROLE, "-A", "scram-sha-256", "-E", "UTF8", "-k", "--no-instructions"]
        if binaries.major >= SCRAM_ITERATIONS_SINCE:
            # SCRAM hashes a password 4096 times at each connection, on both sides, so that a weak
            # one cannot be guessed from what is stored. Nobody guesses 32 random bytes.
            options.append("--set=scram_iterations=1")
        for locale in UTF8_LOCALES:
            finished = self.account.run(
                [
                    *(binaries.folder / "initdb", "-D", data, f"--pwfile={password_file}"),
                    *(*options, *_locale_options(binaries.major, locale)),
                ],
                seconds=INITDB_SECONDS,
            )
            if finished.returncode == 0:
                return
            if "invalid locale name" not in finished.stderr:
                break
        log = _last_lines(finished.stdout + finished.stderr)
        raise EmbeddedServerError(
            _("The PostgreSQL database in {path} could not be created. {advice}\n{log}").format(
                path=self.data, advice=advice(log, self.data), log=log
            ),
            data=str(self.data),
        )

    def require_version(self, binaries: Binaries) -> None:
        """Check that the programs have the major version that created the data.

        Raises:
            EmbeddedServerError: They have another major version.
        """
        found = _read(self.data / "PG_VERSION").strip()
        if found.isdigit() and int(found) != binaries.major:
            raise EmbeddedServerError(
                _(
                    "The data in {data} are of PostgreSQL {found} and the programs of PostgreSQL "
                    "{programs}: use those of that version (RAG_POSTGRES_BIN) or put that folder "
                    "aside and load the notes again."
                ).format(data=self.data, found=found, programs=binaries.version),
                found=found,
            )

    def launch(self, binaries: Binaries, port: int) -> int:
        """Start the postmaster on a port and return its process id, without waiting for it."""
        self._forget_dead_process()
        size = folder_bytes(self.data / "base")
        text = settings_text(port, self._socket_folder(), data_bytes=size)
        write_atomically(self.settings, text, mode=0o644)
        with contextlib.suppress(FileNotFoundError):
            self.log.replace(self.log.with_suffix(".log.1"))
        postgres = binaries.folder / "postgres"
        options = ("-D", self.data, f"--config-file={self.settings}")
        started = self.account.run(["/bin/sh", "-c", LAUNCH, "sh", self.log, postgres, *options])
        return int(started.stdout)

    def _socket_folder(self) -> Path:
        """The account's own folder, or a short one if its socket path would be too long.

        A folder whose name would need quoting in the settings is not used either.
        """
        name = str(self.folder)
        plain = re.fullmatch(r"[\w/.-]+", name, re.ASCII)
        if plain and len(name) + SOCKET_NAME_BYTES <= SOCKET_PATH_BYTES:
            return self.folder
        short = TEMPORARY_FOLDER / f"rag-{self.account.uid}-{short_hash(self.place)}"
        self.account.own(short)
        return short

    def _forget_dead_process(self) -> None:
        """Clean up what a dead postmaster left and what would keep PostgreSQL from starting.

        PostgreSQL treats the process id in the lock file as alive if it belongs to a zombie, or to
        another process by now, as is common in containers. So the id is replaced. The file itself
        stays: its line on shared memory keeps a second server away from data that an orphaned
        backend still writes to. Call this only when `postmaster` finds none.
        """
        pid_file = self.data / "postmaster.pid"
        first, *others = _read(pid_file).splitlines() or [""]
        if first.strip().isdigit():
            text = "\n".join([str(NO_PROCESS), *others]) + "\n"
            descriptor = os.open(pid_file, os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
        else:
            pid_file.unlink(missing_ok=True)
        for leftover in self._socket_folder().glob(".s.PGSQL.*"):
            leftover.unlink(missing_ok=True)

    def postmaster(self) -> int | None:
        """The process id of the postmaster that serves these data; zombies do not count."""
        first = _read(self.data / "postmaster.pid").partition("\n")[0].strip()
        return int(first) if first.isdigit() and self.is_served_by(int(first)) else None

    def is_served_by(self, pid: int) -> bool:
        """Whether a process is alive and serves these data."""
        if pid <= 0 or pid >= NO_PROCESS:
            return False
        return os.fsencode(self.data) in _arguments(pid)

    def running_port(self) -> int:
        """The port that the postmaster wrote to its lock file; 0 if it has not yet."""
        noted = _read(self.data / "postmaster.pid").splitlines()[3:4]
        return int(noted[0]) if noted and noted[0].strip().isdigit() else 0

    def says_ready(self) -> bool:
        """Whether the postmaster's lock file says that it accepts connections."""
        return _read(self.data / "postmaster.pid").rstrip().endswith("ready")

    def log_size(self) -> int:
        """Size of the log since the last start, in bytes."""
        try:
            return self.log.stat().st_size
        except FileNotFoundError:
            return 0

    def log_tail(self) -> str:
        """The last lines of the log."""
        return _last_lines(_read(self.log))


def advice(log: str, data: Path) -> str:
    """Advice for the user, in Spanish, about the failure that a log shows."""
    known = (
        (
            ("No space left on device", "Disk quota exceeded"),
            _("The disk is full: free some space and try again."),
        ),
        (
            ("invalid locale name",),
            _("The system lacks a UTF-8 locale: install C.UTF-8 or en_US.UTF-8."),
        ),
        (
            (
                "PANIC",
                "checkpoint record",
                "pg_control",
                "incompatible with server",
                "could not open file",
                "could not read file",
                "not a valid data directory",
            ),
            _(
                "The data seem to be damaged: restore a backup or put the folder {data} aside and "
                "load the notes again."
            ),
        ),
    )
    for signs, message in known:
        if any(sign in log for sign in signs):
            return message.format(data=data)
    return _("Mend the cause that the log names and try again.")


def _locale_options(major: int, ctype: str) -> list[str]:
    """Options for sorting by code point, with Unicode's letters, case and word boundaries.

    The character type matters even with the built-in provider: with plain C the text-search
    parser treats every non-ASCII character as a letter, and "¿Qué" becomes the word "¿qué".
    """
    options = ["--locale=C", f"--lc-ctype={ctype}"]
    if major >= BUILTIN_LOCALE_SINCE:
        options += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    return options


def _arguments(pid: int) -> list[bytes]:
    """The command line of a live process; empty for a zombie, which has none.

    `/proc/<pid>/cwd` would not do: root in a container may not read it for a process of `nobody`.
    """
    if Path("/proc/self/cmdline").exists():
        try:
            return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            return []
    listed = subprocess.run(  # noqa: S603 - a fixed program and a number
        ["/bin/ps", "-ww", "-o", "args=", "-p", str(pid)],
        capture_output=True,
        check=False,
        timeout=10,
    )
    command = listed.stdout.strip()
    # `ps` does not separate arguments, so the folder is the text between two options of `launch`.
    return [command.partition(b" -D ")[2].partition(b" --config-file=")[0]]


def _read(path: Path) -> str:
    """The end of one of the account's text files; empty if it is missing; follows no links."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return ""
    with os.fdopen(descriptor, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(max(0, size - LOG_TAIL_BYTES))
        return file.read(LOG_TAIL_BYTES).decode("utf-8", errors="replace")


def _last_lines(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.strip().splitlines()[-LOG_TAIL_LINES:])
