"""Golden files: all of a file is imported or nothing, and each bad entry is named."""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag_resources.core.errors import InvalidGoldenDatasetError, InvalidSourceError, RagError
from rag_resources.core.golden import GoldenEntry
from rag_resources.core.types import NoteRecord
from rag_resources.database.pool import Database
from rag_resources.golden.files import export_golden, import_golden
from rag_resources.store.golden import GoldenImport, list_golden
from rag_resources.store.notes import upsert_notes
from tests.fuzz.bounds import outcome
from tests.fuzz.hostile import any_texts, heaps, json_texts, mutated

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
MOMENTS = st.sampled_from(
    [
        *("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "2025-W01-1T00:00:00Z"),
        *("2025-01-01T00:00:00+23:59", "2025-01-01T00:00:00+00:00:30", "20250101T000000Z"),
    ]
)
VALUES = st.one_of(json_texts(), any_texts().map(json.dumps), MOMENTS.map(json.dumps))
FIELDS = [*ROW, "relevantNoteIds", "x"]

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


@one_database
@given(
    st.lists(st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=3), max_size=3), st.data()
)
def test_each_bad_entry_is_named_and_nothing_is_imported(
    imported: Import, changes: list[dict[str, str]], data: st.DataObject
) -> None:
    """Beside a good one, whose question nobody else has."""
    good = {name: json.dumps(value) for name, value in ROW.items() if name != "id"}
    rows = [
        good | {"query": json.dumps(f"¿Cuál es la {n}?")} | own for n, own in enumerate(changes)
    ]
    place = data.draw(st.integers(0, len(rows)))
    rows.insert(place, good)
    text = ",".join(
        "{" + ",".join(f"{json.dumps(name)}: {value}" for name, value in row.items()) + "}"
        for row in rows
    )
    given = imported(f"[{text}]".encode("utf-8", "surrogatepass"))
    if isinstance(given, InvalidGoldenDatasetError):
        if re.search("no es JSON", given.message):
            return
        named = [re.match(r"entrada (\d+)[ :]", problem) for problem in given.problems]
        assert all(named)
        assert place + 1 not in {int(match[1]) for match in named if match}
    else:
        assert isinstance(given, list)
        assert len(given) == len(rows)
