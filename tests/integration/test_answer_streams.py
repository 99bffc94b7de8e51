"""Answers of a language model while they are written, with a real server of each protocol."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from rag_resources.answers.answerers import write_answer
from rag_resources.core.answers import CitedSentence
from rag_resources.core.errors import ProviderUnavailableError
from rag_resources.core.quotation import SourcePassage
from rag_resources.providers.ollama import OllamaChat
from rag_resources.providers.openai import OpenAIChat
from tests.language_models import answerer_of, reply
from tests.ollama_server import Fault, OllamaServer
from tests.openai_server import OpenAIServer

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
