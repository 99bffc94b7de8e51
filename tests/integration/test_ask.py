"""`rag ask`: sentences with citations that hold in the notes."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import pytest

from rag_resources.answers.answerers import QuotationAnswerer, Telling, write_answer
from rag_resources.answers.citing import cite, passages_of
from rag_resources.application import open_application
from rag_resources.core.answers import Answer, CitedSentence, Source
from rag_resources.core.citations import AnswerSentence
from rag_resources.core.errors import (
    DeadlineExceededError,
    InvalidAnswerError,
    ProviderUnavailableError,
    RagError,
)
from rag_resources.core.quotation import SourcePassage
from rag_resources.core.retrievers import RankedList
from rag_resources.core.text import Span
from rag_resources.core.types import NoteRecord, RetrievalResult
from rag_resources.database.pool import Database
from rag_resources.languages.messages import _
from rag_resources.settings import load_settings
from rag_resources.store.notes import note_id, upsert_notes
from tests.command_line import Outcome, call_rag, isolate
from tests.language_models import ScriptedModel, answerer_of, reply
from tests.ollama_server import Fault
from tests.openai_server import OpenAIServer
from tests.waiting import wait_until

DAY = datetime(2025, 1, 12, tzinfo=UTC)
CONTENT = "Llovió todo el día. El taller pide 415 euros por la dirección 🛠. Cenamos\nsopa caliente."
COST = "El taller pide 415 euros por la dirección 🛠."
QUESTION = "¿Cuánto pide el taller?"
BESIDE_COST = ["Llovió todo el día.", "Cenamos sopa caliente."]
"""The sentences before and after `COST`."""


@pytest.fixture
def note(database: Database) -> UUID:
    """A stored note."""
    with database.transaction() as connection:
        record = NoteRecord("taller", "El taller", CONTENT, DAY)
        upsert_notes(connection, [record], tenant="default", source="notes")
    return note_id("default", "notes", "taller")


def execute(database: Database, statement: str) -> None:
    with database.transaction() as connection:
        connection.execute(statement)


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
        lists=(RankedList.FULLTEXT,),
        original_score=0.9,
        title="El taller",
        external_id="taller",
        created_at=DAY,
        start_char=start,
    )


def cited(
    database: Database, sentences: Sequence[CitedSentence], note: UUID
) -> list[AnswerSentence]:
    with database.transaction() as connection:
        return cite(connection, sentences, [result_of(note)])


def written(
    model: ScriptedModel, passages: Sequence[SourcePassage]
) -> tuple[list[CitedSentence], Telling]:
    sentences, telling = write_answer(QUESTION, passages, answerer_of(model))
    return list(sentences), telling


def extracted(question: str, note: UUID) -> Answer:
    return QuotationAnswerer().answer(question, passages_of([result_of(note)]))


def test_property_47_a_citation_is_the_range_of_the_note_that_says_it(
    database: Database, note: UUID
) -> None:
    (sentence,) = cited(database, extracted(QUESTION, note).sentences, note)
    (citation,) = sentence.citations
    assert sentence.text == COST
    assert CONTENT[citation.start : citation.end].strip() == COST
    assert citation.content_sha256 == hashlib.sha256(CONTENT.encode()).digest()
    assert (citation.note_id, citation.title, citation.created_at) == (note, "El taller", DAY)
    assert citation.external_id == "taller"
    assert [citation.prefix, citation.suffix] == BESIDE_COST
    assert citation == replace(citation, prefix="", suffix=""), "one range is one citation"


def test_a_sentence_over_two_lines_is_shown_on_one_and_cited_as_it_stands(
    database: Database, note: UUID
) -> None:
    (sentence,) = cited(database, extracted("¿Cenamos sopa?", note).sentences, note)
    citation = sentence.citations[0]
    assert sentence.text == "Cenamos sopa caliente."
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
    assert cited(database, answer.sentences, note) == []


def test_each_range_that_supports_a_sentence_is_cited(database: Database, note: UUID) -> None:
    first, second = (
        Span(CONTENT.index(own), CONTENT.index(own) + len(own)) for own in (COST, "Llovió")
    )
    sentence = CitedSentence("Pide 415 euros.", 1, first, (Source(1, second),))
    (shown,) = cited(database, [sentence], note)
    assert [CONTENT[own.start : own.end] for own in shown.citations] == [COST, "Llovió"]


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
    sentences, telling = written(model, passages_of([result_of(note)]))
    assert len(model.calls) == 1
    assert sentences == list(extracted(QUESTION, note).sentences)
    assert telling.answerer == QuotationAnswerer().name
    assert telling.failure is not None
    assert failure.message in telling.failure


def test_a_language_model_that_answers_is_named_and_nothing_is_asked_without_passages(
    note: UUID,
) -> None:
    model = ScriptedModel(reply((COST, [1])))
    assert written(model, [])[0] == []
    assert model.calls == []
    sentences, telling = written(model, passages_of([result_of(note)]))
    assert [own.text for own in sentences] == [COST]
    assert (telling.failure, telling.interruption) == (None, None)
    assert telling.answerer.startswith("scripted")


def test_what_no_passage_says_is_replaced_by_sentences_of_the_notes(note: UUID) -> None:
    model = ScriptedModel(reply(("El taller pide 900 euros.", [1])))
    sentences, telling = written(model, passages_of([result_of(note)]))
    assert [own.text for own in sentences] == [COST]
    assert telling.failure == _(
        "What the language model wrote is not in the passages that it cites. The answer is "
        "sentences of the notes."
    )
    assert telling.writing.dropped == 1


def test_the_command_shows_sentences_numbers_and_sources(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    database_url: str,
    database: Database,
    note: UUID,
) -> None:
    isolate(monkeypatch, tmp_path, DATABASE_URL=database_url)

    def ask(*arguments: str, command: str = "ask") -> Outcome:
        options = ("--set", "retrievers.semantic.weight=0", "--config", "fulltext")
        return call_rag(monkeypatch, capsys, command, *arguments, *options)

    shown = ask(QUESTION)
    assert shown.code == 0, shown.err
    start = CONTENT.index(COST)
    assert "\n".join((BESIDE_COST[0], f"**{COST}**", f"{BESIDE_COST[1]} ¹")) in shown.out
    assert "Fuentes:\n[1] El taller · 12 ene 2025" in shown.out
    assert f"caracteres {start}–{start + len(COST)}" in shown.out
    assert (
        _(
            "Not calibrated, so that what the notes do not say is sometimes answered, too: {reason}"
        ).format(
            reason=_(
                "“rag calibrate” is missing, which takes 20 questions that succeed and 20 that fail"
            )
        )
        in shown.out
    )
    told = ask(QUESTION, "--json").json
    assert told["confidence"] == {
        "missing": _(
            "“rag calibrate” is missing, which takes 20 questions that succeed and 20 that fail"
        )
    }
    assert told["found"]
    assert told["sentences"][0]["citations"][0]["noteId"] == str(note)
    metadata = told["metadata"]
    assert metadata["passages"] == 1
    assert (metadata["model"], metadata["tokensUsed"]) == (None, None)
    assert 0 < metadata["meanSimilarity"] <= 1
    assert {"embed", "fulltext", "first_sentence", "answer"} & metadata["stages"].keys() >= {
        "first_sentence",
        "answer",
    }
    assert ask(QUESTION, "--stream").out.splitlines()[0] == shown.out.splitlines()[0]
    execute(database, "UPDATE notes SET title = ''")
    assert "Fuentes:\n[1] taller · 12 ene 2025" in ask(QUESTION).out
    passages = ask(QUESTION, command="retrieve").out
    assert "12 ene 2025 · taller " in passages
    assert "─ taller · " not in passages
    execute(database, "UPDATE notes SET external_id = NULL")
    assert f"Fuentes:\n[1] {note} · 12 ene 2025" in ask(QUESTION).out
    silent = ask("¿xilófono?")
    assert (silent.code, silent.out.strip()) == (
        0,
        "No encontré información relevante en tus notas sobre esta pregunta.",
    )
    english = ask("¿xilófono?", "--language", "en")
    assert (
        english.out.strip() == "I found no relevant information in your notes about this question."
    )


@pytest.fixture
def model_server() -> Iterator[OpenAIServer]:
    """An OpenAI-compatible server that answers with a sentence of the note and one of its own."""
    found = reply((COST, [1]), ("Cenamos sopa caliente y después hablamos de todo eso.", [1]))
    with OpenAIServer(answers=lambda *_: found, key="sk-buena") as running:
        yield running


@pytest.mark.parametrize("option", ["--stream", "--no-stream", "--json"])
def test_the_command_asks_a_model_and_tells_what_goes_wrong(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    database_url: str,
    note: UUID,
    model_server: OpenAIServer,
    option: str,
) -> None:
    """One sentence is checked and shown, the other is dropped; each failure says what to do."""
    isolate(monkeypatch, tmp_path, DATABASE_URL=database_url, LLM_MODEL="openai:llama3.2")
    monkeypatch.setenv("OPENAI_BASE_URL", model_server.base_url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-buena")

    def ask(question: str = QUESTION) -> Outcome:
        options = ("--set", "retrievers.semantic.weight=0", "--config", "fulltext", option)
        return call_rag(monkeypatch, capsys, "ask", question, *options)

    answered = ask()
    assert answered.code == 0, answered.err
    if option == "--json":
        told = answered.json
        assert [own["text"] for own in told["sentences"]] == [COST]
        assert told["metadata"]["model"] == "openai:llama3.2"
        assert told["metadata"]["droppedSentences"] == 1
        assert told["metadata"]["tokensUsed"]["prompt"] > 0
        assert told["answerer"].startswith("openai:llama3.2 answer-")
    else:
        assert answered.out.splitlines()[0] == f"{COST} ¹"
        assert "tokens: " in answered.out

    model_server.inject(Fault.CUT)
    cut = ask("¿Cuánto pide hoy el taller?")
    assert cut.code == 1
    assert COST in cut.out
    assert "La respuesta se cortó" in (cut.json["error"] if option == "--json" else cut.err)

    model_server.heal()
    monkeypatch.setenv("OPENAI_API_KEY", "sk-mala")
    refused = ask("¿Cuánto pide el taller hoy?")
    assert refused.code == 0
    assert COST in refused.out
    assert "OPENAI_API_KEY" in refused.out + refused.err
    assert "sk-mala" not in refused.out + refused.err

    monkeypatch.setenv("OPENAI_API_KEY", "sk-buena")
    monkeypatch.setenv("LLM_MODEL", "openai:no-existe")
    assert "no tiene el modelo no-existe" in (missing := ask()).out + missing.err
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    dead = ask()
    assert dead.code == 0
    assert "no responde. Comprueba" in dead.out + dead.err


def test_who_leaves_an_answer_ends_the_models_work(
    database_url: str, note: UUID, tmp_path: Path, model_server: OpenAIServer
) -> None:
    """The server falls silent after the first sentence, and is left at once."""
    model_server.inject(Fault.STALL, seconds=60)
    settings = load_settings(
        rag_home=tmp_path,
        database_url=database_url,
        llm_model="openai:llama3.2",
        openai_base_url=model_server.base_url,
        openai_api_key="sk-buena",
    )
    with open_application(settings) as application:
        events = application.answers.stream(
            QUESTION,
            configuration="fulltext",
            overrides={"retrievers": {"semantic": {"weight": 0}}},
        )
        first = next(events)
        assert isinstance(first, AnswerSentence)
        assert first.text == COST
        events.close()
        wait_until(lambda: model_server.open_connections == 0)
    assert model_server.silences_over == 0
