"""Golden questions that name a page of a document: how they are read, and how they are judged."""

import json
from pathlib import Path
from typing import Any

import pytest

from rag_resources.core.errors import InvalidGoldenDatasetError
from rag_resources.core.extraction_config import ExtractionConfig
from rag_resources.database.pool import Database
from rag_resources.documents.applying import apply_window
from rag_resources.documents.arrival import arrive
from rag_resources.documents.extracting import extract_window
from rag_resources.documents.folder import folder_files
from rag_resources.files import LocalFiles
from rag_resources.golden.files import import_golden
from rag_resources.store.golden import list_golden
from tests.corpus import ALWAYS, SMALL, Corpus

FIRST = "Las obras del archivo empiezan en marzo. El carril bici va después del archivo."
SECOND = "La plaza tendrá veintidós árboles. El carril bici cuesta 380.000 euros."


@pytest.fixture
def corpus(database: Database, tmp_path: Path) -> Corpus:
    """A text of two pages that became notes, cut into chunks."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "plan.txt").write_text(f"{FIRST}\f{SECOND}", "utf-8")
    files, config = LocalFiles(tmp_path / "files"), ExtractionConfig()
    found = folder_files(tmp_path / "docs")
    arrive(database, files, found, tenant="ana", source="docs", config=config)
    extract_window(database, files, ALWAYS, config, tenant="ana")
    apply_window(database, ALWAYS, tenant="ana")
    made = Corpus(database)
    made.index(SMALL)
    return made


def import_questions(corpus: Corpus, tmp_path: Path, *places: dict[str, Any], **more: Any) -> None:
    entry = {
        "query": "¿Cuánto cuesta el carril bici?",
        "places": list(places),
        "expectedAnswer": "380.000 euros.",
        "category": "factual",
        "difficulty": 1,
        **more,
    }
    path = tmp_path / "preguntas.json"
    path.write_text(json.dumps({"entries": [entry]}), "utf-8")
    import_golden(corpus.database, path, tenant="ana")


def on_page(number: int, text: str, **more: Any) -> dict[str, Any]:
    return {"document": "plan.txt", "page": number, "text": text, **more}


def test_a_page_becomes_the_place_in_the_note_that_was_made_of_it(
    corpus: Corpus, tmp_path: Path
) -> None:
    import_questions(corpus, tmp_path, on_page(2, "380.000 euros"))
    with corpus.database.transaction() as connection:
        (entry,) = list_golden(connection)
    (place,) = entry.places
    assert entry.relevant_note_ids == (place.note_id,)
    (note,) = corpus.fetch("SELECT content FROM notes WHERE id = %s", place.note_id)
    assert note.content[place.start : place.end] == "380.000 euros"


def test_of_several_the_offset_into_the_page_says_which(corpus: Corpus, tmp_path: Path) -> None:
    second = FIRST.rindex("archivo")
    import_questions(corpus, tmp_path, on_page(1, "archivo", start=second))
    with corpus.database.transaction() as connection:
        (entry,) = list_golden(connection)
    (place,) = entry.places
    (note,) = corpus.fetch("SELECT content FROM notes WHERE id = %s", place.note_id)
    assert place.start == note.content.index(FIRST) + second


@pytest.mark.parametrize(
    ("place", "problem"),
    [
        (on_page(3, "carril"), "ninguna nota viene de la página 3 de «plan.txt»"),
        (on_page(1, "helicóptero"), "no está en la página 1 de «plan.txt»"),
        (on_page(1, "archivo"), "el texto «archivo» está 2 veces"),
        (on_page(1, "archivo", start=0), "no está en la página 1 de «plan.txt»"),
        ({"document": "plan.txt", "text": "carril"}, "no es un objeto con «document»"),
        ({"document": "otro.txt", "page": 1, "text": "x"}, "ninguna nota viene de la página 1"),
    ],
)
def test_a_page_or_text_that_is_not_there_is_named(
    corpus: Corpus, tmp_path: Path, place: dict[str, Any], problem: str
) -> None:
    with pytest.raises(InvalidGoldenDatasetError) as refused:
        import_questions(corpus, tmp_path, place)
    assert "¿Cuánto cuesta el carril bici?" in refused.value.message
    assert problem in refused.value.message
    assert len(refused.value.problems) == 1
