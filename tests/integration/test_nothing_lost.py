"""What is not read, or read with another date, is told, and corrections in the files count."""

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest

from rag_resources.application import open_application
from rag_resources.languages.messages import _
from rag_resources.settings import load_settings
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


def test_what_was_rejected_stays_in_the_status_until_it_is_mended(rag: Rag, folder: Path) -> None:
    assert rag("ingest", folder).code == 0
    database = rag("status", "--json").json["database"]
    assert database["rejected"] == 1
    [rejection] = database["rejections"]
    assert (rejection["root"], rejection["location"]) == (str(folder), "mala.md:2")
    assert "«ayer» no es una fecha" in rejection["reason"]
    assert "«ayer» no es una fecha" in rag("status").out
    doctor = rag("doctor")
    assert doctor.code == 0
    assert (
        _(
            "the last reading could not read {count}. “rag status” says which and why. Correct "
            "each in its file; the next run picks it up."
        ).format(count=1)
        in doctor.out
    )
    assert doctor.out.endswith(
        _("Nothing is broken, but look at the lines that start with “mind”.") + "\n"
    )
    (folder / "mala.md").write_text("---\nfecha: 2025-03-01\n---\nEl taller pide 415 euros.\n")
    assert rag("ingest", folder).code == 0
    assert rag("status", "--json").json["database"]["rejections"] == []


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


def test_a_deleted_note_can_be_restored_for_a_week(
    rag: Rag, folder: Path, database_url: str
) -> None:
    """Afterwards nothing of its text is kept; the source may bring it again."""
    rag("ingest", folder)
    done = rag("notes", "delete", "buena", "--yes")
    assert "7 días" in done.out
    with open_application(load_settings()) as application:
        application.notes.purge_expired()
    assert rag("notes", "list", "--deleted", "--json").json["notes"][0]["note"] is not None
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE tombstones SET deleted_at = now() - interval '8 days'")
    with open_application(load_settings()) as application:
        application.notes.purge_expired()
    assert rag("notes", "list", "--deleted", "--json").json["notes"][0]["note"] is None
    assert (
        _(
            "Nothing of “{name}” was kept; now its source may bring it: “rag ingest” or “make run”."
        ).format(name="buena")
        in rag("notes", "restore", "buena").out
    )
