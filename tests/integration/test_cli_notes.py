"""`rag notes …` against a real database, and what deletion does to searching and to questions."""

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

import psycopg
import pytest

from rag_resources.application import open_application
from rag_resources.database.pool import Database
from rag_resources.indexing.chunk import no_progress
from rag_resources.languages.messages import _
from rag_resources.settings import Settings, load_settings
from tests.command_line import Outcome, call_rag
from tests.corpus import ALWAYS, Corpus, Draft
from tests.waiting import wait_until

RAG = (sys.executable, "-m", "rag_resources.cli")
ROOT = Path(__file__).parents[2]
TEXTS = {
    "gata": "La gata Nube se escapó por la ventana.",
    "furgo": "El taller pide 415 euros por la furgoneta.",
    "huerto": "Planté habas y ajos en el bancal.",
}
QUESTION = "¿Por dónde se escapó la gata?"


Rag = Callable[..., Outcome]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "notas"
    folder.mkdir()
    for number, (name, text) in enumerate(TEXTS.items(), start=1):
        header = f"---\nid: {name}\ntitle: Nota de {name}\ncreated_at: 2025-01-0{number}\n---\n"
        (folder / f"{name}.md").write_text(f"{header}{text}\n", "utf-8")
    return folder


@pytest.fixture
def environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, database_url: str
) -> dict[str, str]:
    """A home of its own on an empty database."""
    monkeypatch.chdir(tmp_path)
    for name in Settings.model_fields:
        monkeypatch.delenv(name.upper(), raising=False)
    own = {
        "RAG_HOME": str(tmp_path / "home"),
        "DATABASE_URL": database_url,
        "GOLDEN_SOURCE": "",
        "COLUMNS": "200",
    }
    for name, value in own.items():
        monkeypatch.setenv(name, value)
    return own


