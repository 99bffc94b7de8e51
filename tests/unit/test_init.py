"""`rag init`: what a folder of notes holds, and the first settings and questions made of it."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from dotenv import dotenv_values
from hypothesis import given
from hypothesis import strategies as st

from rag_assets.webserver import serve
from rag_resources.api.running import free_port
from rag_resources.cli.doctor import lacks_windows
from rag_resources.cli.init import assignment
from rag_resources.core.configuration import parse_retrieval
from rag_resources.core.errors import InvalidParameterError
from rag_resources.core.golden_drafts import (
    LEFT_OUT,
    NoteOpening,
    draft,
    without_drafts,
)
from rag_resources.core.likely import likely_language
from rag_resources.ingestion.survey import survey
from rag_resources.languages.messages import _
from rag_resources.settings import Settings, load_settings
from rag_resources.store.models import ModelContents
from tests.command_line import Outcome, call_rag, isolate

Rag = Callable[..., Outcome]
SPANISH = "Hoy he estado en la huerta de la abuela y no había agua porque se rompió la acequia."


@pytest.fixture
def rag(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Rag:
    """Call `rag` in an empty folder, without a home."""
    isolate(monkeypatch, tmp_path)
    monkeypatch.delenv("RAG_HOME")
    return lambda *arguments: call_rag(monkeypatch, capsys, *arguments)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three good notes, one of them without a date, two bad ones, a document and a picture."""
    notes = tmp_path / "mis notas"
    notes.mkdir()
    (notes / "a.md").write_text(f"---\ntitle: La acequia\nfecha: 2025-01-10\n---\n{SPANISH}\n")
    (notes / "b.md").write_text(f"---\ndate: 2025-03-02\nTitulo: El local\n---\n{SPANISH}\n")
    (notes / "c.txt").write_text(f"{SPANISH}\n")
    (notes / "mala.md").write_text("---\nfecha: ayer\n---\nTexto.\n")
    (notes / "plan.pdf").write_bytes(b"%PDF-1.4")
    (notes / "foto.jpg").write_bytes(b"")
    return notes


def test_it_writes_settings_and_drafts_and_starts_nothing(
    rag: Rag, folder: Path, tmp_path: Path
) -> None:
    done = rag("init", folder)
    assert done.code == 0, done.err
    assert {path.name for path in tmp_path.iterdir()} == {folder.name, ".env", "preguntas.json"}
    settings = load_settings()
    assert settings.notes_source == folder
    assert settings.golden_source == tmp_path / "preguntas.json"
    assert settings.first_month == "2025-01"
    rows = json.loads((tmp_path / "preguntas.json").read_text())["entries"]
    assert sorted(row["relevantNotes"][0] for row in rows) == ["a", "b", "c"]
    for said in (
        "fecha: «ayer» no es una fecha",
        ".pdf (1)",
        _("Next steps: answer the questions in {path}, and “rag run”.").format(
            path="preguntas.json"
        ),
    ):
        assert said in done.out


def test_a_note_without_date_is_named_with_the_date_that_it_gets(rag: Rag, folder: Path) -> None:
    done = rag("init", folder, "--dry-run")
    modified = datetime.fromtimestamp((folder / "c.txt").stat().st_mtime, UTC)
    # As `rag notes` and `rag run` name it.
    assert ["c", f"{modified:%Y-%m-%d}"] in [line.split() for line in done.out.splitlines()]
    [undated] = rag("init", folder, "--dry-run", "--json").json["undated"]
    assert (undated["location"], undated["createdAt"]) == ("c.txt", modified.isoformat())


def test_a_survey_of_a_bad_folder_fits_on_a_screen(rag: Rag, folder: Path) -> None:
    for number in range(60):
        (folder / f"x{number}.md").write_text("---\nfecha: ayer\n---\nTexto.\n")
        (folder / f"y{number}.md").write_text(f"{SPANISH}\n")
    done = rag("init", folder, "--dry-run")
    assert len(done.out.splitlines()) <= 40
    assert all(
        said in done.out for said in ("(61)", "Rechazadas", _("To mend first (all of it: --json):"))
    )


def test_it_replaces_nothing_unasked(rag: Rag, folder: Path, tmp_path: Path) -> None:
    """It says what differs; with --force the former file stays beside the new one."""
    env = tmp_path / ".env"
    env.write_text("RAG_HOME=mi-estado\nFIRST_MONTH=2020-01\n")
    done = rag("init", folder)
    assert done.code == 0
    assert env.read_text() == "RAG_HOME=mi-estado\nFIRST_MONTH=2020-01\n"
    assert "FIRST_MONTH=2025-01" in done.err
    assert "RAG_HOME" not in done.err
    assert rag("init", folder, "--force").code == 0
    assert dotenv_values(env)["FIRST_MONTH"] == "2025-01"
    assert (tmp_path / ".env.anterior").read_text().endswith("2020-01\n")


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0\r\n"), max_size=30))
def test_any_path_can_be_written_into_the_file(value: str) -> None:
    from io import StringIO

    found = dotenv_values(stream=StringIO(assignment("NOTES_SOURCE", value)), interpolate=False)
    assert found == {"NOTES_SOURCE": value}


