"""Model servers as they behave beside what the protocols say: thoughts, fences, refusals."""

import base64
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest
from pydantic import BaseModel

from rag_resources.core.deadline import Deadline
from rag_resources.providers.ollama import OllamaChat
from rag_resources.providers.openai import OpenAIChat, OpenAIEmbedder
from rag_resources.providers.protocols import Ending, Sampling
from rag_resources.providers.server_models import parsed

Json = dict[str, Any]
WHOLE = {"finish_reason": "stop"}


class Colour(BaseModel):
    colour: str


@dataclass
class OddServer:
    """Answers each request as a function says: with a status and the lines of a body."""

    answer: Callable[[Json], tuple[int, list[Any]]]
    bodies: list[Json] = field(default_factory=list)
    url: str = ""


@pytest.fixture
def served() -> Iterator[Callable[[Callable[[Json], tuple[int, list[Any]]]], OddServer]]:
    running: list[ThreadingHTTPServer] = []

    def serve(answer: Callable[[Json], tuple[int, list[Any]]]) -> OddServer:
        odd = OddServer(answer)

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None: ...

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                odd.bodies.append(body)
                status, lines = odd.answer(body)
                self.send_response(status)
                self.end_headers()
                prefix = "data: " if body.get("stream") and "chat/" in self.path else ""
                for line in lines:
                    text = line if isinstance(line, str) else json.dumps(line, ensure_ascii=False)
                    self.wfile.write((prefix + text + "\n\n").encode())

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        running.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        odd.url = f"http://127.0.0.1:{server.server_port}"
        return odd

    yield serve
    for server in running:
        server.shutdown()
        server.server_close()


Serve = Callable[[Callable[[Json], tuple[int, list[Any]]]], OddServer]


def soon() -> Deadline:
    return Deadline.after(20_000, time.monotonic)


def written(body: Json, text: str, **end: Any) -> tuple[int, list[Any]]:
    """A whole answer, or a stream of it whose last part has no delta."""
    if not body["stream"]:
        return 200, [{"choices": [{"message": {"content": text}, **WHOLE}]}]
    parts = [{"choices": [{"delta": {"content": letter}}]} for letter in text]
    return 200, [*parts, {"choices": [{**WHOLE, **end}]}, "[DONE]"]


JSON = '{"colour": "rojo"}'


@pytest.mark.parametrize(
    "text",
    [
        JSON,
        f"<think>¿{{verde}}? No.</think>\n{JSON}",
        f'El borrador {{"colour": 3}} no vale.</think>{JSON}',
        f"```json\n{JSON}\n```",
        f"Aquí está el JSON pedido:\n\n{JSON}\n\n¿Algo más?",
    ],
)
def test_an_answer_is_the_json_within_what_is_written(text: str, served: Serve) -> None:
    odd = served(lambda body: written(body, text))
    with OpenAIChat("m", base_url=odd.url) as chat:
        assert chat.answer("¿?", Colour, deadline=soon()).colour == "rojo"
        pieces = "".join(chat.stream("¿?", shape=Colour, deadline=soon()))
    assert parsed(pieces, Colour, model="m").colour == "rojo"
    assert "<think>" not in pieces


@pytest.mark.parametrize("status", [400, 422])
@pytest.mark.parametrize(
    "refused",
    [
        {"max_tokens"},
        {"max_tokens", "max_completion_tokens"},
        {"temperature"},
        {"stream_options"},
        {"response_format"},
        {"seed", "temperature", "stream_options", "max_tokens", "response_format"},
    ],
    ids=lambda refused: "+".join(sorted(refused)),
)
@pytest.mark.parametrize("names_it", [True, False])
def test_what_a_server_refuses_is_left_out_and_remembered(
    status: int, refused: set[str], names_it: bool, served: Serve
) -> None:
    def answer(body: Json) -> tuple[int, list[Any]]:
        if wrong := sorted(refused & body.keys()):
            return status, [{"error": {"message": f"no {wrong[0]}" if names_it else "no"}}]
        return written(body, JSON)

    odd = served(answer)

    def call(chat: OpenAIChat) -> str:
        asked = chat.stream("¿?", shape=Colour, sampling=Sampling(max_tokens=50), deadline=soon())
        return parsed("".join(asked), Colour, model="m").colour

    with OpenAIChat("m", base_url=odd.url) as chat:
        assert call(chat) == "rojo"
        before = len(odd.bodies)
        assert call(chat) == "rojo"
    assert len(odd.bodies) == before + 1


def test_a_model_that_thinks_its_tokens_away_is_asked_without_a_limit(served: Serve) -> None:
    def answer(body: Json) -> tuple[int, list[Any]]:
        if "max_tokens" in body:
            return written(body, "<think>Veamos", finish_reason="length")
        return written(body, "<think>Veamos…</think>Sí.")

    odd = served(answer)
    ends: list[Ending] = []
    with OpenAIChat("m", base_url=odd.url) as chat:
        for _ in range(2):
            pieces = chat.stream(
                "¿?", sampling=Sampling(max_tokens=9), on_end=ends.append, deadline=soon()
            )
            assert "".join(pieces) == "Sí."
    assert ["max_tokens" in body for body in odd.bodies] == [True, False, False]
    assert not ends[-1].is_cut


def test_ollama_does_not_think_and_is_cut_by_what_it_writes(served: Serve) -> None:
    def answer(body: Json) -> tuple[int, list[Any]]:
        if "think" in body:
            return 400, [{"error": "this model does not support thinking"}]
        parts: list[Any] = [{"message": {"thinking": "mmm"}, "done": False}] * 50
        parts += [{"message": {"content": "sí "}, "done": False}] * 50
        return 200, [*parts, {"message": {"content": ""}, "done": True, "done_reason": "stop"}]

    odd = served(answer)
    ends: list[Ending] = []
    with OllamaChat("m", host=odd.url) as chat:
        pieces = chat.stream(
            "¿?", sampling=Sampling(max_tokens=9), on_end=ends.append, deadline=soon()
        )
        assert "".join(pieces) == "sí " * 9
    assert [body.get("think") for body in odd.bodies] == [False, None]
    assert all("num_predict" not in body["options"] for body in odd.bodies)
    assert ends[0].is_cut


def in_base64(vector: list[float]) -> str:
    return base64.b64encode(np.array(vector, "<f4").tobytes()).decode()


@pytest.mark.parametrize(
    "form",
    [
        lambda vectors: [{"embedding": own} for own in vectors],
        lambda vectors: [{"embedding": in_base64(own)} for own in vectors],
        lambda vectors: [
            {"embedding": own, "index": place} for place, own in reversed([*enumerate(vectors)])
        ],
    ],
    ids=["without index", "base64", "in another order"],
)
def test_vectors_are_read_in_every_form(
    form: Callable[[list[list[float]]], list[Json]], served: Serve
) -> None:
    def answer(body: Json) -> tuple[int, list[Any]]:
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        vectors = [[1.0, 0.0] if "uno" in text else [0.0, 1.0] for text in texts]
        return 200, [{"data": form(vectors)}]

    with OpenAIEmbedder("m", base_url=served(answer).url) as embedder:
        assert embedder.embed_passages(["uno", "dos"]).tolist() == [[1, 0], [0, 1]]