@pytest.fixture
def rag(
    monkeypatch: pytest.MonkeyPatch,
    environment: dict[str, str],
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> Rag:
    """Call `rag` on a database with the notes of the folder."""

    def call(*arguments: str | Path, stdin: str | TextIO = "") -> Outcome:
        return call_rag(monkeypatch, capsys, *arguments, stdin=stdin)

    assert environment
    assert call("ingest", folder).code == 0
    return call


class Terminal(io.StringIO):
    """A terminal on which something is typed."""

    def isatty(self) -> bool:
        return True


def names(rag: Rag, *options: str) -> list[str]:
    return [row["externalId"] for row in rag("notes", "list", "--json", *options).json["notes"]]


def row(database: Database, external_id: str) -> dict[str, Any] | None:
    """A note as it is stored, without what indexing writes."""
    with database.transaction() as connection:
        found = connection.execute(
            "SELECT to_jsonb(n) - '{chunked_at,chunking_hash}'::text[] AS note FROM notes n"
            " WHERE external_id = %s",
            (external_id,),
        ).fetchone()
    return found.note if found else None


def test_a_note_is_deleted_stays_away_and_is_restored(
    rag: Rag, folder: Path, database: Database
) -> None:
    """With the same id, dates and text; the source says nothing new."""
    before = row(database, "gata")
    assert before
    deleted = rag("notes", "delete", "gata", "--yes", "--reason", "era un secreto")
    assert (deleted.code, deleted.err) == (0, "")
    assert "Notas borradas: 1." in deleted.out
    assert "rag notes restore" in deleted.out
    assert names(rag) == ["huerto", "furgo"]
    assert names(rag, "--deleted") == ["gata"]
    refused = rag("retrieve", "gata", "--config", "fulltext", "--filter", "note=gata")
    assert (refused.code, refused.out) == (2, "")
    assert "«gata» está borrada" in refused.err

    again = rag("ingest", folder, "--json").json
    assert (again["inserted"], again["unchanged"], again["leftOut"]) == (0, 2, 1)
    (left_out,) = again["deletedNotes"]
    assert left_out["externalId"] == "gata"
    assert "Motivo: era un secreto" in left_out["reason"]
    assert row(database, "gata") is None

    restored = rag("notes", "restore", "gata")
    assert restored.code == 0
    assert "«gata» está otra vez entre las notas." in restored.out
    (found, *_) = rag("retrieve", "gata", "--config", "fulltext", "--json").json["results"]
    assert found["noteId"] == rag("notes", "show", "gata", "--json").json["id"]
    assert row(database, "gata") == before
    assert names(rag, "--deleted") == []
    assert rag("ingest", folder, "--json").json["unchanged"] == 3


def index_all() -> None:
    """What an indexing run makes, of one model."""
    with open_application(load_settings()) as application:
        indexing, model = application.indexing, application.serving.now().config.model
        indexing.register_note_model()
        indexing.embed_notes(ALWAYS)
        indexing.chunk(ALWAYS, progress=no_progress)
        indexing.register(model)
        indexing.embed(model, ALWAYS, progress=no_progress)
        indexing.refresh_statistics(rewritten=len(TEXTS))


def test_a_restored_note_is_found_as_before_at_once(rag: Rag) -> None:
    """By its meaning too: it is indexed like the other notes of its month."""
    index_all()
    before = rag("retrieve", QUESTION, "--config", "hybrid_windows", "--json").json["results"]
    assert rag("notes", "delete", "gata", "--yes").code == 0
    restored = rag("notes", "restore", "gata")
    assert (restored.code, restored.err) == (0, "")
    assert _("Indexed again: it is found as before the deletion.") in restored.out
    after = rag("retrieve", QUESTION, "--config", "hybrid_windows", "--json").json["results"]
    of_all = [[(r["noteId"], r["content"], r["score"]) for r in found] for found in (before, after)]
    assert of_all[0] == of_all[1]
    with open_application(load_settings()) as application:
        assert application.serving.now().config.model not in application.indexing.pending()
        assert application.indexing.notes_left_to_embed(ALWAYS) == 0
    assert rag("notes", "delete", "gata", "--yes").code == 0
    assert rag("notes", "restore", "gata", "--json").json == {
        "notes": [{"externalId": "gata", "outcome": "restored"}],
        "indexed": True,
    }


def test_deleting_and_restoring_twice_says_so(rag: Rag) -> None:
    assert rag("notes", "restore", "gata").out == "«gata»: no hay nada que hacer.\n"
    rag("notes", "delete", "gata", "gata", "--yes")
    again = rag("notes", "delete", "gata", "--yes")
    assert again.code == 0
    assert "«gata»: no hay nada que hacer." in again.err
    assert "Notas borradas: 0." in again.out
    assert rag("notes", "restore", "gata", "gata").code == 0
    assert len(names(rag)) == 3


def test_without_a_yes_nothing_is_deleted(rag: Rag) -> None:
    refused = rag("notes", "delete", "gata")
    assert refused.code == 2
    assert "--yes" in refused.err
    assert rag("notes", "delete", "gata", stdin=Terminal("n\n")).code == 2
    assert len(names(rag)) == 3
    asked = rag("notes", "delete", "gata", stdin=Terminal("s\n"))
    assert asked.code == 0
    assert "gata  Nota de gata" in asked.out
    assert len(names(rag)) == 2


def test_a_restored_note_does_not_replace_a_newer_one(rag: Rag, folder: Path) -> None:
    """One of several cannot be restored: none is."""
    rag("notes", "delete", "gata", "furgo", "--yes")
    path = folder / "gata.md"
    path.write_text(path.read_text("utf-8").replace("ventana", "puerta"), "utf-8")
    assert rag("ingest", folder, "--json").json["inserted"] == 1

    refused = rag("notes", "restore", "furgo", "gata")
    assert refused.code == 2
    assert (
        _(
            "The note “{name}” is there again, with another content; nothing was changed. This "
            "command does not bring the deleted version back: write its text into the file of the "
            "note."
        ).format(name="gata")
        in refused.err
    )
    assert names(rag) == ["huerto", "gata"]

    rag("notes", "delete", "gata", "--yes")
    assert "puerta" in rag("notes", "show", "gata").out
    rag("notes", "restore", "gata")
    assert "puerta" in rag("notes", "show", "gata", "--json").json["content"]


def ask(rag: Rag) -> None:
    added = rag(
        *("golden", "add", QUESTION, "--note", "gata", "--answer", "Por la ventana"),
        *("--category", "factual", "--difficulty", "2"),
    )
    assert added.code == 0, added.err


def test_a_file_that_names_a_deleted_note_is_imported_without_that_question(
    rag: Rag, tmp_path: Path
) -> None:
    """It failed as a whole: the next run of whoever deleted a note was red."""
    ask(rag)
    rag("golden", "export", "preguntas.json")
    path = tmp_path / "preguntas.json"
    file = json.loads(path.read_text("utf-8"))
    other = {**file["entries"][0], "query": "¿Qué planté?", "relevantNotes": ["huerto"]}
    del other["id"], other["relevantNoteIds"]
    new = {**other, "query": "¿Y la gata?", "relevantNotes": ["gata", "huerto"]}
    file["entries"] += [other, new]
    path.write_text(json.dumps(file), "utf-8")
    rag("notes", "delete", "gata", "--yes")

    imported = rag("golden", "import", path, "--json")

    assert imported.code == 0, imported.err
    assert imported.json["orphaned"] == [QUESTION, "¿Y la gata?"]
    assert QUESTION in imported.err
    stored = [entry["query"] for entry in rag("golden", "list", "--json").json["entries"]]
    assert sorted(stored) == sorted([QUESTION, "¿Qué planté?"])
    assert rag("golden", "validate", path, "--json").json["orphaned"] == [QUESTION, "¿Y la gata?"]


def test_a_question_that_a_person_deleted_does_not_come_back_from_the_file(
    rag: Rag, tmp_path: Path
) -> None:
    """Until the person enters it again, or lets the file rule."""
    ask(rag)
    path = tmp_path / "preguntas.json"
    rag("golden", "export", path)
    (entry,) = rag("golden", "list", "--json").json["entries"]
    rag("golden", "delete", entry["id"], "--yes")
    for change in ({}, {"id": None}, {"expectedAnswer": "Por la puerta"}):
        path.write_text(json.dumps([{**entry, **change}]), "utf-8")
        assert rag("golden", "import", path, "--json").json["leftOut"] == [QUESTION]
        assert rag("golden", "list", "--json").json["entries"] == []

    rag("golden", "import", path, "--replace")
    assert len(rag("golden", "list", "--json").json["entries"]) == 1


def test_a_deleted_note_leaves_every_search_at_once(database: Database) -> None:
    """By words, by vectors, as chunks and as a whole note; its words count no more."""
    from rag_resources.ingestion.deletion import delete_notes, restore_notes

    corpus = Corpus(database)
    texts = ["Secretísimo fue lo del sótano.", "Lo de la azotea.", "Un sótano nuevo."]
    drafts = [Draft(texts[0]), Draft(texts[1]), Draft(texts[2], state="new")]
    chunked, kept, whole = corpus.fill(drafts)

    def found() -> set[Any]:
        lists = corpus.lists("sótano secretísimo").values()
        return {note for ranked in lists for _, note, _ in ranked}

    assert {chunked, whole} <= found()
    assert set(delete_notes(database, [chunked, whole, chunked], reason="")) == {chunked, whole}
    assert found() <= {kept}
    for table in ("chunks", "vectors_openai_hash_note", "pending_vectors"):
        assert {each.note_id for each in corpus.fetch(f"SELECT note_id FROM {table}")} <= {kept}
    orphans = "SELECT FROM vectors WHERE chunk_id NOT IN (SELECT id FROM chunks)"
    assert corpus.fetch(orphans) == []
    words = {each.lexeme for each in corpus.fetch("SELECT lexeme FROM lexeme_statistics")}
    assert not {word for word in words if word.startswith("secret")}

    restore_notes(database, [str(chunked)], tenant="ana")
    assert chunked in found()


def test_a_deletion_that_is_killed_leaves_every_note_whole(
    rag: Rag, folder: Path, environment: dict[str, str], database: Database, database_url: str
) -> None:
    """SIGKILL in the middle of deleting several: none is gone, and a second call deletes all."""
    before = {name: row(database, name) for name in TEXTS}
    with psycopg.connect(database_url) as blocker:
        blocker.execute("SELECT pg_advisory_lock(1)")
        blocker.execute(
            "CREATE FUNCTION wait_for_test() RETURNS trigger LANGUAGE plpgsql AS"
            " $$BEGIN PERFORM pg_advisory_xact_lock(1); RETURN old; END$$"
        )
        blocker.execute(
            "CREATE TRIGGER waiting BEFORE DELETE ON notes FOR EACH ROW"
            " WHEN (old.external_id = 'furgo') EXECUTE FUNCTION wait_for_test()"
        )
        blocker.commit()
        process = subprocess.Popen(
            [*RAG, "notes", "delete", *TEXTS, "--yes"],
            cwd=ROOT,
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        waiting = "SELECT FROM pg_locks WHERE locktype = 'advisory' AND objid = 1 AND NOT granted"
        wait_until(lambda: blocker.execute(waiting).fetchall())
        process.send_signal(signal.SIGKILL)
        process.communicate()
        blocker.execute("SELECT pg_advisory_unlock(1)")
        blocker.execute("DROP TRIGGER waiting ON notes")
        blocker.commit()
    assert {name: row(database, name) for name in TEXTS} == before
    assert names(rag, "--deleted") == []

    assert rag("notes", "delete", *TEXTS, "--yes").code == 0
    assert names(rag) == []
    assert rag("notes", "restore", *TEXTS).code == 0
    assert {name: row(database, name) for name in TEXTS} == before
    assert rag("ingest", folder, "--json").json["unchanged"] == len(TEXTS)


def test_the_vector_that_another_program_keeps_with_a_note_comes_back(
    rag: Rag, database: Database
) -> None:
    """Of an adopted table; columns that the table got since the deletion have their default."""
    with database.transaction() as connection:
        connection.execute("ALTER TABLE notes ADD COLUMN embedding vector(3)")
        connection.execute("UPDATE notes SET embedding = '[0.1,0.25,-3e-08]', tags = '{a,\"b,c\"}'")
    before = row(database, "gata")
    rag("notes", "delete", "gata", "--yes")
    with database.transaction() as connection:
        connection.execute("ALTER TABLE notes ADD COLUMN mood text NOT NULL DEFAULT 'bien'")
    rag("notes", "restore", "gata")
    assert row(database, "gata") == {**(before or {}), "mood": "bien"}
