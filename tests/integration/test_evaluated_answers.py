"""Answers of evaluations on a real index: citations, silence and comparison."""

from datetime import UTC, datetime

import pytest

from rag_resources.core.configuration import RetrievalConfig
from rag_resources.core.evaluation import StoredEvaluation
from rag_resources.core.golden import GoldenEntry
from rag_resources.core.golden_places import GoldenPlace
from rag_resources.core.types import NoteRecord
from rag_resources.database.pool import Database
from rag_resources.evaluation.answering import Answering
from rag_resources.evaluation.comparison import compare_evaluations
from rag_resources.evaluation.runner import evaluate
from rag_resources.store.evaluations import fetch_evaluation
from rag_resources.store.golden import write_golden
from rag_resources.store.notes import upsert_notes
from tests.corpus import SMALL, SOURCE, Draft
from tests.evaluated_corpus import SETTINGS, Evaluated

WORDS = RetrievalConfig(model="openai_hash", strategy="fulltext")
NOTES = 60
DAY = datetime(2025, 6, 1, tzinfo=UTC)
FACT = "El código de asunto{} es {}."


@pytest.fixture
def tenant() -> str:
    return "ana"


@pytest.fixture
def corpus(database: Database) -> Evaluated:
    """Notes whose second sentence answers; the questions name its place."""
    made = Evaluated(database)
    made.fill([Draft(f"Hoy hizo sol otra vez. {FACT.format(n, 100 + n)}") for n in range(NOTES)])
    entries = []
    for number in range(30):
        text, start = FACT.format(number, 100 + number), len("Hoy hizo sol otra vez. ")
        place = GoldenPlace(made.note(number), start, start + len(text), text)
        entries.append(
            GoldenEntry(
                f"¿Cuál es el código de asunto{number}?",
                (made.note(number),),
                "Un número.",
                "factual",
                1,
                places=(place,),
            )
        )
    with database.transaction() as connection:
        write_golden(connection, entries, replace=True)
    return made


def evaluated(corpus: Evaluated, config: RetrievalConfig = WORDS) -> StoredEvaluation:
    made = evaluate(
        corpus.database,
        corpus.pipeline(),
        "candidata",
        config,
        answering=Answering(),
        settings=SETTINGS,
    )
    assert made.evaluation_id
    with corpus.database.transaction() as connection:
        stored = fetch_evaluation(connection, made.evaluation_id)
    assert stored
    assert made.summary.answers
    assert stored.answers == made.summary.answers.figures
    return stored


def add_rival(corpus: Evaluated) -> None:
    """A new note whose sentence looks more like an answer to one of the questions."""
    text = "Cuál es el código de asunto3: el código de asunto3 es 7."
    record = NoteRecord(str(NOTES), "", text, DAY)
    with corpus.database.transaction() as connection:
        upsert_notes(connection, [record], tenant="ana", source=SOURCE)
    corpus.index(SMALL)


def test_an_evaluation_stores_what_its_answers_cite_and_what_is_said_without_the_notes(
    corpus: Evaluated,
) -> None:
    """With the note every answer cites its place; without it another note's would be cited."""
    stored = evaluated(corpus)
    figures = stored.answers
    assert figures
    assert (figures.questions, figures.answered, figures.failed) == (30, 30, 0)
    means = {name: own.mean for name, own in figures.metrics.items()}
    assert means["citation_recall"] == means["first_citation"] == 1
    assert 0.5 <= means["citation_precision"] <= 1
    assert figures.silence
    assert (figures.silence.asked, figures.silence.hidden) == (30, 30)
    assert figures.misses
    assert figures.false_answers
    assert figures.misses.mean <= 0.15
    assert figures.false_answers.mean <= 0.1
    rows = corpus.fetch(
        "SELECT q.relevant_note_ids[1], q.citations -> 0 -> 0, q.answer_metrics"
        " FROM evaluation_queries AS q WHERE q.evaluation_id = %s",
        stored.evaluation_id,
    )
    assert len(rows) == 30
    for relevant, cited, metrics in rows:
        assert metrics
        assert cited["note"] == str(relevant)
        ((text,),) = corpus.fetch(
            "SELECT substr(content, %s + 1, %s - %s) FROM notes WHERE id = %s",
            *(cited["start"], cited["end"], cited["start"], cited["note"]),
        )
        assert text.startswith("El código de asunto")


def test_answers_are_compared_over_the_questions_that_both_answered(corpus: Evaluated) -> None:
    before = evaluated(corpus)
    add_rival(corpus)
    after = evaluated(corpus)
    with corpus.database.snapshot() as connection:
        compared = compare_evaluations(connection, before, after)
    assert compared.answers
    assert compared.answers.queries == 30
    metrics = {item.metric: item for item in compared.answers.metrics}
    for name in ("first_citation", "first_quotation"):
        assert (metrics[name].before, metrics[name].after) == (1, pytest.approx(29 / 30))
