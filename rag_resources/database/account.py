"""The system account that runs the embedded PostgreSQL, and the folders it can use.

PostgreSQL refuses to run as root, so root runs it as `nobody`. The programs that the account runs
belong in `binaries` and `cluster`; starting and stopping the server in `server`.
"""

import os
import pwd
import stat
import subprocess
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from rag_resources.core.errors import EmbeddedServerError
from rag_resources.languages.messages import _

UNPRIVILEGED_USER = "nobody"
SYSTEM_FOLDERS = (Path("/var/lib"), Path("/var/db"))
SYSTEM_FOLDER_NAME = "brain-sync-rag"
COMMAND_SECONDS = 30


@dataclass(frozen=True)
class ServerAccount:
    """The account of the server's processes.

    Args:
        uid: Its user id.
        gid: Its group id.
        switches: Whether it differs from the caller's account; the caller is then root.
    """

    uid: int
    gid: int
    switches: bool

    @property
    def name(self) -> str:
        """The user name, or the user id if the account has no name."""
        try:
            return pwd.getpwuid(self.uid).pw_name
        except KeyError:
            return str(self.uid)

    def run(
        self, command: Sequence[str | Path], *, seconds: float = COMMAND_SECONDS
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to completion under this account, in its own session.

        The command gets only the environment variables that PostgreSQL needs. The caller's keys
        and tokens must not be visible in a daemon's `/proc/<pid>/environ`, and a stray `PGDATA`
        or `PGPORT` must not reach it.
        """
        kept = {"LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"} & os.environ.keys()
        environment = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL": "C"}
        try:
            return subprocess.run(  # noqa: S603 - an argument list, no shell of ours interprets it
                [os.fspath(argument) for argument in command],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                timeout=seconds,
                check=False,
                cwd="/",
                env=environment | {name: os.environ[name] for name in kept},
                start_new_session=True,
                umask=0o077,
                user=self.uid if self.switches else None,
                group=self.gid if self.switches else None,
                extra_groups=[] if self.switches else None,
            )
        except subprocess.TimeoutExpired as error:
            raise EmbeddedServerError(
                _(
                    "PostgreSQL's program {program} did not end within {seconds} seconds. Check "
                    "the load of the machine and try again."
                ).format(program=Path(command[0]).name, seconds=round(seconds)),
                command=os.fspath(command[0]),
            ) from error

    def can_enter(self, folder: Path) -> bool:
        """Whether the account can enter a folder; this is tried, not derived from its mode."""
        return self.run(["/bin/sh", "-c", 'cd -- "$1"', "sh", folder]).returncode == 0

    def can_read(self, files: Sequence[Path]) -> bool:
        """Whether the account can read every one of the files; this is tried."""
        script = 'for file in "$@"; do test -r "$file" || exit 1; done'
        return self.run(["/bin/sh", "-c", script, "sh", *files]).returncode == 0

    def own(self, folder: Path) -> None:
        """Create a folder of mode 0700 owned by the account, or check an existing one.

        Raises:
            EmbeddedServerError: It belongs to somebody else, is a link, or is writable by others.
        """
        make_folder(folder, 0o700, owners=(os.geteuid(), self.uid))
        if self.switches:
            os.chown(folder, self.uid, self.gid, follow_symlinks=False)


def server_account(folder: Path) -> ServerAccount:
    """Choose the account that runs the server of a state folder.

    Normally that is the caller's. Root uses the account of a normal user who owns the folder, so
    that this user can use it afterwards, and `nobody` otherwise.

    Raises:
        EmbeddedServerError: The caller is root and there is no user `nobody`.
    """
    if os.geteuid() != 0:
        return ServerAccount(os.geteuid(), os.getegid(), switches=False)
    if folder.exists() and (owner := folder.stat()).st_uid != 0:
        return ServerAccount(owner.st_uid, owner.st_gid, switches=True)
    try:
        entry = pwd.getpwnam(UNPRIVILEGED_USER)
    except KeyError as error:
        raise EmbeddedServerError(
            _(
                "PostgreSQL cannot run as root, and this machine has no user {user}: create that "
                "user or work as an ordinary one."
            ).format(user=UNPRIVILEGED_USER)
        ) from error
    return ServerAccount(entry.pw_uid, entry.pw_gid, switches=True)


def make_folder(folder: Path, mode: int, *, owners: Collection[int]) -> None:
    """Create a folder with exactly this mode, or check that an existing one can be trusted.

    Args:
        folder: Its parent must exist.
        mode: Of a new folder, regardless of the umask.
        owners: The user ids that an existing folder may belong to.

    Raises:
        EmbeddedServerError: It belongs to somebody else, is a link, or is writable by others, so
            another user of the machine may have prepared it.
    """
    try:
        folder.mkdir(mode=mode)
    except FileExistsError:
        found = folder.lstat()
        shared = stat.S_IMODE(found.st_mode) & 0o022
        if not stat.S_ISDIR(found.st_mode) or found.st_uid not in owners or shared:
            raise EmbeddedServerError(
                _(
                    "The folder {path} cannot be trusted: it belongs to another user, others can "
                    "write it, or it is a link. Correct its owner and permissions, or delete it "
                    "if you did not create it."
                ).format(path=folder),
                path=str(folder),
            ) from None
    else:
        folder.chmod(mode)


def system_folder(account: ServerAccount) -> Path:
    """Root's folder for files that the account cannot reach in their original place.

    It is in `/var/lib` (`/var/db` on macOS), not `/var/tmp`: only root can write there, so nobody
    else can prepare, rename or delete it, and temporary-file cleaners leave it alone.

    Raises:
        EmbeddedServerError: No such folder is usable.
    """
    for base in SYSTEM_FOLDERS:
        if not base.is_dir() or not account.can_enter(base):
            continue
        found = base.stat()
        if found.st_uid == 0 and not found.st_mode & 0o022 and os.access(base, os.W_OK):
            make_folder(base / SYSTEM_FOLDER_NAME, 0o711, owners=(0,))
            return base / SYSTEM_FOLDER_NAME
    tried = ", ".join(str(base) for base in SYSTEM_FOLDERS)
    raise EmbeddedServerError(
        _(
            "There is no folder where the user {user} can keep PostgreSQL's data ({tried} was "
            "tried). Choose a working folder that other users can enter."
        ).format(user=account.name, tried=tried),
        tried=tried,
    )


def choose_place(folder: Path, account: ServerAccount) -> Path:
    """Choose where the data are stored: in the state folder, or elsewhere if it is unreachable.

    Args:
        folder: The state folder of a home; it exists.
        account: Who runs the server.

    Returns:
        `folder` if the account can enter it, else a folder of root in `/var/lib` named after
        `folder`. The user's permissions are never changed.

    Raises:
        EmbeddedServerError: `folder` holds data that the account can no longer reach, or no
            other place is usable.
    """
    cluster = folder / "cluster"
    account.own(cluster)
    if not account.switches or account.can_enter(cluster):
        return folder
    if any(cluster.iterdir()):
        raise EmbeddedServerError(
            _(
                "PostgreSQL's data are in {path}, but the user {user}, who runs the server, "
                "cannot enter. Give back the permission to pass through the folders above."
            ).format(path=cluster, user=account.name),
            path=str(cluster),
        )
    cluster.rmdir()
    place = system_folder(account) / short_hash(folder)
    make_folder(place, 0o711, owners=(0,))
    account.own(place / "cluster")
    return place


def short_hash(path: Path) -> str:
    """A short name for a path, the same on every run."""
    return sha256(os.fsencode(path)).hexdigest()[:16]
