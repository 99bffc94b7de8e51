"""A note's expiry as its source says it: front matter, JSONL and CSV."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from rag_resources.core.types import NoteRecord, RejectedRecord
from rag_resources.database.pool import Database
from rag_resources.ingestion.ingest import ingest
from rag_resources.ingestion.sources import iter_source

EXPIRY = "2031-03-14T18:30:00+01:00"
MOMENT = datetime(2031, 3, 14, 17, 30, tzinfo=UTC)


def write(folder: Path, kind: str, expiry: str) -> Path:
    path = folder / f"nota.{kind}"
    path.write_text(
        {
            "md": f"---\nid: a\nexpires_at: {expiry}\n---\nTexto.",
            "jsonl": json.dumps({"id": "a", "content": "Texto.", "expiresAt": expiry}),
            "csv": f"id,content,expires_at\na,Texto.,{expiry}\n",
        }[kind]
    )
    return path


def expiry(database: Database) -> datetime | None:
    with database.transaction() as connection:
        (row,) = connection.execute("SELECT expires_at FROM notes").fetchall()
    found: datetime | None = row.expires_at
    return found


def store(database: Database, path: Path) -> None:
    ingest(database, iter_source(path), tenant="default", source="notes")


@pytest.mark.parametrize("kind", ["md", "jsonl", "csv"])
def test_the_expiry_of_a_record_is_the_notes(database: Database, tmp_path: Path, kind: str) -> None:
    """It follows the source when the source changes, and a person's own stays otherwise."""
    store(database, write(tmp_path, kind, EXPIRY))
    assert expiry(database) == MOMENT
    with database.transaction() as connection:
        connection.execute("UPDATE notes SET expires_at = '2040-01-01T00:00Z'")
    store(database, write(tmp_path, kind, EXPIRY))
    assert expiry(database) == datetime(2040, 1, 1, tzinfo=UTC)
    store(database, write(tmp_path, kind, "2032-01-01"))
    assert expiry(database) == datetime(2032, 1, 1, tzinfo=UTC)
    store(database, write(tmp_path, kind, ""))
    assert expiry(database) is None


@pytest.mark.parametrize("kind", ["md", "jsonl", "csv"])
def test_an_expiry_that_is_no_date_is_named(tmp_path: Path, kind: str) -> None:
    (record,) = iter_source(write(tmp_path, kind, "pronto"))
    assert isinstance(record, RejectedRecord)
    assert "«pronto» no es una fecha" in record.reason
    (good,) = iter_source(write(tmp_path, kind, EXPIRY))
    assert isinstance(good, NoteRecord)
