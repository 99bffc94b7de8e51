"""What `rag ask` quotes of notes as people write them: lists, rows, messages, headings, marks."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from rag_resources.application import Application, open_application
from rag_resources.core.types import NoteRecord
from rag_resources.database.pool import Database
from rag_resources.settings import load_settings
from rag_resources.store.notes import upsert_notes
from tests.command_line import isolate

WORDS = {"configuration": "fulltext", "overrides": {"retrievers": {"semantic": {"weight": 0}}}}
DAY = datetime(2026, 4, 3, tzinfo=UTC)

NOTES = {
    "marco": "Mañana viene el carpintero con Begoña. Begoña trae el marco.",
    "puerta": "Begoña dijo que la puerta irá lacada en blanco.",
    "moto": (
        "# Moto\n\n## Bastidor\nVTR 55 21\n\n"
        "## Revisión de la moto\nEn abril.\n\n## Seguro\nCon Lúa."
    ),
    "padrón": (
        "Para el empadronamiento hay que llevar:\n\n"
        "- el pasaporte\n- el contrato\n\nCierra a las dos."
    ),
    "router": "Para reiniciar el router se ejecuta:\n\n```sh\nsystemctl restart hostapd\n```",
    "taller": "| Taller | Enero | Febrero |\n|---|---|---|\n| Frenos Ruiz | | 310 € |\n| | | 9 € |",
    "becas": "Alumno\tPrimera\tSegunda\nNahia\t\t1.200\nUnai\t900\t",
    "póliza": "Titular de la póliza: Nerea Aldai\nMatrícula: 9911 LRT",
    "fuga": (
        "> [!bug]+ Avería\n> La *fuga* sale de la [[Caldera|caldera vieja]].\n\n![[plano.png|300]]"
    ),
    "chat": (
        "3/4/26, 18:20 - Nil: Vendo la tabla por 120 euros\n3/4/26, 18:21 - Ona: ¿Cuánto mide?"
    ),
}


@pytest.fixture
def app(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, database_url: str, database: Database
) -> Iterator[Application]:
    """An application over the notes."""
    isolate(monkeypatch, tmp_path, DATABASE_URL=database_url)
    records = [NoteRecord(name, "", content, DAY) for name, content in NOTES.items()]
    with database.transaction() as connection:
        upsert_notes(connection, records, tenant="default", source="notes")
    with open_application(load_settings()) as opened:
        yield opened


def test_the_block_that_answers_is_quoted_as_its_reader_sees_it(app: Application) -> None:
    """One note of each kind; accents and case of the question say nothing."""
    quoted = {}
    for question in (
        "¿Qué dijo Begoña de la puerta?",
        "¿QUE DIJO BEGONA DE LA PUERTA?",
        "¿Cuándo es la revisión de la moto?",
        "¿Qué hay que llevar para el empadronamiento?",
        "¿Qué se ejecuta para reiniciar el router?",
        "¿Cuánto cobró Frenos Ruiz?",
        "¿Cuánto recibe Nahia?",
        "¿Quién es el titular de la póliza?",
        "¿De dónde sale la fuga?",
        "¿Por cuánto vende Nil la tabla?",
    ):
        first = app.answers.ask(question, **WORDS).answer.sentences[0]
        (citation,) = first.citations
        content = NOTES[citation.external_id]
        assert citation.quote_start <= citation.start < citation.end <= citation.quote_end
        assert citation.quote_end <= len(content)
        quoted[question] = (first.marked.strip(), citation.columns)
    door = ("Begoña dijo que la puerta irá lacada en blanco.", "")
    assert list(quoted.values()) == [
        door,
        door,
        ("En abril.", ""),
        ("**Para el empadronamiento hay que llevar:**\nel pasaporte\nel contrato", ""),
        ("**Para reiniciar el router se ejecuta:**\nsystemctl restart hostapd", ""),
        ("Frenos Ruiz | | 310 €", "Taller | Enero | Febrero"),
        ("Nahia | | 1.200", "Alumno | Primera | Segunda"),
        ("Titular de la póliza: Nerea Aldai Matrícula: 9911 LRT", ""),
        ("La fuga sale de la caldera vieja.", ""),
        ("3/4/26, 18:20 - Nil: Vendo la tabla por 120 euros", ""),
    ]
