"""Answers of evaluations on a real index: citations, silence, comparison, and what changed them."""

import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from rag_resources.core.configuration import RetrievalConfig
from rag_resources.core.counterfactuals import Change, Suspicion
from rag_resources.core.evaluation import StoredEvaluation
from rag_resources.core.golden import GoldenEntry
from rag_resources.core.golden_places import GoldenPlace
from rag_resources.core.messages import Message
from rag_resources.core.types import NoteRecord
from rag_resources.database.pool import Database
from rag_resources.evaluation.answering import Answering
from rag_resources.evaluation.attribution import AnswerAttribution, attribute_answers
from rag_resources.evaluation.comparison import compare_evaluations
from rag_resources.evaluation.runner import evaluate
from rag_resources.store.comparison import evaluated_questions
from rag_resources.store.evaluations import fetch_evaluation
from rag_resources.store.golden import write_golden
from rag_resources.store.notes import upsert_notes
from tests.command_line import Outcome, call_rag, isolate
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


def attributed(
    corpus: Evaluated, before: StoredEvaluation, after: StoredEvaluation, question: str = ""
) -> AnswerAttribution:
    return attribute_answers(corpus.database, corpus.pipeline(), before, after, question=question)


def test_an_evaluation_stores_what_its_answers_cite_and_what_is_said_without_the_notes(
    corpus: Evaluated,
) -> None:
    """With the note every answer cites its place; without it another note's would be cited."""
    stored = evaluated(corpus)
    figures = stored.answers
    assert figures
    assert (figures.questions, figures.answered, figures.failed) == (30, 30, 0)
    means = {name: own.mean for name, own in figures.metrics.items()}
    assert means["citation_recall"] == means["first_citation"] == means["support"] == 1
    assert 0.5 <= means["citation_precision"] <= 1
    assert figures.silence
    assert (figures.silence.asked, figures.silence.hidden) == (30, 30)
    assert figures.misses
    assert figures.false_answers
    assert figures.misses.mean <= 0.15
    assert figures.false_answers.mean <= 0.1
    with corpus.database.transaction() as connection:
        questions = evaluated_questions(connection, [stored.evaluation_id])
    for question in questions[stored.evaluation_id].values():
        assert question.citations
        assert question.citations[0][0].note_id == question.relevant[0]
        assert question.answer_metrics
        cited = question.citations[0][0]
        ((text,),) = corpus.fetch(
            "SELECT substr(content, %s + 1, %s - %s) FROM notes WHERE id = %s",
            *(cited.start, cited.end, cited.start, cited.note_id),
        )
        assert text.startswith("El código de asunto")


def test_a_new_note_that_takes_a_citation_is_its_cause(corpus: Evaluated) -> None:
    """Hiding the notes that are new since brings the first citation back."""
    before = evaluated(corpus)
    add_rival(corpus)
    after = evaluated(corpus)
    found = attributed(corpus, before, after)
    assert [item.after.query for item in found.changed] == ["¿Cuál es el código de asunto3?"]
    (cause,) = found.causes.causes
    assert cause.change is Change.NOTES
    assert cause.queries == {found.changed[0].after.golden_id}
    assert not attributed(corpus, before, after, "asunto4").changed
    with corpus.database.snapshot() as connection:
        compared = compare_evaluations(connection, before, after)
    assert compared.answers
    assert compared.answers.lost == (found.changed[0].after.golden_id,)


def test_an_edited_note_is_a_suspicion(corpus: Evaluated) -> None:
    """The sentence stands elsewhere in its note; nothing can undo that."""
    before = evaluated(corpus)
    corpus.fetch(
        "UPDATE notes SET content = 'Antes llovió. ' || content WHERE external_id = '5' RETURNING 1"
    )
    corpus.index(SMALL)
    found = attributed(corpus, before, evaluated(corpus))
    assert [item.after.query for item in found.changed] == ["¿Cuál es el código de asunto5?"]
    assert Suspicion.NOTE_CHANGED in {item.suspicion for item in found.causes.suspected}


def test_another_answerer_cannot_be_asked_again(corpus: Evaluated) -> None:
    before = evaluated(corpus)
    add_rival(corpus)
    after = evaluated(corpus)
    assert before.answers
    other = before.answers.model_copy(update={"answerer": "llm x"})
    found = attributed(corpus, replace(before, answers=other), after)
    assert found.causes.causes == ()
    assert Suspicion.ANSWERER in {item.suspicion for item in found.causes.suspected}


def test_the_commands_tell_of_answers(
    corpus: Evaluated,
    database_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """`rag evaluate`, `rag compare --why` and the report with both plots."""
    isolate(monkeypatch, tmp_path, DATABASE_URL=database_url, TENANT=SETTINGS.tenant)

    def rag(*options: str | Path) -> Outcome:
        return call_rag(monkeypatch, capsys, *options)

    first = rag("evaluate", "fulltext", "--json").json
    assert first["answers"]["answered"] == 30
    assert first["answers"]["metrics"]["first_citation"]["mean"] == 1
    assert first["answers"]["silence"]["allowedMisses"] == 0.1
    assert len(first["answers"]["silenceCurve"]) == 51
    assert first["gate"]["citations"] in ("pass", "inconclusive")
    add_rival(corpus)
    shown = rag("evaluate", "fulltext")
    assert "Respuestas: 30 de 30; la primera cita era correcta en 0.967" in shown.out
    assert re.search(r"Control: .+: precisión de las citas", shown.out)
    compared = rag("compare", first["evaluationId"][:13], "fulltext", "--why")
    assert "Respuestas (preguntas contestadas en las dos: 30)" in compared.out
    assert "Respuestas cuya primera cita cambió: 1 (examinadas: 1)" in compared.out
    why = rag("compare", first["evaluationId"][:13], "fulltext", "--why", "--json").json
    (changed,) = why["answerCauses"]["changed"]
    assert changed["query"] == "¿Cuál es el código de asunto3?"
    assert changed["causes"] == [str(Message.CAUSE_NOTES_OF.format(month="2025-06"))]
    page = tmp_path / "informe.html"
    assert rag("report", "--output", page).code == 0
    html = page.read_text(encoding="utf-8")
    assert str(Message.REPORT_CITATIONS_CAPTION)[:40] in html
    assert "plot-silence" in html
