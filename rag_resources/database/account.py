"""Which system account runs the embedded PostgreSQL, and which folders that account can use.

PostgreSQL refuses root, so root runs it as `nobody`. What runs under the account belongs in
`binaries` and `cluster`; the life of the server in `server`.
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
from rag_resources.core.messages import Message

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
        switches: Whether it is another account than the caller's, who is then root.
    """

    uid: int
    gid: int
    switches: bool

    @property
    def name(self) -> str:
        """The user name, or the number of a user that has none."""
        try:
            return pwd.getpwuid(self.uid).pw_name
        except KeyError:
            return str(self.uid)

    def run(
        self, command: Sequence[str | Path], *, seconds: float = COMMAND_SECONDS
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end under this account, in a session of its own.

        The environment is reduced to what PostgreSQL needs: the keys and tokens of the caller must
        not show in `/proc/<pid>/environ` of a daemon, nor a stray `PGDATA` or `PGPORT` reach it.
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
                Message.SERVER_COMMAND_TIMEOUT.format(
                    program=Path(command[0]).name, seconds=round(seconds)
                ),
                command=os.fspath(command[0]),
            ) from error

    def can_enter(self, folder: Path) -> bool:
        """Whether the account really gets into a folder, tried rather than read off its mode."""
        return self.run(["/bin/sh", "-c", 'cd -- "$1"', "sh", folder]).returncode == 0

    def can_read(self, files: Sequence[Path]) -> bool:
        """Whether the account really gets at every one of the files."""
        script = 'for file in "$@"; do test -r "$file" || exit 1; done'
        return self.run(["/bin/sh", "-c", script, "sh", *files]).returncode == 0

    def own(self, folder: Path) -> None:
        """Make a folder of mode 0700 that belongs to the account, or check the one there is.

        Raises:
            EmbeddedServerError: Somebody else's folder, a link, or one that others may write to.
        """
        make_folder(folder, 0o700, owners=(os.geteuid(), self.uid))
        if self.switches:
            os.chown(folder, self.uid, self.gid, follow_symlinks=False)


def server_account(folder: Path) -> ServerAccount:
    """Choose the account for the state kept in a folder.

    Root takes the owner of a folder that a normal user made, so that the user can go on with it
    afterwards, and `nobody` otherwise.

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
            Message.SERVER_ACCOUNT_MISSING.format(user=UNPRIVILEGED_USER)
        ) from error
    return ServerAccount(entry.pw_uid, entry.pw_gid, switches=True)


def make_folder(folder: Path, mode: int, *, owners: Collection[int]) -> None:
    """Make a folder with exactly this mode, or check that the one there is can be trusted.

    Args:
        folder: Its parent must exist.
        mode: Given to a new folder whatever the umask.
        owners: The user ids an existing folder may belong to.

    Raises:
        EmbeddedServerError: It is somebody else's, a link, or others may write to it: another
            user of the machine may have prepared it.
    """
    try:
        folder.mkdir(mode=mode)
    except FileExistsError:
        found = folder.lstat()
        shared = stat.S_IMODE(found.st_mode) & 0o022
        if not stat.S_ISDIR(found.st_mode) or found.st_uid not in owners or shared:
            raise EmbeddedServerError(
                Message.SERVER_FOLDER_UNTRUSTED.format(path=folder), path=str(folder)
            ) from None
    else:
        folder.chmod(mode)


def system_folder(account: ServerAccount) -> Path:
    """The folder of root for what the account cannot reach where it is.

    `/var/lib` (`/var/db` on macOS) rather than `/var/tmp`: only root can write there, so nobody
    else can prepare, rename or delete it, and no cleaner of temporary files comes by.

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
        Message.SERVER_NO_REACHABLE_FOLDER.format(user=account.name, tried=tried), tried=tried
    )


def choose_place(folder: Path, account: ServerAccount) -> Path:
    """Choose where the data lie: in the folder itself, or out of the way if need be.

    Args:
        folder: The state folder of a home; it exists.
        account: Who runs the server.

    Returns:
        `folder` if the account can get into it, else a folder of root in `/var/lib` named after
        `folder`: the user's permissions are never changed.

    Raises:
        EmbeddedServerError: There is data in `folder` that the account can no longer reach, or
            nowhere to put it.
    """
    cluster = folder / "cluster"
    account.own(cluster)
    if not account.switches or account.can_enter(cluster):
        return folder
    if any(cluster.iterdir()):
        raise EmbeddedServerError(
            Message.SERVER_FOLDER_UNREACHABLE.format(path=cluster, user=account.name),
            path=str(cluster),
        )
    cluster.rmdir()
    place = system_folder(account) / short_hash(folder)
    make_folder(place, 0o711, owners=(0,))
    account.own(place / "cluster")
    return place


def short_hash(path: Path) -> str:
    """A name for a path that is the same on every run."""
    return sha256(os.fsencode(path)).hexdigest()[:16]
