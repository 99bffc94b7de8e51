"""The Ollama language model with the real client, over real HTTP, against all its failures."""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Literal

import pytest
from ollama import Client
from pydantic import BaseModel, Field

from rag_resources.core.deadline import Deadline
from rag_resources.core.errors import (
    DeadlineExceededError,
    InvalidAnswerError,
    InvalidParameterError,
    ModelMissingError,
    ProviderError,
    ProviderUnavailableError,
)
from rag_resources.providers.ollama_chat import OllamaChat
from rag_resources.providers.protocols import LanguageModel
from rag_resources.providers.registry import build_language_model
from tests.ollama_server import Fault, OllamaServer
from tests.waiting import wait_until

MODEL = "llama3.2"
SECRET = "texto-muy-secreto"


class Verdict(BaseModel):
    scores: list[Annotated[float, Field(ge=0, le=1)]]
    reason: str


@pytest.fixture
def chat(ollama: OllamaServer) -> Iterator[OllamaChat]:
    with OllamaChat(MODEL, host=ollama.host) as built:
        yield built


def after(milliseconds: float) -> Deadline:
    return Deadline.after(milliseconds, time.monotonic)


def ask(chat: LanguageModel, prompt: str = "¿Qué tal?", *, ms: float = 60_000) -> Verdict:
    return chat.answer(prompt, Verdict, deadline=after(ms))


def read(chat: LanguageModel, prompt: str = "¿Qué tal?", *, ms: float = 60_000) -> list[str]:
    return list(chat.stream(prompt, deadline=after(ms)))


CALLS = pytest.mark.parametrize("call", [ask, read])


def test_an_answer_has_the_shape_asked_for(ollama: OllamaServer, chat: OllamaChat) -> None:
    ollama.answers = lambda schema, messages: {
        "scores": [0.5, 1],
        "reason": f"{messages[-1]['content']} {schema['title']}",
    }
    assert ask(chat) == Verdict(scores=[0.5, 1.0], reason="¿Qué tal? Verdict")


def test_what_is_sent_makes_the_answer_deterministic(
    ollama: OllamaServer, chat: OllamaChat
) -> None:
    chat.answer("pregunta", Verdict, system="Eres un juez.", deadline=after(60_000))
    list(chat.stream("pregunta", deadline=after(60_000)))
    whole, streamed = ollama.requests_to("/api/chat")
    system, user = ({"role": "system", "content": "Eres un juez."}, {"role": "user"})
    assert whole["messages"] == [system, user | {"content": "pregunta"}]
    assert streamed["messages"] == [user | {"content": "pregunta"}]
    assert whole["format"] == Verdict.model_json_schema()
    assert "format" not in streamed
    for body in (whole, streamed):
        assert body["options"] == {"temperature": 0.0, "seed": 0}
    assert (whole["stream"], streamed["stream"]) == (False, True)


def test_a_stream_comes_piece_by_piece(ollama: OllamaServer, chat: OllamaChat) -> None:
    ollama.reply = lambda _: "uno dos tres"
    assert read(chat) == ["uno ", "dos ", "tres"]


@CALLS
@pytest.mark.parametrize("text", ["\0", "\ud800", "👵🏽", "x" * 1_000_000])
def test_awkward_prompts_are_answered(
    chat: OllamaChat, call: Callable[..., Any], text: str
) -> None:
    assert call(chat, text)


def test_name_and_digest_tell_the_model(ollama: OllamaServer, chat: OllamaChat) -> None:
    assert chat.name == "ollama:llama3.2"
    assert len(chat.digest) == 16
    assert chat.digest == chat.digest
    assert len(ollama.requests_to("/api/tags")) == 1


@CALLS
def test_a_missing_model_says_how_to_pull_it(
    ollama: OllamaServer, call: Callable[..., Any]
) -> None:
    with OllamaChat("no-existe:7b", host=ollama.host) as chat:
        with pytest.raises(ModelMissingError, match="ollama pull no-existe:7b"):
            call(chat)
        with pytest.raises(ModelMissingError, match="ollama pull no-existe:7b"):
            _ = chat.digest
    assert len(ollama.requests_to("/api/chat")) == 1


@CALLS
def test_a_model_that_does_not_chat_is_refused_at_once(
    ollama: OllamaServer, call: Callable[..., Any]
) -> None:
    with OllamaChat("bge-m3", host=ollama.host) as chat, pytest.raises(ProviderError, match="400"):
        call(chat)
    assert len(ollama.requests) == 1


