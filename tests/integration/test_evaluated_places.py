"""Places of golden questions in evaluations."""

from uuid import UUID

import pytest

from rag_resources.core.configuration import RetrievalConfig
from rag_resources.core.golden import GoldenEntry
from rag_resources.core.golden_places import GoldenPlace
from rag_resources.database.pool import Database
from rag_resources.evaluation.runner import Evaluation, evaluate
from rag_resources.store.golden import write_golden
from tests.corpus import SMALL, Corpus, Draft

WORDS = RetrievalConfig(strategy="fulltext", model="openai_hash")
LONG = (
    "La gata se llama Maite y le gusta el sol de la tarde. "
    "El ascensor de la escalera lleva averiado desde el lunes pasado. "
    "La gata se escapó por la ventana del patio de luces. "
    "El técnico vendrá a repararlo cuando le manden la pieza nueva. "
    "La gata volvió sola, sucia y con hambre, tres días después."
)
ANSWER = "por la ventana"
QUESTION = "¿Por dónde se escapó la gata por la ventana del patio?"
OTHER = "¿Qué gata volvió sola, sucia y con hambre?"


@pytest.fixture
def corpus(database: Database) -> Corpus:
    """A note of several passages, and one that tells of something else."""
    made = Corpus(database)
    made.fill([Draft(LONG), Draft("Compré una bomba para la furgoneta.")])
    return made


def ask_about(corpus: Corpus, *places: GoldenPlace) -> None:
    """Two questions over the first note; the first has places."""
    entries = [
        GoldenEntry(QUESTION, (note(corpus),), "Por la ventana.", "factual", 1, places=places),
        GoldenEntry(OTHER, (note(corpus),), "La nuestra.", "factual", 1),
    ]
    with corpus.database.transaction() as connection:
        write_golden(connection, entries, replace=True)


def note(corpus: Corpus) -> UUID:
    found: UUID = corpus.fetch("SELECT id FROM notes WHERE external_id = '0'")[0].id
    return found


def place(corpus: Corpus, text: str = ANSWER) -> GoldenPlace:
    start = LONG.index(text)
    return GoldenPlace(note(corpus), start, start + len(text), text)


def run(corpus: Corpus, name: str = "palabras", config: RetrievalConfig = WORDS) -> Evaluation:
    return evaluate(corpus.database, corpus.pipeline(), name, config)


def test_every_passage_says_where_in_its_note_it_stands(corpus: Corpus) -> None:
    found = corpus.ask(QUESTION, WORDS).results
    assert len(found) > 1
    for result in found:
        assert result.start_char > 0 or LONG.startswith(result.content)
        if result.note_id == note(corpus):
            assert LONG[result.start_char : result.end_char] == result.content


def test_places_are_stored_where_they_were_found(corpus: Corpus) -> None:
    ask_about(corpus, place(corpus))
    run(corpus)
    asked, unplaced = corpus.fetch("SELECT * FROM evaluation_queries ORDER BY query")
    stated = place(corpus)
    assert asked.places == [
        {"note": str(stated.note_id), "start": stated.start, "end": stated.end, "similarity": 1}
    ]
    assert unplaced.places == []


def test_an_edit_moves_a_place_for_the_evaluation_and_its_doubt_is_stored(corpus: Corpus) -> None:
    ask_about(corpus, place(corpus, "La gata se escapó por la ventana"))
    edited = "Primero, lo de siempre. " + LONG.replace("la ventana", "una ventana")
    with corpus.database.transaction() as connection:
        connection.execute("UPDATE notes SET content = %s WHERE id = %s", (edited, note(corpus)))
    corpus.index(SMALL)
    run(corpus)
    rows = corpus.fetch("SELECT places FROM evaluation_queries WHERE places <> '[]'")
    [[stored]] = [row.places for row in rows]
    assert 0.8 <= stored["similarity"] < 1
    with corpus.database.transaction() as connection:
        connection.execute("UPDATE notes SET content = 'Nada.' WHERE id = %s", (note(corpus),))
    corpus.index(SMALL)
    assert all(each.is_lost for outcome in run(corpus).outcomes for each in outcome.places)
