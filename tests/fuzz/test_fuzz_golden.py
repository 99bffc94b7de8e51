"""Golden files: all of a file is imported or nothing, and each bad entry is named."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from rag_resources.core.errors import InvalidGoldenDatasetError, InvalidSourceError, RagError
from rag_resources.core.golden import GoldenEntry
from rag_resources.core.types import NoteRecord
from rag_resources.database.pool import Database
from rag_resources.golden.files import export_golden, import_golden
from rag_resources.store.golden import GoldenImport, list_golden
from rag_resources.store.notes import upsert_notes
from tests.fuzz.bounds import outcome
from tests.fuzz.hostile import heaps, mutated

pytestmark = pytest.mark.fuzz
one_database = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])

TENANT = "ana"
ROW = {
    "id": "00000000-0000-4000-8000-000000000001",
    "query": "¿Qué pasó con el ascensor?",
    "relevantNotes": ["nota"],
    "expectedAnswer": "Que no funciona.",
    "category": "factual",
    "difficulty": 2,
    "tags": ["casa"],
    "createdAt": "2025-01-01T10:00:00+01:00",
    "updatedAt": "2025-01-02T00:00:00Z",
    "places": [
        {"note": "nota", "text": "ascensor"},
        {"note": "nota", "start": 0, "end": 2, "text": "El"},
    ],
}
FILE = json.dumps({"entries": [ROW, ROW | {"id": None, "query": "¿Y luego?"}]}).encode()

Import = Callable[[bytes], list[GoldenEntry] | RagError]


@pytest.fixture
def imported(database: Database, tmp_path: Path) -> Import:
    """Import a file into a database with one note; the dataset, or why it is as it was."""
    note = NoteRecord("nota", "", "El ascensor.", datetime(2025, 1, 1, tzinfo=UTC))
    with database.transaction() as connection:
        upsert_notes(connection, [note], tenant=TENANT, source="diario")
    path = tmp_path / "oro.json"

    def stored() -> list[GoldenEntry]:
        with database.transaction() as connection:
            return list_golden(connection)

    def attempt(raw: bytes) -> list[GoldenEntry] | RagError:
        before = stored()
        path.write_bytes(raw)
        given = outcome(lambda: import_golden(database, path, tenant=TENANT, replace=True))
        if isinstance(given, RagError):
            assert stored() == before
            return given
        assert outcome(lambda: export_golden(database, path, force=True)) == len(stored())
        again = outcome(lambda: import_golden(database, path, tenant=TENANT, replace=True))
        assert again == GoldenImport([], [])
        return stored()

    return attempt


def parse_rows(raw: bytes) -> list[dict[str, str]]:
    """The rows of a file that was imported."""
    content = json.loads(raw.decode("utf-8-sig"))
    found: list[dict[str, str]] = content["entries"] if isinstance(content, dict) else content
    return found


@one_database
@given(mutated([FILE]) | heaps().map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_file_is_imported_or_refused_whole(imported: Import, raw: bytes) -> None:
    """What is imported could be exported as it is; what is refused says of which file, and why."""
    given = imported(raw)
    if isinstance(given, RagError):
        assert "oro.json" in given.message
        assert isinstance(given, InvalidSourceError) or (
            isinstance(given, InvalidGoldenDatasetError) and all(given.problems)
        )
        return
    rows = parse_rows(raw)
    assert len(given) == len(rows) > 0
    assert {entry.query for entry in given} == {row["query"] for row in rows}
    assert all(entry.relevant_note_ids and entry.expected_answer for entry in given)
