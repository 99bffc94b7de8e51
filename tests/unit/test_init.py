"""`rag init`: what a folder of notes holds, and the first settings and questions made of it."""

import json
import re
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from dotenv import dotenv_values
from hypothesis import given
from hypothesis import strategies as st

from rag_assets.webserver import serve
from rag_resources.api.running import free_port
from rag_resources.cli import launch
from rag_resources.cli.doctor import lacks_windows
from rag_resources.cli.env_file import assignment
from rag_resources.core.configuration import parse_retrieval
from rag_resources.core.errors import InvalidParameterError
from rag_resources.core.golden_drafts import (
    LEFT_OUT,
    NoteOpening,
    choose_notes,
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
        _(
            "Next step: “rag run”. It evaluates, too, if there are answered questions; you can "
            "answer them before or later."
        ),
    ):
        assert said in done.out


def test_a_note_without_date_is_named_with_the_date_that_it_gets(rag: Rag, folder: Path) -> None:
    done = rag("init", folder, "--dry-run")
    modified = datetime.fromtimestamp((folder / "c.txt").stat().st_mtime, UTC)
    given = _("{date:%Y-%m-%d}, when the file was changed").format(date=modified)
    (row,) = (line.split() for line in done.out.splitlines() if given in line)
    assert row[0] == "c"  # As `rag notes` and `rag run` name it.
    [undated] = rag("init", folder, "--dry-run", "--json").json["undated"]
    assert (undated["location"], undated["createdAt"]) == ("c.txt", modified.isoformat())


def test_a_record_without_date_is_named_with_its_line(rag: Rag, folder: Path) -> None:
    """Its identifier is a hash if the record has none."""
    (folder / "otras.jsonl").write_text('{"text": "Vino Marta."}\n{"text": "Llueve."}\n')
    done = rag("init", folder, "--dry-run")
    assert "(otras.jsonl:1)" in done.out
    assert "(otras.jsonl:2)" in done.out


def test_a_date_in_the_name_of_the_file_is_the_date_of_the_note(rag: Rag, folder: Path) -> None:
    (folder / "c.txt").rename(folder / "2025-03-14 c.txt")
    assert rag("init", folder, "--dry-run", "--json").json["undated"] == []


def test_a_note_from_long_before_the_others_is_told_because_it_costs_time(
    rag: Rag, folder: Path
) -> None:
    assert "--first-month" not in rag("init", folder, "--dry-run").err
    (folder / "1998-03-06-repertorio.md").write_text("El coro estrena el motete.", "utf-8")
    told = _(
        "Between {before} and {after} there is no note, and each run goes over those months too, "
        "so it takes longer. With “--first-month {after}” it does not; the earlier notes "
        "({count}) are stored and found, but whole."
    ).format(before="1998-03", after="2025-01", count=1)
    assert told in rag("init", folder, "--dry-run").err


def test_a_note_of_the_future_is_told_without_advice_that_is_refused(
    rag: Rag, folder: Path
) -> None:
    (folder / "2099-03-06-errata.md").write_text("El coro estrena el motete.", "utf-8")
    told = rag("init", folder, "--dry-run").err
    assert (
        _(
            "Notes with a date in the future: {count}. No run processes them until their month "
            "comes: they are found, but whole. If the date is wrong, correct it in its file."
        ).format(count=1)
        in told
    )
    assert "--first-month" not in told


