"""Language models of Ollama and of OpenAI-compatible servers, over real HTTP, with all failures."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field, SecretStr

from rag_resources.core.deadline import Deadline
from rag_resources.core.errors import (
    DeadlineExceededError,
    InvalidParameterError,
    ModelMissingError,
    ProviderError,
    ProviderUnavailableError,
)
from rag_resources.providers.ollama import OllamaChat
from rag_resources.providers.openai import OpenAIChat
from rag_resources.providers.protocols import Ending, LanguageModel, Sampling
from rag_resources.providers.server_models import parsed
from tests.ollama_server import Fault, OllamaServer
from tests.openai_server import OpenAIServer
from tests.waiting import wait_until

MODEL = "llama3.2"
CHATS = "/v1/chat/completions"
SECRET = "texto-muy-secreto"


class Verdict(BaseModel):
    scores: list[Annotated[float, Field(ge=0, le=1)]]
    reason: str


Server = OllamaServer | OpenAIServer
Chat = OllamaChat | OpenAIChat


@pytest.fixture(params=[OllamaServer, OpenAIServer])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A model server of each protocol."""
    with request.param() as running:
        yield running


def connect(server: Server, model: str = MODEL, *, credentials: str = "") -> Chat:
    """A language model of a server."""
    address = server.host.replace("http://", f"http://{credentials}")
    if isinstance(server, OpenAIServer):
        return OpenAIChat(model, base_url=f"{address}/v1")
    return OllamaChat(model, host=address)


def route(server: Server) -> str:
    """Where a server chats."""
    return "/v1/chat/completions" if isinstance(server, OpenAIServer) else "/api/chat"


@pytest.fixture
def chat(server: Server) -> Iterator[Chat]:
    with connect(server) as built:
        yield built


@pytest.fixture
def ollama_chat(ollama: OllamaServer) -> Iterator[OllamaChat]:
    with OllamaChat(MODEL, host=ollama.host) as built:
        yield built


@pytest.fixture
def openai() -> Iterator[OpenAIServer]:
    with OpenAIServer() as running:
        yield running


@pytest.fixture
def openai_chat(openai: OpenAIServer) -> Iterator[OpenAIChat]:
    with OpenAIChat(MODEL, base_url=openai.base_url) as built:
        yield built


def after(milliseconds: float) -> Deadline:
    return Deadline.after(milliseconds, time.monotonic)


def ask(chat: LanguageModel, prompt: str = "¿Qué tal?", *, ms: float = 60_000) -> Verdict:
    return chat.answer(prompt, Verdict, deadline=after(ms))


def read(chat: LanguageModel, prompt: str = "¿Qué tal?", *, ms: float = 60_000) -> list[str]:
    return list(chat.stream(prompt, deadline=after(ms)))


CALLS = pytest.mark.parametrize("call", [ask, read])


def test_an_answer_has_the_shape_asked_for(server: Server, chat: Chat) -> None:
    server.answers = lambda schema, messages: {
        "scores": [0.5, 1],
        "reason": f"{messages[-1]['content']} {schema['title']}",
    }
    assert ask(chat) == Verdict(scores=[0.5, 1.0], reason="¿Qué tal? Verdict")


def test_what_is_sent_to_ollama_makes_the_answer_deterministic(
    ollama: OllamaServer, ollama_chat: OllamaChat
) -> None:
    ollama_chat.answer("pregunta", Verdict, system="Eres un juez.", deadline=after(60_000))
    list(ollama_chat.stream("pregunta", deadline=after(60_000)))
    whole, streamed = ollama.requests_to("/api/chat")
    system, user = ({"role": "system", "content": "Eres un juez."}, {"role": "user"})
    assert whole["messages"] == [system, user | {"content": "pregunta"}]
    assert streamed["messages"] == [user | {"content": "pregunta"}]
    assert whole["format"] == Verdict.model_json_schema()
    assert "format" not in streamed
    for body in (whole, streamed):
        assert body["options"] == {"temperature": 0.0, "seed": 0, "num_ctx": 4_096}
    assert (whole["stream"], streamed["stream"]) == (False, True)


@pytest.mark.parametrize(
    ("characters", "context"), [(100, 4_096), (12_000, 8_192), (30_000, 12_288), (10**6, 32_768)]
)
def test_ollama_is_told_how_much_context_a_prompt_needs(
    ollama: OllamaServer, ollama_chat: OllamaChat, characters: int, context: int
) -> None:
    """It cuts a longer prompt silently."""
    sampling = Sampling(temperature=0.3, max_tokens=500)
    list(ollama_chat.stream("x" * characters, sampling=sampling, deadline=after(60_000)))
    (body,) = ollama.requests_to("/api/chat")
    assert body["options"] == {"temperature": 0.3, "num_ctx": context}


