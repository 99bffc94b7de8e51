"""Answers of models: any HTTP response is used, or rejected as an invalid answer."""

import json
import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag_resources.answers.language_model import MAX_ANSWER_CHARS
from rag_resources.core.configuration import TransformationConfig
from rag_resources.core.deadline import Deadline
from rag_resources.core.errors import ProviderError, RagError
from rag_resources.core.quotation import SourcePassage
from rag_resources.core.types import ModelInfo
from rag_resources.evaluation.judge import EmbeddedJudge, LanguageModelJudge
from rag_resources.providers.inputs import clean
from rag_resources.providers.ollama import OllamaChat, OllamaEmbedder
from rag_resources.retrieval.rerank_llm import LanguageModelReranker
from rag_resources.retrieval.transform import HYPOTHETICAL_CHARS, QueryTransformer
from tests.embedders import HashEmbedder
from tests.fuzz.bounds import outcome
from tests.fuzz.hostile import any_texts, heaps, json_texts, mutated
from tests.language_models import answerer_of
from tests.ollama_server import OllamaServer
from tests.property.test_query_properties import NOON

pytestmark = pytest.mark.fuzz
one_server = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])

STORED = any_texts().map(clean)
"""What a database gives back, and what a model's answer has become."""
PASSAGES = ["El ascensor no funciona. La junta lo arregla en mayo.", "Vera tiene fiebre."]
QUESTION = "¿Qué es la casa?"
EMBED = {"model": "m", "embeddings": [[0.6, 0.8], [1.0, 0.0]], "total_duration": 1}
SHOW = {"template": "", "details": {}, "model_info": {"x.context_length": 512}, "capabilities": []}
TAGS = {
    "models": [{"name": "m", "model": "nomic-embed-text:latest", "digest": "sha256:" + "a" * 64}]
}
CHAT = {
    "model": "m",
    "created_at": "2025-01-01T00:00:00Z",
    "message": {"role": "assistant", "content": "Hola"},
    "done": True,
    "done_reason": "stop",
}
CONTENTS = [
    {"intent": "abstract"},
    {"answer": "Una casa es donde se vive."},
    {"scores": [0.5, 1]},
    {"supported": [True], "relevance": 4},
    {"found": True, "answer": "En mayo.", "citations": [1]},
]


@pytest.fixture
def chat(ollama: OllamaServer) -> Iterator[OllamaChat]:
    with OllamaChat("llama3.2", host=ollama.host) as built:
        yield built


@pytest.fixture
def embedder(ollama: OllamaServer) -> Iterator[Callable[[], OllamaEmbedder]]:
    """An embedder that knows nothing about the server at each call; a new one costs 50 ms."""
    with OllamaEmbedder("nomic-embed-text", host=ollama.host) as built:

        def fresh() -> OllamaEmbedder:
            built._dimension = built._info = None
            return built

        yield fresh


def soon() -> Deadline:
    return Deadline.after(60_000, time.monotonic)


def bodies(*valid: Any) -> st.SearchStrategy[bytes]:
    """A valid body with something wrong, any JSON, or a field of a valid one as any JSON."""
    encoded = [json.dumps(each).encode() for each in valid]
    fields = [(body, name) for body in valid for name in body]

    def put(case: tuple[tuple[dict[str, Any], str], str]) -> bytes:
        (body, name), value = case
        text = json.dumps(body | {name: "@@"}).replace('"@@"', value)
        return text.encode("utf-8", "surrogatepass")

    replaced = st.tuples(st.sampled_from(fields), json_texts()).map(put)
    texts = (json_texts() | heaps()).map(lambda text: text.encode("utf-8", "surrogatepass"))
    return st.one_of(mutated(encoded), replaced, texts)


def contents() -> st.SearchStrategy[bytes]:
    """The body of a chat answer whose content is odd."""
    inner = bodies(*CONTENTS).map(lambda raw: raw.decode("utf-8", "surrogateescape"))
    odd = st.one_of(inner, any_texts())
    return odd.map(
        lambda text: json.dumps(CHAT | {"message": {"role": "assistant", "content": text}}).encode()
    )


