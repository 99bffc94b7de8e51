"""The examples of docs/notes.md are read as the page says: files, fields, identifiers, months."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID, uuid5

import pytest

from rag_resources.core.golden import CATEGORIES, parse_golden
from rag_resources.core.types import NoteRecord, RejectedRecord
from rag_resources.ingestion.sources import iter_source

PAGE = (Path(__file__).parents[2] / "docs" / "notes.md").read_text("utf-8")
EXAMPLES = dict(re.findall(r"`([\w/.-]+\.\w+)`[^\n]*:\n\n```\w+\n(.*?)```", PAGE, re.DOTALL))
NAMESPACE = UUID(int=0)
QUESTIONS = "preguntas.json"


@pytest.fixture
def notes(tmp_path: Path) -> dict[str, NoteRecord]:
    """The notes of the page's examples, by identifier; none of them is rejected."""
    for name, text in EXAMPLES.items():
        if name != QUESTIONS:
            path = tmp_path / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, "utf-8")
    read = list(iter_source(tmp_path))
    assert [item for item in read if isinstance(item, RejectedRecord)] == []
    return {item.external_id: item for item in read if isinstance(item, NoteRecord)}


def test_the_examples_are_read_as_the_page_says(notes: dict[str, NoteRecord]) -> None:
    outage = notes["2025-04-29-apagon"]
    assert outage.created_at == datetime(2025, 4, 29, 20, 10, tzinfo=UTC)
    assert (outage.title, outage.tags) == ("El apagón", ("casa", "salud"))
    assert outage.metadata == {"lugar": "Valencia"}
    assert notes["acta-12"].tags == ("acta",)
    assert notes["acta-12-bis"].created_at == datetime(2025, 3, 15, 9, 30, tzinfo=UTC)
    assert notes["acta-12-bis"].tags == ("acta", "obra")
    assert notes["acta-13"].content == "La obra empieza en mayo, si no llueve."
    assert notes["acta-13"].metadata == {"importe": "1250"}
    assert notes["acta-14"].created_at == datetime(2025, 5, 9, tzinfo=UTC)


def test_an_identifier_comes_from_the_file_or_the_text(
    notes: dict[str, NoteRecord], tmp_path: Path
) -> None:
    assert "compras/2025-05-02" in notes
    (tmp_path / "filas.csv").write_text("content\nUna fila.\n", "utf-8")
    (row,) = iter_source(tmp_path / "filas.csv")
    (tmp_path / "filas.csv").write_text("content\nOtra fila.\n", "utf-8")
    (changed,) = iter_source(tmp_path / "filas.csv")
    assert isinstance(row, NoteRecord)
    assert isinstance(changed, NoteRecord)
    assert row.external_id != changed.external_id


def test_the_questions_are_read_with_the_notes_of_the_page(notes: dict[str, NoteRecord]) -> None:
    ids = {name: uuid5(NAMESPACE, name) for name in notes}
    contents = {ids[name]: note.content for name, note in notes.items()}
    entries = parse_golden(
        json.loads(EXAMPLES[QUESTIONS]),
        origin=QUESTIONS,
        resolve_note=ids.get,
        content_of=contents.__getitem__,
    )
    assert [entry.relevant_note_ids for entry in entries] == [
        (ids["2025-04-29-apagon"],),
        (ids["acta-12"], ids["acta-13"]),
    ]
    assert [len(entry.places) for entry in entries] == [1, 0]
    assert all(f"`{category}`" in PAGE for category in CATEGORIES)
