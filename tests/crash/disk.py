"""The folder of a product that is killed: a small disk in memory, and what must not stay behind."""

import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from rag_resources.database.server import EmbeddedServer

_BLOCK = bytes(1 << 20)
_NAME = re.compile(r"rag-kills-(\d+)-")
_STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True)
class Disk:
    """A folder for everything that a product stores.

    Attributes:
        folder: Which.
        is_small: Whether it is a file system of its own, which can be filled.
    """

    folder: Path
    is_small: bool


def end_orderly_when_stopped() -> None:
    """Have this process stop and remove everything when it gets a signal to stop, or several.

    Signals that it was started to ignore, as by `nohup`, stay ignored.
    """

    def stop(*_: object) -> None:
        for number in _STOPS:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    for number in _STOPS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, stop)


@contextmanager
def small_disk(megabytes: int) -> Iterator[Disk]:
    """Make a folder with a small file system in memory, if this user may mount one.

    It is unmounted and removed at the end, and so are those of processes that were killed.
    """
    remove_left_disks()
    folder = Path(tempfile.mkdtemp(prefix=f"rag-kills-{os.getpid()}-"))
    folder.chmod(0o755)
    options = f"size={megabytes}m,mode=0755"
    mounted = _run("mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder))
    try:
        yield Disk(folder, mounted)
    finally:
        _remove(folder)


def remove_left_disks() -> list[Path]:
    """Remove the folders, file systems and processes of killed processes; return the folders."""
    left = [
        folder
        for folder in Path(tempfile.gettempdir()).iterdir()
        if (found := _NAME.match(folder.name)) and not psutil.pid_exists(int(found[1]))
    ]
    for folder in left:
        _end_processes(folder)
        EmbeddedServer(folder / "home").down()
        _remove(folder)
    return left


def fill(folder: Path) -> None:
    """Leave not a byte free on the file system of a folder."""
    with ballast(folder).open("wb", buffering=0) as file:
        try:
            while file.write(_BLOCK) == len(_BLOCK):
                pass
        except OSError:
            pass


def ballast(folder: Path) -> Path:
    """Return the file that fills the disk."""
    return folder / "ballast"


def _end_processes(folder: Path) -> None:
    """Kill the commands, webserver and daemon that store their state in this folder."""
    for process in psutil.process_iter():
        try:
            home = process.environ().get("RAG_HOME", "")
            if Path(home).is_relative_to(folder) and home:
                process.kill()
        except psutil.Error:
            continue


def _remove(folder: Path) -> None:
    if folder.is_mount():
        # Something that is still ending may hold a file: then the disk goes when it has ended.
        _run("umount", str(folder)) or _run("umount", "--lazy", str(folder))
    shutil.rmtree(folder, ignore_errors=True)


def _run(program: str, *arguments: str) -> bool:
    path = shutil.which(program)
    if path is None:
        return False
    done = subprocess.run([path, *arguments], capture_output=True, check=False)
    return done.returncode == 0