def test_a_field_that_another_one_of_the_record_stands_for_is_told(rag: Rag, folder: Path) -> None:
    record = {"id": "k", "texto": "a", "content": "b", "fecha": "2025-01-01"}
    (folder / "otras.jsonl").write_text(json.dumps(record), "utf-8")
    told = rag("init", folder, "--dry-run").err
    assert (
        _(
            "The field “{name}” becomes metadata, because the same record has another one with "
            "the same meaning."
        ).format(name="texto")
        in told
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


def test_notes_get_a_home_of_their_own_beside_the_sample(
    rag: Rag, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / ".rag").mkdir()
    assert rag("init", folder).code == 0
    assert dotenv_values(tmp_path / ".env")["RAG_HOME"] == ".rag-notas"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nada"], "No existe la carpeta"),
        (["mis notas", "--first-month", "2025-13"], "2025-13"),
        (["mis notas", "--questions", "-1"], "-1"),
        (["vacia"], "No hay notas que leer"),
    ],
)
def test_what_is_wrong_is_named(
    rag: Rag, folder: Path, tmp_path: Path, arguments: list[str], said: str
) -> None:
    (tmp_path / "vacia").mkdir()
    done = rag("init", *arguments)
    assert done.code == 2
    assert said in done.err
    assert not (tmp_path / ".env").exists()


def test_run_becomes_the_main_job(rag: Rag, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same process: signals and exit code are those of the main job."""
    called: list[list[str]] = []
    monkeypatch.setattr(launch.os, "execve", lambda _, arguments, __: called.append(arguments))
    assert rag("run", "--yes").code == 0
    assert called == [[sys.executable, "-m", "rag_assets", "run", "--yes"]]


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0\r\n"), max_size=30))
def test_any_path_can_be_written_into_the_file(value: str) -> None:
    from io import StringIO

    found = dotenv_values(stream=StringIO(assignment("NOTES_SOURCE", value)), interpolate=False)
    assert found == {"NOTES_SOURCE": value}


def test_drafts_spread_over_the_months() -> None:
    notes = [
        NoteOpening(f"{month}-{i}", "", "x" * i, datetime(2025, month, 1, tzinfo=UTC))
        for month in (1, 2, 3)
        for i in range(5)
    ]
    chosen = choose_notes(notes, 6)
    assert [note.created_at.month for note in chosen] == [1, 2, 3, 1, 2, 3]
    assert choose_notes(notes[::-1], 6) == chosen


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
    found = survey(folder)
    assert (found.notes, found.rejected_count) == (3, 1)
    assert found.read == {".md": 3, ".txt": 1}
    assert found.other == {".pdf": 1, ".jpg": 1}
    assert found.dates == {"field": 2, "file_modified": 1}


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
    assert lacks_windows(config, [ModelContents("m"), ModelContents("otro", windows=3)])
    assert not lacks_windows(config, [ModelContents("m", windows=3)])
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


def test_doctor_writes_sizes_as_in_spanish(rag: Rag) -> None:
    assert re.search(r"\d,\d GB libres", rag("doctor").out)


def test_the_next_step_is_the_file_that_names_another_folder(
    rag: Rag, folder: Path, tmp_path: Path
) -> None:
    """What `rag run` would read is not what was surveyed."""
    rag("init", folder)
    other = tmp_path / "otras"
    other.mkdir()
    (other / "d.md").write_text(SPANISH)
    told = rag("init", tmp_path / "mis notas" / ".." / "otras")
    assert (
        _("Next step: put those lines into .env, or repeat with --force; then “rag run”.")
        in told.out
    )
    assert (
        _(
            "Next step: “rag run”. It evaluates, too, if there are answered questions; you can "
            "answer them before or later."
        )
        not in told.out
    )
    assert f"NOTES_SOURCE={other}" in told.err
    assert (
        _(
            "Next step: “rag run”. It evaluates, too, if there are answered questions; you can "
            "answer them before or later."
        )
        in rag("init", other, "--force").out
    )


def test_front_matter_that_is_not_closed_is_named(rag: Rag, folder: Path) -> None:
    """A line of dashes above a text is none."""
    (folder / "abierta.md").write_text(f"---\nfecha: 2025-01-10\n{SPANISH}\n")
    (folder / "raya.md").write_text(f"---\nHoy: {SPANISH}\n")
    assert (
        _(
            "They begin with “---” and a field but do not close it, so that their header is read "
            "as text: {notes}. Close it with another line “---”."
        ).format(notes="abierta")
        in rag("init", folder, "--dry-run").err
    )