def test_what_is_sent_to_an_openai_server(openai: OpenAIServer, openai_chat: OpenAIChat) -> None:
    openai_chat.answer("pregunta", Verdict, system="Eres un juez.", deadline=after(60_000))
    sampling = Sampling(temperature=0.3, max_tokens=500)
    list(openai_chat.stream("pregunta", sampling=sampling, deadline=after(60_000)))
    whole, streamed = openai.requests_to("/v1/chat/completions")
    assert whole["messages"][0] == {"role": "system", "content": "Eres un juez."}
    assert (whole["temperature"], whole["seed"], "max_tokens" in whole) == (0, 0, False)
    assert whole["response_format"]["json_schema"]["name"] == "Verdict"
    assert (streamed["temperature"], streamed["max_tokens"], "seed" in streamed) == (
        0.3,
        500,
        False,
    )
    assert streamed["stream_options"] == {"include_usage": True}


def test_a_key_is_sent_and_a_wrong_one_is_named_without_being_shown(openai: OpenAIServer) -> None:
    openai.key = "sk-buena"
    with OpenAIChat(MODEL, base_url=openai.base_url, api_key=SecretStr("sk-buena")) as chat:
        assert ask(chat)
    with OpenAIChat(MODEL, base_url=openai.base_url, api_key=SecretStr("sk-mala")) as chat:
        for call in (ask, read):
            with pytest.raises(ProviderError, match="OPENAI_API_KEY") as caught:
                call(chat)
            assert "sk-mala" not in f"{caught.value}{caught.value.context}{vars(chat)}"


@pytest.mark.parametrize("key", ["sk-secreto\ny-más", "sk-secreto\x00", "sk-secretó"])
def test_a_key_that_cannot_be_sent_is_refused_without_being_shown(key: str) -> None:
    with pytest.raises(InvalidParameterError, match="OPENAI_API_KEY") as caught:
        OpenAIChat(MODEL, base_url="http://a:1/v1", api_key=SecretStr(key))
    assert "secret" not in f"{caught.value}{caught.value.context}{caught.value.__cause__!r}"
    OpenAIChat(MODEL, base_url="http://a:1/v1", api_key=SecretStr(" sk-buena\n")).close()


@pytest.mark.parametrize("seconds", [0, 1])
def test_a_server_that_asks_to_wait_is_waited_for(
    openai: OpenAIServer, openai_chat: OpenAIChat, seconds: int
) -> None:
    openai.retry_after = seconds
    openai.inject(Fault.STATUS, times=1, status=429)
    started = time.monotonic()
    assert ask(openai_chat)
    assert time.monotonic() - started >= seconds
    assert len(openai.requests) == 2


@pytest.mark.parametrize("call", [ask, read])
def test_a_prompt_that_is_too_long_says_what_to_change(
    openai: OpenAIServer, openai_chat: OpenAIChat, call: Callable[..., Any]
) -> None:
    openai.context_words = 3
    with pytest.raises(ProviderError, match="ANSWER_CONTEXT_TOKENS"):
        call(openai_chat, "una pregunta con muchas palabras")
    assert len(openai.requests) == 1


def test_a_shape_that_is_not_understood_is_asked_for_in_the_other_form(
    openai: OpenAIServer,
) -> None:
    """Once: then it is known."""
    openai.takes_json_schema = False
    openai.answers = lambda *_: {"scores": [0.5], "reason": "sí"}
    for first in (ask, stream_in_shape):
        with connect(openai) as chat:
            assert first(chat).scores == [0.5]
            assert stream_in_shape(chat).scores == [0.5]
            assert ask(chat).scores == [0.5]
        forms = [body["response_format"]["type"] for body in openai.requests_to(CHATS)]
        assert forms == ["json_schema", "json_object", "json_object", "json_object"]
        openai.requests.clear()


def stream_in_shape(chat: LanguageModel) -> Verdict:
    pieces = chat.stream("¿Qué tal?", shape=Verdict, deadline=after(60_000))
    return parsed("".join(pieces), Verdict, model=MODEL)


def test_the_end_of_a_stream_tells_what_it_took(server: Server, chat: Chat) -> None:
    ends: list[Ending] = []
    server.reply = lambda _: "uno dos tres"
    for server.done_reason in ("stop", "length"):
        list(chat.stream("¿Qué tal?", on_end=ends.append, deadline=after(60_000)))
    assert [end.is_cut for end in ends] == [False, True]
    assert all(end.prompt_tokens and end.completion_tokens for end in ends)


