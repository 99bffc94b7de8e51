"""`rag ask`: sentences with citations that hold in the notes."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import pytest

from rag_resources.answers.answerers import QuotationAnswerer, Telling, write_answer
from rag_resources.answers.citing import cite, passages_of
from rag_resources.core.answers import Answer, CitedSentence
from rag_resources.core.citations import AnswerSentence
from rag_resources.core.errors import (
    DeadlineExceededError,
    InvalidAnswerError,
    ProviderUnavailableError,
    RagError,
)
from rag_resources.core.quotation import SourcePassage
from rag_resources.core.retrievers import RankedList
from rag_resources.core.types import NoteRecord, RetrievalResult
from rag_resources.database.pool import Database
from rag_resources.languages.messages import _
from rag_resources.store.notes import note_id, upsert_notes
from tests.language_models import ScriptedModel, answerer_of, reply

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
