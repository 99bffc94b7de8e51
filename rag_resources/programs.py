"""Tells which of the product's programs run with a state folder on this machine.

A program holds a lock on a file of its own, which the system releases when the process ends,
however it ends. Whether a run of Dagster is alive is told by `database.run_lock`.
"""

import fcntl
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

FOLDER = "running"


@dataclass(frozen=True, slots=True)
class Program:
    """A program that runs.

    Attributes:
        command: What started it, such as `rag serve`.
        address: Where it listens; empty if it does not.
        pid: The id of its process.
        started_at: In UTC.
    """

    command: str
    address: str
    pid: int
    started_at: datetime


@contextmanager
def announced(home: Path, command: str, *, address: str = "") -> Iterator[None]:
    """Let `running_programs` find this process until the end of the block.

    A folder that cannot be written is no obstacle: then it is not found.
    """
    try:
        path, handle = _locked_file(home / FOLDER, command, address)
    except OSError:
        yield
        return
    try:
        yield
    finally:
        with suppress(OSError):
            path.unlink(missing_ok=True)
        os.close(handle)


def _locked_file(folder: Path, command: str, address: str) -> tuple[Path, int]:
    folder.mkdir(mode=0o700, exist_ok=True)
    _remove_ended(folder)
    # A process id alone is not unique: containers may share the folder.
    path = folder / f"{os.getpid()}-{secrets.token_hex(4)}.json"
    unlocked = path.with_suffix(".new")  # Nobody looks at it before it is locked.
    handle = os.open(unlocked, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        # A lock of the process, which those that it forks do not keep.
        fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        started_at = datetime.now(UTC).isoformat()
        told = {"command": command, "address": address, "pid": os.getpid()}
        os.write(handle, json.dumps(told | {"startedAt": started_at}).encode())
        unlocked.rename(path)
    except OSError:
        unlocked.unlink(missing_ok=True)
        os.close(handle)
        raise
    return path, handle


def running_programs(home: Path) -> list[Program]:
    """Return the programs that run with a state folder, oldest first; nothing is changed."""
    found = []
    for path in (home / FOLDER).glob("*.json"):
        with suppress(OSError, ValueError, LookupError):
            if _is_held(path):
                told = json.loads(path.read_text("utf-8"))
                started_at = datetime.fromisoformat(told["startedAt"])
                found.append(Program(told["command"], told["address"], told["pid"], started_at))
    return sorted(found, key=lambda program: (program.started_at, program.pid))


def _remove_ended(folder: Path) -> None:
    """Remove the files of processes that were killed."""
    for path in folder.glob("*.json"):
        with suppress(OSError):
            if not _is_held(path):
                path.unlink(missing_ok=True)


def _is_held(path: Path) -> bool:
    """Whether another process holds the lock of a file."""
    with path.open("rb") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False
