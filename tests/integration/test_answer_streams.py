"""Answers of a language model while they are written, with a real server of each protocol."""

import threading
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from rag_resources.answers.answerers import write_answer
from rag_resources.answers.checking import SupportChecker
from rag_resources.answers.language_model import (
    AnswerOptions,
    LanguageModelAnswerer,
    StoredAnswer,
    Writing,
    stored_from_bytes,
    stored_to_bytes,
)
from rag_resources.core.answers import CitedSentence
from rag_resources.core.errors import ProviderUnavailableError
from rag_resources.core.quotation import SourcePassage
from rag_resources.providers.cache import WRITTEN_ANSWERS, MemoryCache
from rag_resources.providers.ollama import OllamaChat
from rag_resources.providers.openai import OpenAIChat
from tests.embedders import HashEmbedder
from tests.language_models import ScriptedModel, answerer_of, reply
from tests.ollama_server import Fault, OllamaServer
from tests.openai_server import OpenAIServer
from tests.waiting import wait_until

QUESTION = "¿Cuánto pide el taller?"
FIRST = "El taller pide 415 euros por la dirección."
SECOND = "Andreu lo paga el martes con la tarjeta de su hermana porque hoy no tiene dinero suelto."
PASSAGES = [SourcePassage(f"Llovió todo el día. {FIRST}"), SourcePassage(SECOND)]
BOTH = reply((FIRST, [1]), (SECOND, [2]))

Server = OllamaServer | OpenAIServer


