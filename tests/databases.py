"""Databases of tests: copies of templates, in memory where the machine has some to spare."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import psycopg

from rag_resources.database.server import EmbeddedServer

_MEMORY = Path("/dev/shm")
_NEEDED_BYTES = 8 * 1024**3


def server_folder() -> Path | None:
    """Return where servers of tests keep their files; None for the usual temporary folder.

    Two thousand copies of a template of 11 MB are most of what tests write. On a slow disk writing
    them takes longer than everything else together.
    """
    if not (_MEMORY.is_dir() and os.access(_MEMORY, os.W_OK)):
        return None
    return _MEMORY if shutil.disk_usage(_MEMORY).free >= _NEEDED_BYTES else None


@contextmanager
def cloned(server: EmbeddedServer, *templates: str) -> Iterator[list[str]]:
    """Copy databases for a while; lend the names of the copies.

    The files are copied, not written to the log block by block as by default.
    """
    names = [f"test_{uuid4().hex}" for _ in templates]
    with psycopg.connect(server.dsn("postgres"), autocommit=True) as connection:
        for name, template in zip(names, templates, strict=True):
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy")
        yield names
        for name in names:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
