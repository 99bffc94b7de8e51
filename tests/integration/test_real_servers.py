"""A real Ollama at OLLAMA_HOST, or a real OpenAI-compatible server at OPENAI_BASE_URL.

What can be asked of a server that cannot be told what to answer; the rest is tested against the
test servers. Whatever the model says, even one of random weights, is a valid answer or an error
with its reason.
"""

import os
import time
from collections.abc import Iterator
from typing import Literal

import numpy as np
import pytest
from ollama import Client
from pydantic import BaseModel, SecretStr

from rag_resources.core.deadline import Deadline
from rag_resources.core.errors import DeadlineExceededError, InvalidAnswerError, ProviderError
from rag_resources.core.quotation import SourcePassage
from rag_resources.providers.ollama import OllamaChat, OllamaEmbedder
from rag_resources.providers.openai import OpenAIChat, OpenAIEmbedder
from rag_resources.providers.protocols import Ending, Sampling
from tests.language_models import answerer_of

pytestmark = pytest.mark.ollama

SERVERS = ("OLLAMA_HOST", "OPENAI_BASE_URL")
PROMPT = "¿De qué color es el cielo de día?"
SHORT = Sampling(temperature=0.0, max_tokens=40)
Chat = OllamaChat | OpenAIChat
Embedder = OllamaEmbedder | OpenAIEmbedder


def address_of(variable: str) -> str:
    """Where the server is."""
    address = os.environ.get(variable)
    if not address:
        pytest.skip(f"{variable} is not set")
    return address


def key() -> SecretStr:
    return SecretStr(os.environ.get("OPENAI_API_KEY", ""))


@pytest.fixture(params=SERVERS)
def chat(request: pytest.FixtureRequest) -> Iterator[Chat]:
    """The language model that is named, else the first that can chat."""
    with chat_at(request.param, address_of(request.param)) as made:
        yield made


def chat_at(variable: str, address: str) -> Chat:
    if variable == "OPENAI_BASE_URL":
        name = os.environ.get("OPENAI_CHAT_MODEL", "default")
        return OpenAIChat(name, base_url=address, api_key=key())
    name = os.environ.get("OLLAMA_CHAT_MODEL") or first_that_chats(address)
    return OllamaChat(name, host=address)


def first_that_chats(address: str) -> str:
    client = Client(host=address, timeout=10)
    try:
        names = [entry.model for entry in client.list().models if entry.model]
        able = [n for n in names if "completion" in (client.show(n).capabilities or [])]
    finally:
        client.close()  # type: ignore[no-untyped-call]
    if not able:
        pytest.skip("the server has no model that can chat")
    return able[0]


@pytest.fixture(params=SERVERS)
def embedder(request: pytest.FixtureRequest) -> Iterator[Embedder]:
    """The embedding model that is named."""
    with embedder_at(request.param, address_of(request.param)) as made:
        yield made


def embedder_at(variable: str, address: str) -> Embedder:
    if variable == "OPENAI_BASE_URL":
        name = os.environ.get("OPENAI_EMBEDDING_MODEL", "default")
        return OpenAIEmbedder(name, base_url=address, api_key=key())
    name = os.environ.get("OLLAMA_EMBEDDING_MODEL", "nomic-embed-text")
    return OllamaEmbedder(name, host=address)


def after(milliseconds: float) -> Deadline:
    return Deadline.after(milliseconds, time.monotonic)


class Colour(BaseModel):
    colour: Literal["azul", "verde", "rojo"]


def test_it_answers_in_the_shape_asked_for(chat: Chat) -> None:
    assert chat.answer(PROMPT, Colour, deadline=after(300_000)).colour


def test_a_stream_comes_in_pieces_and_its_end_tells_what_it_took(chat: Chat) -> None:
    ends: list[Ending] = []
    pieces = list(chat.stream(PROMPT, sampling=SHORT, on_end=ends.append, deadline=after(300_000)))
    assert len(pieces) > 1
    (end,) = ends
    if end.completion_tokens is not None:  # not every server counts them
        assert 0 < end.completion_tokens <= 40


def test_a_stream_that_is_left_leaves_the_server_ready(chat: Chat) -> None:
    stream = chat.stream("Cuenta de uno a mil.", deadline=after(300_000))
    next(stream)
    stream.close()
    assert chat.answer(PROMPT, Colour, deadline=after(300_000)).colour


def test_it_is_left_at_the_deadline(chat: Chat) -> None:
    begun = time.monotonic()
    with pytest.raises(DeadlineExceededError):
        list(chat.stream("Cuenta de uno a mil.", deadline=after(50)))
    assert time.monotonic() - begun < 5


@pytest.mark.parametrize("chat", ["OPENAI_BASE_URL"], indirect=True)
def test_a_prompt_that_is_too_long_is_refused_with_advice(chat: Chat) -> None:
    """By an Ollama it would be cut; hence that is told how much context a prompt needs."""
    with pytest.raises(ProviderError, match="ANSWER_CONTEXT_TOKENS"):
        chat.answer("palabra " * 300_000, Colour, deadline=after(300_000))


def test_an_answer_cites_passages_that_exist_and_says_what_they_say(chat: Chat) -> None:
    """Or nothing: a sentence that its sources do not say is left out."""
    passages = [
        SourcePassage("El ascensor de la escalera no funciona desde el lunes."),
        SourcePassage("Lola hizo mermelada de naranja amarga."),
    ]
    try:
        answer = answerer_of(chat).answer("¿Desde cuándo no funciona el ascensor?", passages)
    except InvalidAnswerError:
        return  # Cut after its longest answer: no valid JSON.
    for sentence in answer.sentences:
        assert sentence.sources
        assert {source.rank for source in sentence.sources} <= {1, 2}


def test_vectors_are_unit_vectors_and_the_same_alone_and_in_a_batch(embedder: Embedder) -> None:
    """The latter guards against Ollama's issue 6262."""
    texts = [f"Nota {i}: el perro número {i} corre por el parque." for i in range(20)]
    together = embedder.embed_passages(texts)
    alone = np.concatenate([embedder.embed_passages([text]) for text in texts])
    assert together.shape == (len(texts), embedder.info.dimension)
    assert np.allclose(np.linalg.norm(together, axis=1), 1, atol=1e-3)
    assert (together * alone).sum(axis=1).min() > 0.999
