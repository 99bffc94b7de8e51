"""Databases with the schema of an earlier product."""

import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from rag_resources.database import migrations
from rag_resources.database.queries import SQL


def migrate_before(url: str, migration: str) -> None:
    """Apply the migrations whose names sort before one to an empty database."""
    _migrate(url, lambda name: name < migration)


def migrate_without(url: str, *migrations: str) -> None:
    """Apply all migrations but some: those that a product got after later ones."""
    _migrate(url, lambda name: name not in migrations)


def _migrate(url: str, is_applied: Callable[[str], bool]) -> None:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        earlier = Path(folder) / "migrations"
        earlier.mkdir()
        for path in (SQL / "migrations").glob("*.sql"):
            if is_applied(path.stem):
                shutil.copyfile(path, earlier / path.name)
        patch.setattr(migrations, "SQL", Path(folder))
        migrations.migrate(url)
