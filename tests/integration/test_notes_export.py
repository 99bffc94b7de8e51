"""`rag notes export` and `rag ingest` of its file: from one database to an empty one."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest

from rag_resources.database.migrations import migrate
from rag_resources.database.pool import Database
from tests.command_line import Outcome, call_rag, isolate
from tests.integration.test_cli import NOTES, QUESTIONS, index, write_golden, write_notes

LEGACY_ID = UUID(int=7, version=4)
CONFIGURATION = "propia"

Rag = Callable[..., Outcome]
Rows = list[tuple[Any, ...]]


@pytest.fixture
def rag(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Rag:
    """Call `rag` on a database, by its URL."""
    isolate(monkeypatch, tmp_path)

    def call(url: str, *arguments: str | Path) -> Outcome:
        monkeypatch.setenv("DATABASE_URL", url)
        return call_rag(monkeypatch, capsys, *arguments)

    return call


@pytest.fixture
def old(rag: Rag, database_url: str, tmp_path: Path) -> str:
    """URL of a database with notes of two sources, one of no source, and deletions."""
    write_notes(tmp_path / "notas")
    assert rag(database_url, "ingest", "notas").code == 0
    (tmp_path / "otras.jsonl").write_text(
        '{"id": "acta", "content": "Vera leyó el acta.", "created_at": "2025-04-01",'
        ' "expires_at": "2199-01-01", "lugar": {"sala": 3}}\n'
        '{"id": "borrador", "content": "Sin interés.", "created_at": "2025-04-02"}\n',
        "utf-8",
    )
    done = rag(database_url, "ingest", "otras.jsonl", "--source-name", "otras", "--yes")
    assert done.code == 0, done.err
    execute(
        database_url,
        "INSERT INTO notes (id, content, created_at) VALUES (%s, '', '2020-02-29 23:59:59.5+00')",
        LEGACY_ID,
    )
    assert rag(database_url, "notes", "delete", "borrador", "--reason", "sobra", "--yes").code == 0
    execute(
        database_url,
        "INSERT INTO deleted_documents (tenant_id, file_sha256, source, address)"
        " VALUES ('default', sha256('a'), 'documents', 'plan.pdf')",
    )
    return database_url


@pytest.fixture
def new(create_database: Callable[..., str]) -> str:
    """URL of an empty database."""
    url = create_database()
    migrate(url)
    return url


def execute(url: str, statement: str, *parameters: object) -> Rows:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement, parameters)
        return cursor.fetchall() if cursor.description else []


def contents(url: str) -> dict[str, Rows]:
    """What a database has of notes and deletions."""
    return {
        table: execute(url, f"SELECT to_jsonb(t) - 'chunked_at' FROM {table} AS t ORDER BY 1")
        for table in ("notes", "tombstones", "deleted_documents")
    }


def test_a_new_database_has_the_same_notes_and_deletions(rag: Rag, old: str, new: str) -> None:
    """Ids, sources, dates, expiry, tags and reasons; reading the file again changes nothing."""
    assert rag(old, "notes", "export", "todo.jsonl", "--json").json == {
        "path": "todo.jsonl",
        "notes": len(NOTES) + 2,
        "deletions": 2,
    }
    first = rag(new, "ingest", "todo.jsonl", "--json").json
    assert first == {"notes": 7, "deletions": 2, "present": 0, "rejected": 0, "rejections": []}
    assert contents(new) == contents(old)
    again = rag(new, "ingest", "todo.jsonl", "--json").json
    assert (again["notes"], again["deletions"], again["present"]) == (0, 0, 9)
    assert contents(new) == contents(old)


def test_what_was_deleted_stays_deleted_and_can_be_restored(rag: Rag, old: str, new: str) -> None:
    rag(old, "notes", "export", "todo.jsonl")
    rag(new, "ingest", "todo.jsonl")
    assert rag(new, "ingest", "otras.jsonl", "--source-name", "otras").code == 0
    names = {row["externalId"] for row in rag(new, "notes", "list", "--json").json["notes"]}
    assert names == {*NOTES, "acta", str(LEGACY_ID)}
    assert rag(new, "notes", "restore", "borrador").code == 0
    (row,) = execute(new, "SELECT content, source FROM notes WHERE external_id = 'borrador'")
    assert row == ("Sin interés.", "otras")


def test_bad_lines_are_named_by_file_line_and_field(
    rag: Rag, old: str, new: str, tmp_path: Path
) -> None:
    """The good ones go in."""
    rag(old, "notes", "export", "todo.jsonl")
    header, *lines = (tmp_path / "todo.jsonl").read_text("utf-8").splitlines()
    notes = [json.loads(line)["note"] for line in lines if line.startswith('{"note"')]
    bad = [
        '{"note": {"id": ',
        json.dumps({"note": notes[0] | {"createdAt": "ayer"}}),
        json.dumps({"note": {key: notes[0][key] for key in notes[0] if key != "content"}}),
        json.dumps({"note": notes[0] | {"tags": "a"}}),
        json.dumps({"nota": notes[0]}),
        json.dumps({"note": notes[0] | {"title": "\ud800"}}),
        "[]",
    ]
    (tmp_path / "malo.jsonl").write_text("\n".join([header, *bad, *lines]), "utf-8")
    done = rag(new, "ingest", "malo.jsonl", "--json").json
    assert (done["notes"], done["rejected"]) == (7, len(bad))
    told = {each["location"]: each["reason"] for each in done["rejections"]}
    assert list(told) == [f"malo.jsonl:{number}" for number in range(2, 2 + len(bad))]
    fields = ("", "createdAt: ", "content: ", "tags: ", "nota: ", "title: ", "")
    for reason, field in zip(told.values(), fields, strict=True):
        assert reason.startswith(field)


def test_questions_and_what_serves_are_the_same_afterwards(
    rag: Rag, old: str, new: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The documented way: export, ingest, import the questions, index, evaluate, promote."""
    write_golden(tmp_path / "preguntas.json")
    (tmp_path / "suyas").mkdir()
    (tmp_path / "suyas" / f"{CONFIGURATION}.yaml").write_text(
        f"name: {CONFIGURATION}\ndescription: Rápida.\nrole: candidate\n"
        "retrieval: {strategy: hybrid, model: use_multilingual}\n",
        "utf-8",
    )
    monkeypatch.setenv("RAG_CONFIGURATIONS", "suyas")
    for url, questions in ((old, "preguntas.json"), (new, "nuevas.json")):
        if url == new:
            rag(old, "notes", "export", "todo.jsonl")
            rag(old, "golden", "export", "nuevas.json")
            rag(new, "ingest", "todo.jsonl")
        assert rag(url, "golden", "import", questions).code == 0
        with Database(url) as database:
            index(database)
        for name in ("baseline", CONFIGURATION):
            done = rag(url, "evaluate", name)
            assert done.code == 0, done.err
        done = rag(url, "promote", CONFIGURATION)
        assert done.code == 0, done.err
    measured = "'{evaluation_id,latency_ms,stage_latencies,promoted_at}'::text[]"
    for table, count in (
        ("golden_dataset", len(QUESTIONS)),
        ("evaluation_queries", 2 * len(QUESTIONS)),
        ("promotions", 1),
    ):
        before, after = (
            execute(url, f"SELECT to_jsonb(t) - {measured} FROM {table} AS t ORDER BY 1")
            for url in (old, new)
        )
        assert len(before) == count
        assert after == before
