"""What is not read, or read with another date, is told, and corrections in the files count."""

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest

from tests.command_line import Outcome, call_rag, isolate

Rag = Callable[..., Outcome]


@pytest.fixture
def rag(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    database_url: str,
) -> Rag:
    """Call `rag` on an empty database."""
    isolate(monkeypatch, tmp_path, DATABASE_URL=database_url)
    return lambda *arguments: call_rag(monkeypatch, capsys, *arguments)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    notes = tmp_path / "notas"
    notes.mkdir()
    (notes / "buena.md").write_text("---\nfecha: 2025-02-01\n---\nLa gata volvió de noche.\n")
    (notes / "mala.md").write_text("---\nfecha: ayer\n---\nEl taller pide 415 euros.\n")
    (notes / "sola.txt").write_text("Planté habas en el bancal.\n")
    return notes


def created(url: str, external_id: str) -> datetime:
    with psycopg.connect(url) as connection:
        statement = "SELECT created_at FROM notes WHERE external_id = %s"
        row = connection.execute(statement, [external_id]).fetchone()
    assert row
    moment: datetime = row[0]
    return moment.astimezone(UTC)


def test_a_corrected_date_moves_the_note(rag: Rag, folder: Path, database_url: str) -> None:
    """That of the file counts; when a file without a date was changed does not."""
    rag("ingest", folder)
    before = created(database_url, "sola")
    (folder / "buena.md").write_text("---\nfecha: 2025-06-15\n---\nLa gata volvió de noche.\n")
    os.utime(folder / "sola.txt", (0, 0))
    done = rag("ingest", folder, "--json").json
    assert (done["updated"], done["unchanged"]) == (1, 1)
    assert created(database_url, "buena") == datetime(2025, 6, 15, tzinfo=UTC)
    assert created(database_url, "sola") == before
