"""Databases with the schema of an earlier product."""

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from rag_resources.database import migrations
from rag_resources.database.queries import SQL


def migrate_before(url: str, migration: str) -> None:
    """Apply the migrations whose names sort before one to an empty database."""
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        earlier = Path(folder) / "migrations"
        earlier.mkdir()
        for path in (SQL / "migrations").glob("*.sql"):
            if path.stem < migration:
                shutil.copyfile(path, earlier / path.name)
        patch.setattr(migrations, "SQL", Path(folder))
        migrations.migrate(url)