@CALLS
@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_passing_refusal_is_retried_and_a_lasting_one_told(
    ollama: OllamaServer, chat: OllamaChat, call: Callable[..., Any], status: int
) -> None:
    ollama.inject(Fault.STATUS, times=2, status=status)
    assert call(chat)
    assert len(ollama.requests) == 3
    ollama.inject(Fault.STATUS, status=status)
    with pytest.raises(ProviderUnavailableError, match=str(status)):
        call(chat)
    assert len(ollama.requests) == 6


@CALLS
def test_a_stopped_server_is_unavailable(
    ollama: OllamaServer, chat: OllamaChat, call: Callable[..., Any]
) -> None:
    call(chat)
    ollama.stop()
    with pytest.raises(ProviderUnavailableError, match=r"127\.0\.0\.1"):
        call(chat)
    ollama.start()
    assert call(chat)


def test_a_connection_cut_in_an_answer_is_retried(ollama: OllamaServer, chat: OllamaChat) -> None:
    ollama.inject(Fault.CUT, times=2)
    assert ask(chat)
    ollama.inject(Fault.CUT)
    with pytest.raises(ProviderUnavailableError):
        ask(chat)
    assert len(ollama.requests) == 6


@pytest.mark.parametrize("fault", [Fault.CUT, Fault.BROKEN, Fault.UNFINISHED])
def test_a_stream_that_breaks_off_says_so_and_is_not_begun_again(
    ollama: OllamaServer, chat: OllamaChat, fault: Fault
) -> None:
    """A retry would repeat the words already read, and a cut answer must not count as complete."""
    ollama.reply = lambda _: "uno dos tres"
    ollama.inject(fault)
    pieces: list[str] = []
    with pytest.raises(ProviderUnavailableError):
        pieces.extend(chat.stream("pregunta", deadline=after(60_000)))
    assert len(ollama.requests) == 1


@CALLS
@pytest.mark.parametrize("fault", [Fault.GARBAGE, Fault.SHAPE])
def test_an_answer_that_is_not_ollamas_is_named_as_such(
    ollama: OllamaServer, chat: OllamaChat, call: Callable[..., Any], fault: Fault
) -> None:
    ollama.inject(fault)
    with pytest.raises(ProviderUnavailableError, match="interpretar"):
        call(chat)
    assert len(ollama.requests) == 1


@pytest.mark.parametrize(
    "value", [None, [], {}, {"scores": "alto", "reason": ""}, {"scores": [2.0], "reason": ""}]
)
def test_an_answer_of_another_shape_is_invalid_and_not_asked_for_again(
    ollama: OllamaServer, chat: OllamaChat, value: Any
) -> None:
    ollama.answers = lambda *_: value
    with pytest.raises(InvalidAnswerError, match=r"llama3\.2"):
        ask(chat)
    assert len(ollama.requests) == 1


def test_text_instead_of_json_is_an_invalid_answer(ollama: OllamaServer, chat: OllamaChat) -> None:
    ollama.done_reason = "length"
    ollama.inject(Fault.CONTENT)
    with pytest.raises(InvalidAnswerError) as caught:
        ask(chat)
    assert caught.value.context["done_reason"] == "length"


@CALLS
@pytest.mark.parametrize("fault", [Fault.SLOW, Fault.TRICKLE, Fault.TRICKLE_HEADERS])
def test_a_slow_server_is_left_at_the_deadline(
    ollama: OllamaServer, chat: OllamaChat, call: Callable[..., Any], fault: Fault
) -> None:
    """Neither the read timeout nor a limit on pauses between bytes would end such an answer."""
    ollama.inject(fault, seconds=60 if fault is Fault.SLOW else 0.2)
    with pytest.raises(DeadlineExceededError):
        call(chat, ms=1_000)
    assert len(ollama.requests) == 1
    assert ollama.silences_over < 20, "the whole body takes more than a hundred"


def test_a_stream_that_falls_silent_is_left_at_the_deadline(
    ollama: OllamaServer, chat: OllamaChat
) -> None:
    ollama.reply = lambda _: "uno dos tres"
    ollama.inject(Fault.STALL, seconds=60)
    stream = chat.stream("pregunta", deadline=after(1_000))
    assert [next(stream), next(stream)] == ["uno ", "dos "]
    with pytest.raises(DeadlineExceededError):
        next(stream)
    assert ollama.silences_over == 0


@CALLS
def test_nothing_is_asked_once_the_deadline_has_passed(
    ollama: OllamaServer, chat: OllamaChat, call: Callable[..., Any]
) -> None:
    with pytest.raises(DeadlineExceededError) as caught:
        call(chat, ms=0)
    assert caught.value.context["begun"] is False
    assert ollama.requests == []