@one_server
@given(bodies(EMBED), st.integers(1, 3))
def test_any_vectors_are_unit_vectors_or_refused(
    ollama: OllamaServer, embedder: Callable[[], OllamaEmbedder], body: bytes, count: int
) -> None:
    ollama.bodies = {"/api/embed": body}
    vectors = outcome(lambda: embedder().embed_passages(["texto"] * count))
    if isinstance(vectors, RagError):
        assert isinstance(vectors, ProviderError)
        return
    assert vectors.shape[0] == count
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-3)


@one_server
@given(bodies(SHOW), bodies(TAGS))
def test_any_description_of_a_model_is_taken_or_refused(
    ollama: OllamaServer, embedder: Callable[[], OllamaEmbedder], show: bytes, tags: bytes
) -> None:
    for path, body in (("/api/show", show), ("/api/tags", tags)):
        ollama.bodies = {path: body}
        info = outcome(lambda: embedder().info)
        assert isinstance(info, ModelInfo | ProviderError)
        if isinstance(info, ModelInfo):
            assert info.digest.encode()
            assert "\0" not in info.digest
            assert (info.max_sequence_tokens or 0) > 1


@one_server
@given(st.one_of(bodies(CHAT), contents(), contents()))
def test_any_answer_of_a_language_model_is_used_or_refused(
    ollama: OllamaServer, chat: OllamaChat, body: bytes
) -> None:
    """By all that asks for one."""
    ollama.bodies = {"/api/chat": body}
    transformer = QueryTransformer(chat, now=lambda: NOON)
    by_rules = transformer.by_rules("la casa", TransformationConfig())
    asked = [
        lambda: transformer.refined(by_rules, TransformationConfig(), deadline=soon()),
        lambda: LanguageModelReranker(chat, 2).score(QUESTION, PASSAGES, deadline=soon()),
        lambda: LanguageModelJudge(chat).judge(QUESTION, "El ascensor no funciona.", PASSAGES),
        lambda: answerer_of(chat).answer(QUESTION, [SourcePassage(own) for own in PASSAGES]),
    ]
    expanded, scores, judgement, answer = (outcome(each) for each in asked)  # type: ignore[arg-type]
    written = getattr(expanded, "hypothetical_answer", None)
    assert written is None or 0 < len(written.encode()) <= 4 * HYPOTHETICAL_CHARS
    if not isinstance(scores, RagError):
        assert len(scores) == len(PASSAGES)
        assert all(0 <= score <= 1 for score in scores)
    if not isinstance(judgement, RagError):
        assert 0 <= judgement.answer_relevance <= 1
    if not isinstance(answer, RagError):
        assert answer.text.encode()
        assert len(answer.text) <= MAX_ANSWER_CHARS
        assert all(1 <= rank <= len(PASSAGES) for rank in answer.ranks)
    refused = [each for each in (expanded, scores, judgement, answer) if isinstance(each, RagError)]
    assert all(isinstance(each, ProviderError) for each in refused)


@one_server
@given(st.one_of(bodies(CHAT), st.lists(bodies(CHAT), max_size=4).map(b"\n".join)))
def test_any_stream_of_a_language_model_ends_or_is_refused(
    ollama: OllamaServer, chat: OllamaChat, body: bytes
) -> None:
    ollama.bodies = {"/api/chat": body}
    parts = outcome(lambda: list(chat.stream("¿Qué tal?", deadline=soon())))
    assert isinstance(parts, ProviderError) or all(isinstance(part, str) for part in parts)


@given(
    STORED,
    STORED.map(lambda text: text[:MAX_ANSWER_CHARS]),
    st.lists(STORED, min_size=1, max_size=3),
)
def test_any_answer_is_judged_by_the_rules_in_time(
    question: str, answer: str, passages: list[str]
) -> None:
    judgement = outcome(lambda: EmbeddedJudge(HashEmbedder()).judge(question, answer, passages))
    assert not isinstance(judgement, RagError)
    assert 0 <= judgement.answer_relevance <= 1
    assert judgement.faithfulness is None or math.isfinite(judgement.faithfulness)
