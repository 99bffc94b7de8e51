"""Settings of the embedded PostgreSQL, based on the machine's memory and the size of the data."""

import contextlib
import os
import stat
from pathlib import Path

MEGABYTE = 1024 * 1024
SHARED_MEMORY_FOLDER = Path("/dev/shm")  # noqa: S108 - PostgreSQL's, only measured here
SETTINGS = """\
listen_addresses = '127.0.0.1'
port = {port}
unix_socket_directories = '{socket_folder}'
unix_socket_permissions = 0700
max_connections = 100
password_encryption = 'scram-sha-256'
shared_buffers = {shared_buffers}MB
effective_cache_size = {effective_cache_size}MB
# The most that the graph of an HNSW index may take while it is built; a build takes what it needs.
maintenance_work_mem = {maintenance_work_mem}MB
autovacuum_work_mem = 64MB
max_parallel_maintenance_workers = 2
dynamic_shared_memory_type = {shared_memory}
max_wal_size = 1GB
fsync = on
jit = off
timezone = 'UTC'
log_timezone = 'UTC'
lc_messages = 'C'
# Notes and questions must not end in the log: `log` leaves out the errors of clients, which quote
# values; `terse` leaves out the statement that was running when a process crashed.
log_min_messages = log
log_min_error_statement = panic
log_error_verbosity = terse
log_checkpoints = off
log_startup_progress_interval = 10s
"""


def settings_text(port: int, socket_folder: Path, *, data_bytes: int) -> str:
    """The text of the settings file.

    Args:
        port: The port to listen on.
        socket_folder: Folder of the socket; its name needs no quoting.
        data_bytes: Size of the data. The cache grows with it, up to a quarter of the memory,
            at each start of the server.
    """
    memory = total_memory() // MEGABYTE
    maintenance = max(64, min(4096, memory // 8))
    small = max(128, min(1024, memory // 8))
    return SETTINGS.format(
        port=port,
        socket_folder=socket_folder,
        shared_buffers=max(small, min(data_bytes // MEGABYTE, memory // 4)),
        effective_cache_size=max(small, memory // 2),
        maintenance_work_mem=maintenance,
        shared_memory=shared_memory_type(maintenance * MEGABYTE),
    )


def total_memory() -> int:
    """Memory of this machine or container, in bytes."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for limit in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError):
            memory = min(memory, int(Path(limit).read_text(encoding="ascii")))
    return memory


def folder_bytes(folder: Path) -> int:
    """Total size of the files below a folder, in bytes; files deleted meanwhile do not count."""
    total = 0
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError):
            entry = path.lstat()
            total += entry.st_size if stat.S_ISREG(entry.st_mode) else 0
    return total


def shared_memory_type(needed: int) -> str:
    """How parallel workers share memory: `/dev/shm`, unless it is too small for an index build.

    A parallel HNSW build allocates `maintenance_work_mem` bytes there, and fails in a container's
    64 MB. System V segments do not use `/dev/shm`.
    """
    if os.uname().sysname != "Linux":
        return "posix"
    with contextlib.suppress(OSError):
        room = os.statvfs(SHARED_MEMORY_FOLDER)
        if room.f_bavail * room.f_frsize > needed + 64 * MEGABYTE:
            return "posix"
    with contextlib.suppress(OSError, ValueError):
        if int(Path("/proc/sys/kernel/shmmax").read_text(encoding="ascii")) > needed:
            return "sysv"
    return "mmap"
