"""Tells which of the product's programs run with a state folder on this machine.

A program holds a lock on a file of its own, which the system releases when the process ends,
however it ends. Whether a run of Dagster is alive is told by `database.run_lock`.
"""

import fcntl
import json
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

FOLDER = "running"
UI = "rag ui"
"""What serves the Dagster UI."""

_own: dict[Path, "Program"] = {}
"""This process's, by the file whose lock it holds: opening and closing one would release it."""


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
    program = Program(command, address, os.getpid(), datetime.now(UTC))
    try:
        path, handle = _locked_file(home / FOLDER, program)
    except OSError:
        yield
        return
    _own[path] = program
    try:
        yield
    finally:
        with suppress(OSError):
            path.unlink(missing_ok=True)
        os.close(handle)
        del _own[path]


def _locked_file(folder: Path, program: Program) -> tuple[Path, int]:
    folder.mkdir(mode=0o700, exist_ok=True)
    _remove_ended(folder)
    # A process id alone is not unique: containers may share the folder.
    path = folder / f"{program.pid}-{secrets.token_hex(4)}.json"
    unlocked = path.with_suffix(".new")  # Nobody looks at it before it is locked.
    handle = os.open(unlocked, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        # A lock of the process, which those that it forks do not keep.
        fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        told = {"command": program.command, "address": program.address, "pid": program.pid}
        started_at = program.started_at.isoformat()
        os.write(handle, json.dumps(told | {"startedAt": started_at}).encode())
        unlocked.rename(path)
    except OSError:
        unlocked.unlink(missing_ok=True)
        os.close(handle)
        raise
    return path, handle


def running_programs(home: Path) -> list[Program]:
    """Return the programs that run with a state folder, oldest first; nothing is changed."""
    return _programs(home, lambda path: path in _own or _is_held(path))


def killed_programs(home: Path) -> list[Program]:
    """Return the programs that were killed since one was last started, oldest first."""
    return _programs(home, lambda path: path not in _own and not _is_held(path))


def _programs(home: Path, is_wanted: Callable[[Path], bool]) -> list[Program]:
    found = []
    for path in (home / FOLDER).glob("*.json"):
        with suppress(OSError, ValueError, LookupError):
            if is_wanted(path):
                found.append(_own.get(path) or _read(path))
    return sorted(found, key=lambda program: (program.started_at, program.pid))


def _read(path: Path) -> Program:
    told = json.loads(path.read_text("utf-8"))
    started_at = datetime.fromisoformat(told["startedAt"])
    return Program(told["command"], told["address"], told["pid"], started_at)


def running_program(home: Path, command: str) -> Program | None:
    """Return the oldest program of this command that runs with a state folder, if there is one."""
    return next((each for each in running_programs(home) if each.command == command), None)


def _remove_ended(folder: Path) -> None:
    """Remove the files of processes that were killed."""
    for path in folder.glob("*.json"):
        with suppress(OSError):
            if path not in _own and not _is_held(path):
                path.unlink(missing_ok=True)


def _is_held(path: Path) -> bool:
    """Whether another process holds the lock of a file."""
    with path.open("rb") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False