@pytest.fixture(params=[OllamaServer, OpenAIServer])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A model server of each protocol, which answers with two sentences."""
    with request.param(answers=lambda *_: BOTH) as running:
        yield running


@pytest.fixture
def chat(server: Server) -> Iterator[OllamaChat | OpenAIChat]:
    built = (
        OpenAIChat("llama3.2", base_url=server.base_url)
        if isinstance(server, OpenAIServer)
        else OllamaChat("llama3.2", host=server.host)
    )
    with built as opened:
        yield opened


def texts(sentences: list[CitedSentence]) -> list[str]:
    return [own.text for own in sentences]


def test_a_sentence_comes_before_the_next_is_written(
    server: Server, chat: OllamaChat | OpenAIChat
) -> None:
    """The server falls silent in the middle of the second sentence."""
    server.inject(Fault.STALL, seconds=60)
    with closing(answerer_of(chat).stream(QUESTION, PASSAGES)) as sentences:
        assert next(sentences).text == FIRST
    assert server.silences_over == 0


def test_a_client_that_leaves_ends_the_models_work(
    server: Server, chat: OllamaChat | OpenAIChat
) -> None:
    server.inject(Fault.STALL, seconds=60)
    sentences, _ = write_answer(QUESTION, PASSAGES, answerer_of(chat))
    assert next(sentences).text == FIRST
    assert server.open_connections == 1
    sentences.close()
    wait_until(lambda: server.open_connections == 0)
    assert server.silences_over == 0


@pytest.mark.parametrize("fault", [Fault.CUT, Fault.BROKEN, Fault.UNFINISHED])
def test_a_cut_connection_says_what_was_kept(
    server: Server, chat: OllamaChat | OpenAIChat, fault: Fault
) -> None:
    server.inject(fault)
    sentences, telling = write_answer(QUESTION, PASSAGES, answerer_of(chat))
    assert texts(list(sentences)) == [FIRST]
    assert telling.interruption is not None
    assert "La respuesta se cortó" in telling.interruption
    assert "comprobadas: 1" in telling.interruption
    with pytest.raises(ProviderUnavailableError):
        answerer_of(chat).answer(QUESTION, PASSAGES)


def test_an_answer_that_is_too_long_is_cut_and_says_so(
    server: Server, chat: OllamaChat | OpenAIChat
) -> None:
    """The whole sentences are kept; the rest is no JSON."""
    server.done_reason = "length"
    sentences, telling = write_answer(QUESTION, PASSAGES, answerer_of(chat))
    assert texts(list(sentences)) == [FIRST, SECOND]
    assert telling.failure is not None
    assert "500 tokens" in telling.failure


def test_people_get_a_warmer_answer_of_at_most_500_tokens(
    server: Server, chat: OllamaChat | OpenAIChat
) -> None:
    answerer_of(chat, temperature=0.3).answer(QUESTION, PASSAGES)
    answerer_of(chat).answer(QUESTION, PASSAGES)
    bodies: list[dict[str, Any]] = [request.body for request in server.requests]
    told = [body.get("options", body) for body in bodies]
    assert [own["temperature"] for own in told] == [0.3, 0.0]
    assert all(own.get("max_tokens", 500) == 500 for own in told)


def test_what_is_dropped_is_counted_and_what_is_marked_cites_the_whole_passage() -> None:
    model = ScriptedModel(reply((FIRST, [1]), ("El taller pide 900 euros.", [1, 2])))
    ends: list[Writing] = []
    dropping = answerer_of(model).stream(QUESTION, PASSAGES, on_end=ends.append)
    assert texts(list(dropping)) == [FIRST]
    marking = answerer_of(model, keep_unsupported=True)
    _, doubtful = marking.stream(QUESTION, PASSAGES, on_end=ends.append)
    assert [end.dropped for end in ends] == [1, 0]
    assert not doubtful.is_supported
    whole = [(own.rank, own.span.start, own.span.end) for own in doubtful.sources]
    assert whole == [(rank, 0, len(own.text)) for rank, own in enumerate(PASSAGES, start=1)]


def test_a_sentence_must_be_said_by_the_passage_that_it_cites() -> None:
    model = ScriptedModel(reply((FIRST, [2])))
    assert not answerer_of(model).answer(QUESTION, PASSAGES).found


def test_the_same_question_over_the_same_passages_is_asked_once() -> None:
    cache: MemoryCache[StoredAnswer] = MemoryCache(WRITTEN_ANSWERS)
    model = ScriptedModel(BOTH)

    def ask(question: str = QUESTION, passages: list[SourcePassage] = PASSAGES) -> Writing:
        ends: list[Writing] = []
        options = AnswerOptions(temperature=0.3)
        answerer = LanguageModelAnswerer(model, SupportChecker(HashEmbedder), options, stored=cache)
        assert texts(list(answerer.stream(question, passages, on_end=ends.append)))
        return ends[0]

    assert [ask().is_cached, ask().is_cached] == [False, True]
    assert not ask("¿Cuánto pide Andreu?").is_cached
    assert not ask(passages=[*PASSAGES, SourcePassage("Cenamos.")]).is_cached
    assert len(model.calls) == 3


def test_only_complete_answers_are_kept(server: Server, chat: OllamaChat | OpenAIChat) -> None:
    cache: MemoryCache[StoredAnswer] = MemoryCache(WRITTEN_ANSWERS)
    answerer = LanguageModelAnswerer(chat, SupportChecker(HashEmbedder), stored=cache)
    server.inject(Fault.CUT, times=1)
    with pytest.raises(ProviderUnavailableError):
        answerer.answer(QUESTION, PASSAGES)
    with closing(answerer.stream(QUESTION, PASSAGES)) as left:
        next(left)
    assert cache.statistics.size == 0
    kept = answerer.answer(QUESTION, PASSAGES)
    assert cache.statistics.size == 1
    assert answerer.answer(QUESTION, PASSAGES) == kept
    assert len(server.requests) == 3


def test_a_kept_answer_is_the_same_after_it_was_stored() -> None:
    model = ScriptedModel(BOTH)
    sentences = tuple(answerer_of(model).stream(QUESTION, PASSAGES))
    stored = StoredAnswer(sentences, Writing(dropped=1))
    assert stored_from_bytes(stored_to_bytes(stored)) == stored


def test_answers_may_be_written_side_by_side(server: Server, chat: OllamaChat | OpenAIChat) -> None:
    found: dict[int, list[str]] = {}

    def work(index: int) -> None:
        found[index] = texts(list(answerer_of(chat).stream(QUESTION, PASSAGES)))

    threads = [threading.Thread(target=work, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {index: [FIRST, SECOND] for index in range(4)}


@pytest.mark.parametrize(
    "change",
    [{"context_tokens": 500}, {"keep_unsupported": True}, {"temperature": 0.3}],
)
def test_an_answerer_is_named_after_everything_that_changes_its_answers(
    change: dict[str, Any],
) -> None:
    model = ScriptedModel(BOTH)
    assert answerer_of(model, **change).name != answerer_of(model).name
    assert answerer_of(model, language="en").name != answerer_of(model).name
