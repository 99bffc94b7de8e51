"""A small, strict OpenAI-compatible server for tests: real HTTP, and faults.

It shares models, faults and vectors with `tests.ollama_server`. Requests that the documentation of
the protocol does not describe are refused with 400, as a check on the client; real servers are more
lenient.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from tests.ollama_server import (
    BadRequestError,
    Fault,
    Handler,
    Json,
    OllamaServer,
    check,
    embed_words,
    spoiled_vectors,
)

MAX_INPUTS = 100


@dataclass
class OpenAIServer(OllamaServer):
    """An OpenAI-compatible server on a free port of 127.0.0.1, as a context manager.

    Attributes:
        key: The bearer token it wants; empty wants none.
        retry_after: Seconds of the header `Retry-After` of its 429s; None sends none.
        context_words: Longest prompt in words; a longer one is refused as llama-server does.
        refuses_second: Whether it ends a kept connection at its second request.
        takes_json_schema: Whether a shape is asked for as OpenAI does; otherwise as the server of
            llama-cpp-python wants it, which answers 500 to everything else. None: in no form.
    """

    key: str = ""
    retry_after: int | None = None
    context_words: int = 1_000_000_000
    refuses_second: bool = False
    takes_json_schema: bool | None = True

    def handler(self) -> type[Handler]:
        """What answers a connection."""
        return _OpenAIHandler

    @property
    def base_url(self) -> str:
        """Address up to the version."""
        return f"{self.host}/v1"

    def full_name(self, model: str) -> str:
        """Return the full name of a model.

        Raises:
            BadRequestError: The server lacks the model (404).
        """
        try:
            return super().full_name(model)
        except BadRequestError:
            message = f"The model `{model}` does not exist"
            raise BadRequestError(message, status=404) from None


class _OpenAIHandler(Handler):
    STREAM_TYPE = "text/event-stream"
    _answered = 0

    @property
    def _openai(self) -> OpenAIServer:
        served = self.server.ollama
        assert isinstance(served, OpenAIServer)
        return served

    def do_GET(self) -> None:
        self._reply(lambda: self._route({"/v1/models": self._models})())

    def do_POST(self) -> None:
        routes = {"/v1/embeddings": self._embeddings, "/v1/chat/completions": self._completions}
        self._reply(lambda: self._route(routes)(self._body()))

    def _body(self) -> Json:
        body = super()._body()
        if self._openai.refuses_second and self._answered:
            raise ConnectionAbortedError
        self._answered += 1
        if self._openai.key and self.headers.get("Authorization") != f"Bearer {self._openai.key}":
            raise BadRequestError("Incorrect API key provided", status=401)
        return body

    def _error_body(self, error: BadRequestError) -> Json:
        kind = getattr(error, "kind", "invalid_request_error")
        return {"error": {"message": str(error), "type": kind, "code": error.status}}

    def send_response(self, code: int, message: str | None = None) -> None:
        """Send a status, and when to come again."""
        super().send_response(code, message)
        if code == 429 and self._openai.retry_after is not None:
            self.send_header("Retry-After", str(self._openai.retry_after))

    def _message(self, payload: Json) -> Json:
        message: Json = payload["choices"][0]["message"]
        return message

    def _spoil_vectors(self, payload: Json, fault: Fault) -> Json:
        vectors = spoiled_vectors([item["embedding"] for item in payload["data"]], fault)
        payload["data"] = _items(vectors)
        return payload

    def _parts_of_text(self, text: str) -> Iterator[Json]:
        return _chunks("test", text, self._openai.done_reason, usage=None)

    def _stream(self, parts: Iterator[Json]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", self.STREAM_TYPE)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        ended = False
        for part in parts:
            self._event(json.dumps(part, ensure_ascii=False))
            ended = ended or any(each.get("finish_reason") for each in part.get("choices", []))
        if ended:
            self._event("[DONE]")
        self.wfile.write(b"0\r\n\r\n")

    def _event(self, data: str) -> None:
        event = f"data: {data}\n\n".encode("utf-8", "replace")
        self.wfile.write(f"{len(event):x}\r\n".encode() + event + b"\r\n")

    # What each endpoint may be given, by the documentation: name to type.
    _EMBEDDINGS: ClassVar[dict[str, Any]] = {
        "model": str,
        "input": (str, list),
        "encoding_format": str,
        "dimensions": int,
        "user": str,
    }
    _COMPLETIONS: ClassVar[dict[str, Any]] = {
        "model": str,
        "messages": list,
        "temperature": (int, float),
        "seed": int,
        "max_tokens": int,
        "response_format": dict,
        "stream": bool,
        "stream_options": dict,
    }

    def _models(self) -> Json:
        names = [*self._openai.embedding_models, *self._openai.chat_models]
        return {"object": "list", "data": [{"id": name, "object": "model"} for name in names]}

    def _embeddings(self, body: Json) -> Json:
        check(body, self._EMBEDDINGS, required=("model", "input"))
        name = self._openai.full_name(body["model"])
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        if not 0 < len(texts) <= MAX_INPUTS:
            raise BadRequestError(f"input must have 1 to {MAX_INPUTS} texts")
        if not all(isinstance(text, str) and text.strip() for text in texts):
            raise BadRequestError("a text is empty")
        if body.get("encoding_format") != "float":
            raise BadRequestError("only floats are known here")
        dimension = self._openai.embedding_models[name]
        # In another order: the indices tell which is which.
        data = _items([embed_words(text, dimension) for text in texts])[::-1]
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        return {"object": "list", "data": data, "model": body["model"], "usage": usage}

    def _completions(self, body: Json) -> Json | Iterator[Json]:
        check(body, self._COMPLETIONS, required=("model", "messages"))
        served = self._openai
        if served.full_name(body["model"]) not in served.chat_models:
            raise BadRequestError(f"{body['model']} does not chat")
        messages = body["messages"]
        words = sum(len(message["content"].split()) for message in messages)
        if words > served.context_words:
            error = BadRequestError("the request exceeds the available context size")
            error.kind = "exceed_context_size_error"  # type: ignore[attr-defined]
            raise error
        wanted = body.get("response_format")
        if wanted is None:
            content = served.reply(messages)
        else:
            form = {True: "json_schema", False: "json_object"}.get(served.takes_json_schema)
            if wanted["type"] != form:
                raise BadRequestError(f"response_format.type must be '{form}'", status=500)
            schema = wanted["json_schema"]["schema"] if form == "json_schema" else wanted["schema"]
            if not _is_strict(schema):
                raise BadRequestError("Invalid schema for response_format")
            content = json.dumps(served.answers(schema, messages), ensure_ascii=False)
        usage = {"prompt_tokens": words, "completion_tokens": len(content.split())}
        if body.get("stream"):
            told = usage if body.get("stream_options", {}).get("include_usage") else None
            return _chunks(body["model"], content, served.done_reason, usage=told)
        message = {"role": "assistant", "content": content}
        choice = {"index": 0, "message": message, "finish_reason": served.done_reason}
        return {"object": "chat.completion", "choices": [choice], "usage": usage}


def _items(vectors: list[list[float]]) -> list[Json]:
    return [
        {"object": "embedding", "index": index, "embedding": vector}
        for index, vector in enumerate(vectors)
    ]


def _chunks(model: str, content: str, done_reason: str, *, usage: Json | None) -> Iterator[Json]:
    base = {"object": "chat.completion.chunk", "model": model}
    for part in re.findall(r"\S+\s*", content):
        choice = {"index": 0, "delta": {"content": part}, "finish_reason": None}
        yield {**base, "choices": [choice]}
    yield {**base, "choices": [{"index": 0, "delta": {}, "finish_reason": done_reason}]}
    if usage is not None:
        yield {**base, "choices": [], "usage": usage}


def _is_strict(schema: Any) -> bool:
    """Whether every object of a schema requires all of its fields and allows no others."""
    if isinstance(schema, list):
        return all(map(_is_strict, schema))
    if not isinstance(schema, dict):
        return True
    if schema.get("type") == "object" and (
        schema.get("additionalProperties") is not False
        or set(schema.get("required", ())) != set(schema.get("properties", {}))
    ):
        return False
    return all(map(_is_strict, schema.values()))
