"""Evaluations, questions, golden entries and notes as pandas frames, and frames as files."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import pytest

from rag_resources.application import Application
from rag_resources.core import frames
from rag_resources.core.configuration import NamedConfiguration, RetrievalConfig
from rag_resources.core.errors import InvalidGoldenDatasetError, InvalidSourceError
from rag_resources.core.types import NoteRecord
from rag_resources.database.pool import Database
from rag_resources.ingestion.ingest import ingest
from rag_resources.settings import load_settings
from tests.command_line import Outcome, call_rag, isolate

WORDS = NamedConfiguration(
    name="palabras", description="x", retrieval=RetrievalConfig(strategy="fulltext")
)
QUESTIONS = pd.DataFrame(
    {
        "query": ["¿Qué dice la gata?", "¿Qué dice la furgo o el tren?"],
        "relevant_notes": [["gata"], ["furgo", "tren"]],
        "expected_answer": ["Miau", "Nada"],
        "category": ["factual", "multi-part"],
        "difficulty": [1, 3],
        "tags": [["casa"], []],
    }
)


@pytest.fixture
def application(
    database: Database, database_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Application:
    """Over three notes."""
    isolate(monkeypatch, tmp_path, DATABASE_URL=database_url, GOLDEN_SOURCE="")
    written = [
        NoteRecord(name, name.title(), f"La nota de {name}.", datetime(2025, 1, 1, tzinfo=UTC))
        for name in ("gata", "furgo", "tren")
    ]
    ingest(database, written, tenant="default", source="notes")
    return Application(load_settings(), database)


def test_questions_go_into_the_set_from_a_frame_and_come_back(application: Application) -> None:
    application.golden.import_frame(QUESTIONS)
    found = application.golden.frame()
    assert dict(found.dtypes.astype(str)) == {**frames.GOLDEN}
    assert sorted(found["query"]) == sorted(QUESTIONS["query"])
    assert found.set_index("query")["relevant_note_ids"].str.len().to_dict() == {
        "¿Qué dice la gata?": 1,
        "¿Qué dice la furgo o el tren?": 2,
    }
    again = application.golden.import_frame(found, replace=True)
    assert not again.changes


def test_evaluations_and_notes_are_frames_with_stated_dtypes(application: Application) -> None:
    assert len(application.evaluations.frame()) == 0
    application.golden.import_frame(QUESTIONS)
    application.evaluations.run(WORDS)
    made = application.evaluations.run(WORDS)
    evaluations = application.evaluations.frame("palabras")
    assert dict(evaluations.dtypes.astype(str)) == {**frames.EVALUATIONS}
    assert len(evaluations) == 2
    assert evaluations["evaluation_id"][0] == str(made.evaluation_id), "the newest first"
    questions = application.evaluations.questions(evaluations["evaluation_id"][1])
    assert dict(questions.dtypes.astype(str)) == {**frames.QUESTIONS}
    means = questions.groupby("configuration")[["mrr", "hit_rate_at_10"]].mean()
    assert means.loc["palabras", "mrr"] == pytest.approx(evaluations["mrr"][1])
    assert len(application.evaluations.questions()) == 2, "of the newest evaluation only"
    notes = application.notes.frame()
    assert dict(notes.dtypes.astype(str)) == {**frames.NOTES}
    assert set(notes["external_id"]) == {"gata", "furgo", "tren"}


@pytest.fixture
def rag(
    application: Application, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Outcome]:
    """Call `rag` on that database."""
    return lambda *arguments: call_rag(monkeypatch, capsys, *arguments)


@pytest.mark.parametrize("name", ["preguntas.csv", "preguntas.parquet"])
def test_a_set_survives_export_and_import_as_a_table(
    rag: Callable[..., Outcome], application: Application, tmp_path: Path, name: str
) -> None:
    """Property 33, for tables."""
    application.golden.import_frame(QUESTIONS)
    before = application.golden.entries()
    assert rag("golden", "export", tmp_path / name).code == 0
    application.golden.delete(before, origin="test")
    assert rag("golden", "import", tmp_path / name, "--replace").code == 0
    assert application.golden.entries() == before


def test_a_table_of_a_spreadsheet_is_imported_or_every_problem_named(
    rag: Callable[..., Outcome], tmp_path: Path
) -> None:
    path = tmp_path / "hoja.csv"
    head = "query,relevantNotes,expectedAnswer,category,difficulty,tags\n"
    path.write_text(head + "¿Quién maúlla?,gata,La gata,factual,2,\n", "utf-8-sig")
    assert rag("golden", "import", path).code == 0
    path.write_text(head + "¿Quién ladra?,perro,Nadie,factual,nueve,\n", "utf-8")
    refused = rag("golden", "import", path)
    assert refused.code == 2
    assert "perro" in refused.err
    assert "difficulty" in refused.err
    for name, content in (("rota.parquet", b"PAR1"), ("vacia.csv", b"")):
        (tmp_path / name).write_bytes(content)
        assert rag("golden", "import", tmp_path / name).code == 2


def test_an_evaluation_is_written_as_a_table(
    rag: Callable[..., Outcome], application: Application, tmp_path: Path
) -> None:
    application.golden.import_frame(QUESTIONS)
    for option, read in (("--csv", pd.read_csv), ("--parquet", pd.read_parquet)):
        path = tmp_path / f"medida.{option[2:]}"
        assert rag("evaluate", "fulltext", "--no-store", option, path).code == 0
        assert set(read(path)["query"]) == set(QUESTIONS["query"])
        assert list(read(path).columns) == list(frames.QUESTIONS)


def test_what_is_no_table_changes_nothing(application: Application) -> None:
    with pytest.raises(InvalidGoldenDatasetError):
        application.golden.import_frame(pd.DataFrame({"query": [3.5]}))
    with pytest.raises(InvalidSourceError):
        application.golden.import_file(Path("no-hay.csv"))
    assert application.golden.entries() == []