@CALLS
def test_a_missing_model_says_what_to_do(server: Server, call: Callable[..., Any]) -> None:
    hint = "/models" if isinstance(server, OpenAIServer) else "ollama pull no-existe:7b"
    with connect(server, "no-existe:7b") as chat, pytest.raises(ModelMissingError, match=hint):
        call(chat)
    assert len(server.requests_to(route(server))) == 1


@CALLS
@pytest.mark.parametrize("status", [429, 503])
def test_a_passing_refusal_is_retried_and_a_lasting_one_told(
    server: Server, chat: Chat, call: Callable[..., Any], status: int
) -> None:
    server.inject(Fault.STATUS, times=2, status=status)
    assert call(chat)
    assert len(server.requests) == 3
    server.inject(Fault.STATUS, status=status)
    with pytest.raises(ProviderUnavailableError, match=str(status)):
        call(chat)
    assert len(server.requests) == 6


@CALLS
def test_a_stopped_server_is_unavailable(
    server: Server, chat: Chat, call: Callable[..., Any]
) -> None:
    call(chat)
    server.stop()
    with pytest.raises(ProviderUnavailableError) as error:
        call(chat)
    assert "127.0.0.1" not in str(error.value.message)
    server.start()
    assert call(chat)


@pytest.mark.parametrize("fault", [Fault.CUT, Fault.BROKEN, Fault.UNFINISHED])
def test_a_stream_that_breaks_off_says_so_and_is_not_begun_again(
    server: Server, chat: Chat, fault: Fault
) -> None:
    """A retry would repeat the words already read, and a cut answer must not count as complete."""
    server.reply = lambda _: "uno dos tres"
    server.inject(fault)
    pieces: list[str] = []
    with pytest.raises(ProviderUnavailableError):
        pieces.extend(chat.stream("pregunta", deadline=after(60_000)))
    assert len(server.requests) == 1


@CALLS
@pytest.mark.parametrize("fault", [Fault.GARBAGE, Fault.SHAPE])
def test_an_answer_that_is_not_the_protocols_is_named_as_such(
    server: Server, chat: Chat, call: Callable[..., Any], fault: Fault
) -> None:
    server.inject(fault)
    with pytest.raises(ProviderUnavailableError, match="no se puede interpretar"):
        call(chat)
    assert len(server.requests) == 1


@CALLS
@pytest.mark.parametrize("fault", [Fault.SLOW, Fault.TRICKLE, Fault.TRICKLE_HEADERS])
def test_a_slow_server_is_left_at_the_deadline(
    server: Server, chat: Chat, call: Callable[..., Any], fault: Fault
) -> None:
    """Neither the read timeout nor a limit on pauses between bytes would end such an answer."""
    server.inject(fault, seconds=60 if fault is Fault.SLOW else 0.2)
    with pytest.raises(DeadlineExceededError):
        call(chat, ms=1_000)
    assert len(server.requests) == 1
    assert server.silences_over < 20, "the whole body takes more than a hundred"


def test_a_stream_that_falls_silent_is_left_at_the_deadline(server: Server, chat: Chat) -> None:
    server.reply = lambda _: "uno dos tres"
    server.inject(Fault.STALL, seconds=60)
    stream = chat.stream("pregunta", deadline=after(1_000))
    assert [next(stream), next(stream)] == ["uno ", "dos "]
    with pytest.raises(DeadlineExceededError):
        next(stream)
    assert server.silences_over == 0


def test_a_stream_closed_early_closes_its_connection(server: Server, chat: Chat) -> None:
    server.reply = lambda _: "uno dos tres"
    server.inject(Fault.STALL, seconds=60)
    stream = chat.stream("pregunta", deadline=after(60_000))
    assert next(stream) == "uno "
    assert server.open_connections == 1
    stream.close()
    wait_until(lambda: server.open_connections == 0)
    assert server.silences_over == 0


def test_threads_share_one_model_and_its_connections(server: Server, chat: Chat) -> None:
    server.answers = lambda _, messages: {"scores": [], "reason": messages[-1]["content"]}
    answers: dict[int, str] = {}

    def work(index: int) -> None:
        answers[index] = ask(chat, f"pregunta {index}").reason

    threads = [threading.Thread(target=work, args=(index,)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {index: f"pregunta {index}" for index in range(8)}
    assert server.open_connections <= 8


@CALLS
@pytest.mark.parametrize("fault", [Fault.STATUS, Fault.CONTENT, Fault.SHAPE, Fault.GARBAGE])
def test_neither_texts_nor_credentials_are_logged_or_told(
    server: Server,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
    call: Callable[..., Any],
    fault: Fault,
) -> None:
    caplog.set_level(logging.DEBUG)
    server.inject(fault)
    error: ProviderError | None = None
    with connect(server, credentials="ana:clave-secreta@") as chat:
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
