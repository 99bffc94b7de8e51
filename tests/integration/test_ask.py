"""`rag ask`: sentences with citations that hold in the notes."""

import hashlib
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import pytest

from rag_resources.answers.answerers import ExtractiveAnswerer, write_answer
from rag_resources.answers.citing import cite, passages_of
from rag_resources.core.answers import NOT_FOUND, Answer
from rag_resources.core.citations import CitedAnswer
from rag_resources.core.errors import (
    DeadlineExceededError,
    InvalidAnswerError,
    ProviderUnavailableError,
    RagError,
)
from rag_resources.core.messages import Message
from rag_resources.core.types import NoteRecord, RetrievalResult
from rag_resources.database.pool import Database
from rag_resources.store.notes import note_id, upsert_notes
from tests.command_line import Outcome, call_rag, isolate
from tests.language_models import ScriptedModel

DAY = datetime(2025, 1, 12, tzinfo=UTC)
CONTENT = "Llovió todo el día. El taller pide 415 euros por la dirección 🛠. Cenamos\nsopa caliente."
COST = "El taller pide 415 euros por la dirección 🛠."
QUESTION = "¿Cuánto pide el taller?"


@pytest.fixture
def note(database: Database) -> UUID:
    """A stored note."""
    with database.transaction() as connection:
        record = NoteRecord("taller", "El taller", CONTENT, DAY)
        upsert_notes(connection, [record], tenant="default", source="notes")
    return note_id("default", "notes", "taller")


def result_of(note: UUID) -> RetrievalResult:
    """The note's two last sentences, found by the second, with the sentence before it."""
    start = CONTENT.index("El taller")
    return RetrievalResult(
        chunk_id=note,
        note_id=note,
        content=COST,
        expanded_content=CONTENT,
        score=0.9,
        chunk_index=0,
        matched_bounds=(start, start + len(COST)),
        retrieval_method="fulltext",
        original_score=0.9,
        title="El taller",
        created_at=DAY,
        start_char=start,
    )


def asked(database: Database, question: str, answer: Answer, note: UUID) -> CitedAnswer:
    with database.transaction() as connection:
        return cite(connection, question, answer, [result_of(note)], answerer="test")


def extracted(question: str, note: UUID) -> Answer:
    return ExtractiveAnswerer().answer(question, passages_of([result_of(note)]))


def test_property_47_a_citation_is_the_range_of_the_note_that_says_it(
    database: Database, note: UUID
) -> None:
    answer = asked(database, QUESTION, extracted(QUESTION, note), note)
    (sentence,) = answer.sentences
    (citation,) = sentence.citations
    assert sentence.text == COST
    assert CONTENT[citation.start : citation.end].strip() == COST
    assert citation.content_sha256 == hashlib.sha256(CONTENT.encode()).digest()
    assert (citation.note_id, citation.title, citation.created_at) == (note, "El taller", DAY)


def test_a_sentence_over_two_lines_is_shown_on_one_and_cited_as_it_stands(
    database: Database, note: UUID
) -> None:
    answer = asked(database, "¿Cenamos sopa?", extracted("¿Cenamos sopa?", note), note)
    citation = answer.sentences[0].citations[0]
    assert answer.sentences[0].text == "Cenamos sopa caliente."
    assert CONTENT[citation.start : citation.end] == "Cenamos\nsopa caliente."


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE notes SET content = 'El taller ya no pide 415 euros.'",
        "UPDATE notes SET expires_at = now() - interval '1 day'",
        "DELETE FROM notes",
    ],
)
def test_what_a_note_no_longer_says_is_not_cited(
    database: Database, note: UUID, change: str
) -> None:
    """The note changed between the search and the answer."""
    answer = extracted(QUESTION, note)
    with database.transaction() as connection:
        connection.execute(change)
    cited = asked(database, QUESTION, answer, note)
    assert not cited.found
    assert cited.notice == "No encontré información relevante en tus notas sobre esta pregunta."


def test_a_language_models_text_cites_the_passages_that_it_names(
    database: Database, note: UUID
) -> None:
    answer = asked(database, QUESTION, Answer("Pide 415 euros.", (1,)), note)
    (sentence,) = answer.sentences
    assert sentence.text == "Pide 415 euros."
    assert [CONTENT[own.start : own.end] for own in sentence.citations] == [COST]


@pytest.mark.parametrize(
    "failure",
    [
        ProviderUnavailableError("El servidor no responde."),
        InvalidAnswerError("La respuesta no tiene la forma pedida."),
        DeadlineExceededError("No queda tiempo."),
    ],
)
def test_a_language_model_that_fails_is_replaced_by_sentences_and_named(
    note: UUID, failure: RagError
) -> None:
    model = ScriptedModel(failure)
    passages = passages_of([result_of(note)])
    written = write_answer(QUESTION, passages, language_model=model)
    assert len(model.calls) == 1
    assert written.answer == extracted(QUESTION, note)
    assert written.answerer == ExtractiveAnswerer().name
    assert written.failure is not None
    assert failure.message in written.failure


def test_a_language_model_that_answers_is_named_and_nothing_is_asked_without_passages(
    note: UUID,
) -> None:
    model = ScriptedModel({"found": True, "answer": "Pide 415 euros.", "citations": [1]})
    assert write_answer(QUESTION, [], language_model=model).answer == NOT_FOUND
    assert model.calls == []
    written = write_answer(QUESTION, passages_of([result_of(note)]), language_model=model)
    assert (written.answer, written.failure) == (Answer("Pide 415 euros.", (1,)), None)
    assert written.answerer.startswith("scripted")


def test_the_command_shows_sentences_numbers_and_sources(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    database_url: str,
    note: UUID,
) -> None:
    isolate(monkeypatch, tmp_path, DATABASE_URL=database_url)

    def ask(*arguments: str) -> Outcome:
        options = ("--set", "retrievers.semantic.weight=0", "--config", "fulltext")
        return call_rag(monkeypatch, capsys, "ask", *arguments, *options)

    shown = ask(QUESTION)
    assert shown.code == 0, shown.err
    start = CONTENT.index(COST)
    assert f"{COST} ¹" in shown.out
    assert "Fuentes:\n[1] El taller · 12 ene 2025" in shown.out
    assert f"caracteres {start}–{start + len(COST)}" in shown.out
    assert Message.CONFIDENCE_MISSING.format(reason=Message.CONFIDENCE_NONE) in shown.out
    told = ask(QUESTION, "--json").json
    assert told["confidence"] == {"missing": Message.CONFIDENCE_NONE}
    assert told["found"]
    assert told["sentences"][0]["citations"][0]["noteId"] == str(note)
    assert told["metadata"]["passages"] == 1
    silent = ask("¿xilófono?")
    assert (silent.code, silent.out.strip()) == (
        0,
        "No encontré información relevante en tus notas sobre esta pregunta.",
    )
    english = ask("¿xilófono?", "--language", "en")
    assert (
        english.out.strip() == "I found no relevant information in your notes about this question."
    )
