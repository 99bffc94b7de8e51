"""`rag golden …` against a real database, question by question."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

import pytest

from rag_resources.core.types import NoteRecord
from rag_resources.database.pool import Database
from rag_resources.languages.messages import _
from rag_resources.store.notes import note_id, upsert_notes
from tests.command_line import Outcome, call_rag, isolate

NOTES = ("gata", "furgo", "viaje", "tren")
QUESTION = "¿Por dónde se escapó la gata?"
OPTIONS = (
    *("--note", "gata", "--answer", "Por la ventana"),
    *("--category", "factual", "--difficulty", "2"),
)


Rag = Callable[..., Outcome]


@pytest.fixture
def rag(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    database: Database,
    database_url: str,
) -> Rag:
    """Call `rag golden` on a database of four notes; no file rules over its questions."""
    written = [
        NoteRecord(name, name.title(), f"La nota de {name}.", datetime(2025, 1, 1, tzinfo=UTC))
        for name in NOTES
    ]
    with database.transaction() as connection:
        upsert_notes(connection, written, tenant="default", source="notes")
    isolate(monkeypatch, tmp_path, DATABASE_URL=database_url, GOLDEN_SOURCE="")

    def call(*arguments: str | Path, stdin: str | TextIO = "") -> Outcome:
        return call_rag(monkeypatch, capsys, "golden", *arguments, stdin=stdin)

    return call


def added(rag: Rag, *options: str, question: str = QUESTION) -> str:
    """Add a question; return its id."""
    outcome = rag("add", question, *OPTIONS, *options)
    assert (outcome.code, outcome.err) == (0, "")
    return outcome.out.split()[-1]


def entries(rag: Rag, *options: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = rag("list", "--json", *options).json["entries"]
    return rows


def test_a_file_is_judged_as_an_import_would_and_nothing_is_written(
    rag: Rag, tmp_path: Path
) -> None:
    """One question takes the text of another one that stays."""
    first, other = added(rag), added(rag, question="¿Quién vino?")
    path = tmp_path / "otras.json"
    row = {**rag("show", first, "--json").json, "query": "¿Quién vino?"}
    stored = entries(rag)
    for query, code in ((row["query"], 2), ("¿Quién se fue?", 0)):
        path.write_text(json.dumps([{**row, "query": query}]), "utf-8")
        judged = rag("validate", path)
        assert judged.code == code
        assert (other in judged.err) is (code == 2)
        assert entries(rag) == stored
        assert rag("import", path).code == code


def test_a_question_from_its_birth_to_its_end(rag: Rag, database: Database) -> None:
    golden_id = added(rag, "--tag", "casa")
    (row,) = entries(rag)
    assert (row["id"], row["tags"], row["difficulty"]) == (golden_id, ["casa"], 2)
    assert row["relevantNoteIds"] == [str(note_id("default", "notes", "gata"))]

    changed = rag("update", golden_id[:6], "--note", "tren", "--note", "viaje", "--tag", "")
    assert changed.code == 0
    after = rag("show", golden_id[:6], "--json").json
    assert after["relevantNoteIds"] == [
        str(note_id("default", "notes", name)) for name in ("tren", "viaje")
    ]
    assert (after["tags"], after["query"], after["createdAt"]) == ([], QUESTION, row["createdAt"])
    assert after["updatedAt"] > row["updatedAt"]
    shown = rag("show", golden_id).out
    for text in (QUESTION, "Por la ventana", "tren", "viaje", "factual"):
        assert text in shown

    assert rag("delete", golden_id[:6], "--yes").code == 0
    assert entries(rag) == []
    with database.transaction() as connection:
        rows = connection.execute("SELECT origin FROM golden_history ORDER BY id").fetchall()
    origins = [f"rag golden {verb}" for verb in ("add", "update", "delete")]
    assert [origin for (origin,) in rows] == origins


def test_a_question_that_still_holds_is_marked_as_reviewed(rag: Rag) -> None:
    golden_id = added(rag)
    (before,) = entries(rag)
    assert (
        rag("update", golden_id)
        .err.strip()
        .endswith(
            _("No change was given. If the question still holds as it is, say so with --reviewed.")
        )
    )
    assert entries(rag) == [before]
    assert rag("update", golden_id, "--reviewed").code == 0
    (after,) = entries(rag)
    assert after.pop("updatedAt") > before.pop("updatedAt")
    assert after == before


def test_without_a_terminal_nothing_is_deleted_unasked(rag: Rag) -> None:
    golden_id = added(rag)
    refused = rag("delete", golden_id, stdin="s\n")
    assert (
        refused.code,
        _("Nothing was deleted. To delete without being asked, add --yes.") in refused.err,
    ) == (2, True)
    assert len(entries(rag)) == 1


def test_an_import_says_what_it_took_away_and_how_to_have_it_back(
    rag: Rag, database: Database, tmp_path: Path
) -> None:
    added(rag)
    first, second = tmp_path / "uno.json", tmp_path / "dos.json"
    rag("export", first)
    added(rag, question="¿Cuándo volvió?")
    rag("export", second)
    unharmed = rag("import", first)
    assert "preguntas nuevas: 0; cambiadas: 0; borradas: 0." in unharmed.out
    replaced = rag("import", first, "--replace")
    assert "preguntas nuevas: 0; cambiadas: 0; borradas: 1." in replaced.out


def test_an_import_leaves_alone_what_a_person_entered(
    rag: Rag, database: Database, tmp_path: Path
) -> None:
    """Without --replace; what the file itself brought follows the file."""
    path = tmp_path / "oro.json"
    fields = {"relevantNotes": ["gata"], "expectedAnswer": "Sí.", "category": "factual"}
    row = fields | {"difficulty": 1}
    path.write_text(json.dumps([row | {"query": "¿A?"}, row | {"query": "¿B?"}]))
    assert rag("import", path).code == 0
    added(rag)
    (changed,) = (entry["id"] for entry in entries(rag) if entry["query"] == "¿A?")
    assert rag("update", changed, "--difficulty", "5").code == 0

    path.write_text(json.dumps([row | {"query": "¿A?"}, row | {"query": "¿C?"}]))
    changes = rag("import", path, "--json").json
    assert (changes["inserted"], changes["deleted"], changes["kept"]) == (1, 1, ["¿A?"])
    kept = {entry["query"]: entry["difficulty"] for entry in entries(rag)}
    assert kept == {"¿A?": 5, "¿C?": 1, QUESTION: 2}

    path.write_text(json.dumps([row | {"query": "¿C?"}]))
    assert rag("import", path).code == 0
    assert {entry["query"] for entry in entries(rag)} == {"¿A?", "¿C?", QUESTION}
    other = tmp_path / "otra" / "oro.json"
    other.parent.mkdir()
    other.write_text(json.dumps([row | {"query": "¿D?"}]))
    assert rag("import", other).code == 0
    assert {entry["query"] for entry in entries(rag)} == {"¿A?", "¿C?", "¿D?", QUESTION}

    assert "borradas: 3." in rag("import", other, "--replace").out
    assert [entry["query"] for entry in entries(rag)] == ["¿D?"]


# --- Places -----------------------------------------------------------------------------------


def test_places_are_given_shown_replaced_and_taken_away(rag: Rag) -> None:
    golden_id = added(rag, "--place", "gata=de gata")
    note = str(note_id("default", "notes", "gata"))
    place = {"note": note, "start": 8, "end": 15, "text": "de gata"}
    assert rag("show", golden_id, "--json").json["places"] == [place]
    assert "gata [8–15] «de gata»" in rag("show", golden_id).out
    assert rag("update", golden_id, "--tag", "casa").code == 0
    assert rag("show", golden_id, "--json").json["places"] == [place]
    assert rag("update", golden_id, "--place", "gata=La nota").code == 0
    assert [each["start"] for each in rag("show", golden_id, "--json").json["places"]] == [0]
    # A place of a note that is no longer relevant goes with it.
    assert rag("update", golden_id, "--note", "tren").code == 0
    assert "places" not in rag("show", golden_id, "--json").json
    assert rag("update", golden_id, "--place", "tren=tren").code == 0
    assert rag("update", golden_id, "--place", "").code == 0
    assert "places" not in rag("show", golden_id, "--json").json