def test_a_draft_counts_once_it_has_an_answer() -> None:
    """Until then it is left out; afterwards its tag is."""
    note = NoteOpening("a", "La acequia", SPANISH, datetime(2025, 1, 1, tzinfo=UTC))
    empty, answered = draft(note), {**draft(note), "expectedAnswer": "Se rompió."}
    rows, drafts = without_drafts({"entries": [empty, answered, {"query": "otra"}, 7]})
    assert drafts == [empty["query"]]
    assert rows == [LEFT_OUT, {**answered, "tags": []}, {"query": "otra"}, 7]


def test_the_language_of_a_note_is_told_by_its_small_words() -> None:
    assert likely_language(SPANISH) == "es"
    assert likely_language("The dog was in the garden because it was too hot for him.") == "en"
    assert likely_language("Il n'y avait pas de pain dans la maison et nous sommes sortis.") == "fr"
    assert likely_language("Lorem 1234") == ""
    shared = (
        "Se pondrán placas solares en la azotea si llega la subvención de la Generalitat antes de "
        "marzo. Doña Casilda pedirá tres presupuestos."
    )
    assert likely_language(shared) == "es"
    assert likely_language("Le tableau a été réparé à Paris, où il était déjà très abîmé.") == "fr"


def test_a_survey_reads_as_an_ingestion_does(folder: Path) -> None:
    (folder / "Templates").mkdir()
    (folder / ".trash" / "2025").mkdir(parents=True)
    (folder / "Templates" / "dia.md").write_text("# {{date}}")
    (folder / ".trash" / "2025" / "vieja.md").write_text("No.")
    found = survey(folder)
    assert (found.notes, found.rejected_count) == (3, 1)
    assert found.read == {".md": 3, ".txt": 1}
    assert found.other == {".pdf": 1, ".jpg": 1}
    assert found.dates == {"field": 2, "file_modified": 1}
    assert found.left_out == {"template": 1, "trash": 1}


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("EMBEDDING_MODELS", "e5_smal", "EMBEDDING_MODELS: «e5_smal»"),
        ("NOTE_EMBEDDING_MODEL", "xx", "NOTE_EMBEDDING_MODEL: «xx»"),
        ("LLM_MODEL", "llama3", "«llama3»"),
        ("API_HOST", "192.0.2.1", "API_HOST"),
        ("UI_HOST", "no.hay.invalid", "UI_HOST"),
        ("DOCUMENTS_PATTERN", "{tipo_{año}.pdf", "{tipo_{año}.pdf"),
        ("DOCUMENTS_PATTERN", "{tipo}_año}.pdf", "{tipo}_año}.pdf"),
    ],
)
def test_doctor_finds_what_other_commands_would_refuse(
    rag: Rag, monkeypatch: pytest.MonkeyPatch, name: str, value: str, said: str
) -> None:
    monkeypatch.setenv(name, value)
    done = rag("doctor")
    assert done.code == 1
    assert said in done.out


def test_the_doctor_sees_that_what_serves_lacks_its_windows() -> None:
    raw = {"model": "m", "retrievers": {"windows": {"weight": 1.0}}}
    config = parse_retrieval(raw, origin="una")
    assert lacks_windows(config, [ModelContents("m"), ModelContents("otro", vectors={"window": 3})])
    assert not lacks_windows(config, [ModelContents("m", vectors={"window": 3})])
    by_words = parse_retrieval({"model": "m", "strategy": "fulltext"}, origin="una")
    assert not lacks_windows(by_words, [ModelContents("m")])
    assert not lacks_windows(None, [ModelContents("m")])


@pytest.mark.parametrize(
    "start", [lambda settings: free_port(settings), lambda settings: serve(settings)]
)
def test_an_address_of_another_machine_is_not_a_port_that_is_taken(
    start: Callable[[Settings], object], tmp_path: Path
) -> None:
    """192.0.2.0/24 is for documentation; no machine has it."""
    there = {"api_host": "192.0.2.1", "ui_host": "192.0.2.1"}
    settings = Settings(rag_home=tmp_path, api_port=8123, ui_port=3123, **there)
    with pytest.raises(InvalidParameterError, match=r"no tiene la dirección «192\.0\.2\.1»"):
        start(settings)