def test_a_stream_closed_early_closes_its_connection(
    ollama: OllamaServer, chat: OllamaChat
) -> None:
    ollama.reply = lambda _: "uno dos tres"
    ollama.inject(Fault.STALL, seconds=60)
    stream = chat.stream("pregunta", deadline=after(60_000))
    assert next(stream) == "uno "
    assert ollama.open_connections == 1
    stream.close()  # type: ignore[attr-defined]  # a generator, which only promises to iterate
    wait_until(lambda: ollama.open_connections == 0)
    assert ollama.silences_over == 0


def test_a_stream_leaves_no_deadline_to_who_reads_it(ollama: OllamaServer) -> None:
    """Two streams read in turns, each within its own deadline."""
    with OllamaChat(MODEL, host=ollama.host) as chat:
        brief = chat.stream("uno dos", deadline=after(60_000))
        next(brief)
        passed = chat.stream("uno dos", deadline=after(0))
        with pytest.raises(DeadlineExceededError):
            next(passed)
        assert list(brief)


def test_threads_share_one_model_and_its_connections(
    ollama: OllamaServer, chat: OllamaChat
) -> None:
    ollama.answers = lambda _, messages: {"scores": [], "reason": messages[-1]["content"]}
    answers: dict[int, str] = {}

    def work(index: int) -> None:
        answers[index] = ask(chat, f"pregunta {index}").reason

    threads = [threading.Thread(target=work, args=(index,)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {index: f"pregunta {index}" for index in range(8)}
    assert ollama.open_connections <= 8


@CALLS
@pytest.mark.parametrize("fault", [Fault.STATUS, Fault.CONTENT, Fault.SHAPE, Fault.GARBAGE])
def test_neither_texts_nor_credentials_are_logged_or_told(
    ollama: OllamaServer,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
    call: Callable[..., Any],
    fault: Fault,
) -> None:
    caplog.set_level(logging.DEBUG)
    ollama.inject(fault)
    host = ollama.host.replace("http://", "http://ana:clave-secreta@")
    error: ProviderError | None = None
    with OllamaChat(MODEL, host=host) as chat:
        try:
            call(chat, SECRET)
        except ProviderError as caught:
            error = caught
    captured = capsys.readouterr()
    told = f"{caplog.text}{captured.out}{captured.err}{error}"
    if error is not None:
        told += f"{error.context}{error.__cause__!r}"
    assert SECRET not in told
    assert "clave-secreta" not in told


def test_a_language_model_is_shared_by_name_and_server() -> None:
    model = build_language_model("ollama:llama3.2", ollama_host="http://a:1")
    assert isinstance(model, OllamaChat)
    assert model is build_language_model("ollama:llama3.2", ollama_host="http://a:1")
    assert model is not build_language_model("ollama:llama3.2")


@pytest.mark.parametrize("name", [None, ""])
def test_no_name_is_no_language_model(name: str | None) -> None:
    assert build_language_model(name) is None


@pytest.mark.parametrize("name", ["llama3.2", "ollama:", "ollama: ", "openai:gpt"])
def test_another_name_says_which_are_allowed(name: str) -> None:
    with pytest.raises(InvalidParameterError, match="ollama:<modelo>"):
        build_language_model(name)


@pytest.fixture(scope="module")
def real_chat() -> Iterator[OllamaChat]:
    """The language model OLLAMA_CHAT_MODEL names on a real server, else the first that can chat."""
    host = os.environ.get("OLLAMA_HOST")
    if not host:
        pytest.skip("OLLAMA_HOST is not set")
    client = Client(host=host, timeout=10)
    try:
        names = [entry.model for entry in client.list().models if entry.model]
        able = [n for n in names if "completion" in (client.show(n).capabilities or [])]
    finally:
        client.close()  # type: ignore[no-untyped-call]
    name = os.environ.get("OLLAMA_CHAT_MODEL") or next(iter(able), None)
    if name is None:
        pytest.skip("the server has no model that can chat")
    with OllamaChat(name, host=host) as chat:
        yield chat


class Colour(BaseModel):
    colour: Literal["azul", "verde", "rojo"]


@pytest.mark.ollama
def test_a_real_model_answers_in_the_shape_asked_for(real_chat: OllamaChat) -> None:
    prompt = "¿De qué color es el cielo de día?"
    assert real_chat.answer(prompt, Colour, deadline=after(300_000)).colour
    assert len(real_chat.digest) == 16


@pytest.mark.ollama
def test_a_real_model_streams(real_chat: OllamaChat) -> None:
    pieces = list(real_chat.stream("Cuenta de uno a diez.", deadline=after(300_000)))
    assert len(pieces) > 1
