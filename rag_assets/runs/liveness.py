"""Whether a process that executes runs itself still lives, for others on the same machine.

It holds a lock meanwhile, which the system takes back however the process ends.
"""

import fcntl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

PROCESS_LOCK = ".dagster/process_lock"
"""Tag of a run: the file that its process has locked. The UI does not show tags of this prefix."""


@contextmanager
def living(folder: Path) -> Iterator[Mapping[str, str]]:
    """Be seen to live.

    Args:
        folder: Where the lock is, until it is let go.

    Yields:
        The tags for the runs of this process.
    """
    path = folder / f"process-{uuid4().hex}.lock"
    with path.open("x") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield {PROCESS_LOCK: str(path)}
        finally:
            path.unlink(missing_ok=True)


def lives(path: Path) -> bool:
    """Return whether a process holds its lock; also where that cannot be told from here.

    A file that is not there is another machine's, which may have a folder of the same name. That
    of a process that was killed stays.
    """
    try:
        with path.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    return False
