"""A small, strict Ollama server for tests: the documented protocol over real HTTP, and faults.

Its vectors are deterministic and share components where texts share words, so similar texts are
similar. Requests that the documentation does not describe are refused with 400, as a check on the
client; a real server is more lenient.
"""

import hashlib
import json
import math
import re
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, ClassVar, Self

VERSION = "0.12.6"
_CREATED_AT = "2025-01-01T00:00:00.000000Z"
_COMPONENTS_PER_WORD = 8
_LOOK_EVERY_S = 0.01

NOT_JSON = 'Claro, aquí tienes: {"scores": [1,'
"""What a chat says with `Fault.CONTENT`."""

Json = dict[str, Any]


class Fault(StrEnum):
    """The faults that a test can inject into an answer."""

    STATUS = "status"
    """An error status with Ollama's error body."""
    SLOW = "slow"
    """Silence for some seconds, then the right answer."""
    STALL = "stall"
    """Silence for some seconds in the middle of a stream, then the rest."""
    TRICKLE = "trickle"
    """The right headers, then a byte of the body every some seconds."""
    TRICKLE_HEADERS = "trickle_headers"
    """The same from the first byte of the headers on."""
    CUT = "cut"
    """The connection ends in the middle of the body or stream."""
    BROKEN = "broken"
    """A stream that ends with an error in the middle, in Ollama's form."""
    UNFINISHED = "unfinished"
    """A stream that ends in good order, but before its last part."""
    CONTENT = "content"
    """A chat's message that is not the JSON asked for."""
    DIMENSION = "dimension"
    """Vectors one component short."""
    COUNT = "count"
    """One vector too few."""
    RAGGED = "ragged"
    """The last vector is one component short."""
    NAN = "nan"
    """A component that is not a number."""
    ZERO = "zero"
    """The first vector is zero."""
    GARBAGE = "garbage"
    """A body that is not JSON."""
    SHAPE = "shape"
    """JSON without what it should hold."""


@dataclass
class _Injected:
    fault: Fault
    remaining: int
    path: str | None
    status: int
    seconds: float


@dataclass
class Request:
    """A request as received."""

    path: str
    body: Json
    authorization: str | None = None


class BadRequestError(Exception):
    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


@dataclass
class OllamaServer:
    """An Ollama server on a free port of 127.0.0.1, as a context manager.

    Attributes:
        embedding_models: Embedding models it has (full names), and their dimensions.
        chat_models: Chat models it has (full names).
        context_length: What `/api/show` tells of every model; `None` tells nothing.
        reply: Gives the answer of `/api/chat` from its messages, unless a JSON schema is asked for.
        answers: Gives the value to answer such a schema with, from it and the messages; the
            smallest instance of the schema unless told otherwise.
        done_reason: Why every answer ended.
        bodies: By path, a fixed body that replaces the regular answer.
        requests: Every request so far, well-formed or not.
        silences_over: How many silences ended with the client still connected.
    """

    embedding_models: dict[str, int] = field(
        default_factory=lambda: {"nomic-embed-text:latest": 768, "bge-m3:latest": 1024}
    )
    chat_models: list[str] = field(default_factory=lambda: ["llama3.2:latest"])
    context_length: int | None = 8192
    reply: Callable[[list[Json]], str] = field(
        default=lambda messages: f"Respuesta a: {messages[-1]['content']}"
    )
    answers: Callable[[Json, list[Json]], Any] = field(
        default=lambda schema, _: smallest_instance(schema)
    )
    done_reason: str = "stop"
    bodies: dict[str, bytes] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    silences_over: int = 0

    def __post_init__(self) -> None:
        self._faults: list[_Injected] = []
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._server: _HttpServer | None = None
        self._port = 0

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def handler(self) -> "type[Handler]":
        """What answers a connection."""
        return Handler

    @property
    def host(self) -> str:
        """Address, such as "http://127.0.0.1:40001"."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def open_connections(self) -> int:
        """Open connections; one that the client closes disappears soon."""
        return self._server.n_connections if self._server is not None else 0

    def start(self) -> None:
        """Listen; after a `stop`, on the same port."""
        self._stopping.clear()
        self._server = _HttpServer(("127.0.0.1", self._port), self, self.handler())
        self._port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def stop(self) -> None:
        """Stop listening and end open connections."""
        if self._server is not None:
            self._stopping.set()
            self._server.shutdown()
            self._server.server_close()
            self._server.end_connections()
            self._server = None

    def inject(
        self,
        fault: Fault,
        *,
        times: int = 1_000_000,
        path: str | None = None,
        status: int = 500,
        seconds: float = 1.0,
    ) -> None:
        """Make the next `times` requests (to `path`, or to any) go wrong; the last call wins."""
        with self._lock:
            self._faults.insert(0, _Injected(fault, times, path, status, seconds))

    def heal(self) -> None:
        """Forget every fault."""
        with self._lock:
            self._faults.clear()

    def requests_to(self, path: str) -> list[Json]:
        """Bodies of the requests to a path, oldest first."""
        return [request.body for request in self.requests if request.path == path]

    def next_fault(self, path: str) -> _Injected | None:
        """Take the fault of a request to `path`, if there is one."""
        with self._lock:
            for injected in self._faults:
                if injected.remaining > 0 and injected.path in (None, path):
                    injected.remaining -= 1
                    return injected
        return None

    def be_silent(self, seconds: float, connection: socket.socket) -> None:
        """Stay silent for a while.

        Raises:
            ConnectionAbortedError: The client left, or the server is to stop.
        """
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if self._stopping.wait(_LOOK_EVERY_S) or _has_left(connection):
                raise ConnectionAbortedError
        with self._lock:
            self.silences_over += 1

    def full_name(self, model: str) -> str:
        """Complete a model's name by its tag.

        Raises:
            BadRequestError: The server lacks the model (404).
        """
        name = model if ":" in model.rpartition("/")[2] else f"{model}:latest"
        if name not in self.embedding_models and name not in self.chat_models:
            message = f'model "{model}" not found, try pulling it first'
            raise BadRequestError(message, status=404)
        return name


def embed_words(text: str, dimension: int) -> list[float]:
    """Embed a text by hashing its words.

    Returns:
        `dimension` components, L2-normalised; texts that share words have a higher cosine.
    """
    vector = [0.0] * dimension
    for word in re.findall(r"\w+", text.lower()) or [""]:
        digest = hashlib.sha256(word.encode()).digest()
        for index in range(_COMPONENTS_PER_WORD):
            number = int.from_bytes(digest[4 * index : 4 * index + 4], "little")
            vector[(number >> 1) % dimension] += 1.0 if number & 1 else -1.0
    norm = math.sqrt(sum(value * value for value in vector))
    return [value / norm for value in vector] if norm else [1.0] + [0.0] * (dimension - 1)


def smallest_instance(schema: Json) -> Any:
    """Build the smallest value that a JSON schema (types, enum, const, $ref) accepts."""
    return _instance(schema, schema)


def _instance(schema: Json, root: Json) -> Any:
    if "$ref" in schema:
        target: Any = root
        for part in schema["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        return _instance(target, root)
    if "const" in schema or "enum" in schema:
        return schema["const"] if "const" in schema else schema["enum"][0]
    if "anyOf" in schema:
        return _instance(schema["anyOf"][0], root)
    kind = schema.get("type", "object")
    if kind == "object":
        properties = schema.get("properties", {})
        required = schema.get("required", list(properties))
        return {name: _instance(properties.get(name, {}), root) for name in required}
    if kind == "array":
        return [_instance(schema.get("items", {}), root)] * schema.get("minItems", 0)
    minimum = schema.get("minimum", 0)
    plain = {"string": "", "integer": minimum, "number": minimum, "boolean": False, "null": None}
    return plain[kind]


def _has_left(connection: socket.socket) -> bool:
    readable, _, _ = select.select([connection], [], [], 0)
    return bool(readable) and not connection.recv(1, socket.MSG_PEEK)


class _HttpServer(ThreadingHTTPServer):
    daemon_threads = True
    # A restarted server takes the port of its predecessor.
    allow_reuse_address = True

    def __init__(
        self, address: tuple[str, int], ollama: OllamaServer, handler: "type[Handler]"
    ) -> None:
        super().__init__(address, handler)
        self.ollama = ollama
        self._connections: set[socket.socket] = set()
        self._guard = threading.Lock()

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._guard:
            self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._guard:
            self._connections.discard(request)
        super().shutdown_request(request)

    @property
    def n_connections(self) -> int:
        with self._guard:
            return len(self._connections)

    def end_connections(self) -> None:
        with self._guard:
            connections = list(self._connections)
        for connection in connections:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue  # The client was faster.

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Stay quiet: several tests are about clients that give up."""


class Handler(BaseHTTPRequestHandler):
    server: _HttpServer
    protocol_version = "HTTP/1.1"
    # Headers and body go out in two writes: without this, Nagle adds 40 ms to each answer.
    disable_nagle_algorithm = True
    STREAM_TYPE = "application/x-ndjson"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - inherited name
        """Stay quiet."""

    def do_GET(self) -> None:
        routes = {"/api/tags": self._tags, "/api/version": lambda: {"version": VERSION}}
        self._reply(lambda: self._route(routes)())

    def do_POST(self) -> None:
        routes = {"/api/embed": self._embed, "/api/show": self._show, "/api/chat": self._chat}
        self._reply(lambda: self._route(routes)(self._body()))

    def _route(self, routes: dict[str, Any]) -> Any:
        if self.path not in routes:
            raise BadRequestError("404 page not found", status=404)
        return routes[self.path]

    def _body(self) -> Json:
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self._consumed = True
        if "application/json" not in self.headers.get("Content-Type", ""):
            raise BadRequestError("Content-Type must be application/json")
        try:
            body = json.loads(raw)
        except ValueError as error:
            raise BadRequestError(f"invalid JSON: {error}") from error
        if not isinstance(body, dict):
            raise BadRequestError("the body must be an object")
        authorization = self.headers.get("Authorization")
        self.server.ollama.requests.append(Request(self.path, body, authorization))
        return body

    def _reply(self, make: Callable[[], Json | Iterator[Json]]) -> None:
        self._consumed = self.command == "GET"
        try:
            payload = make()
            fault = self.server.ollama.next_fault(self.path)
            if fault is not None:
                payload = self._spoil(payload, fault)
        except BadRequestError as error:
            self._send(error.status, self._error_body(error))
            return
        if self.path in self.server.ollama.bodies:
            self._send_bytes(200, self.server.ollama.bodies[self.path])
        elif isinstance(payload, dict):
            self._send(200, payload)
        else:
            self._stream(payload)

    def _error_body(self, error: "BadRequestError") -> Json:
        return {"error": str(error)}

    def _spoil(self, payload: Any, injected: _Injected) -> Any:
        fault = injected.fault
        if fault is Fault.STATUS:
            raise BadRequestError("something went wrong", status=injected.status)
        if fault is Fault.SLOW:
            self._be_silent(injected)
            return payload
        if fault in (Fault.TRICKLE, Fault.TRICKLE_HEADERS):
            self._trickle(payload, injected)
            raise ConnectionAbortedError
        if fault is Fault.GARBAGE:
            self._send_bytes(200, b"<html>Bad gateway</html>")
            raise ConnectionAbortedError
        if fault is Fault.SHAPE:
            return {"unexpected": []}
        if not isinstance(payload, dict):
            return self._spoil_stream(list(payload), injected)
        if fault is Fault.CUT:
            self._cut(payload)
            raise ConnectionAbortedError
        if fault is Fault.CONTENT:
            self._message(payload)["content"] = NOT_JSON
            return payload
        return self._spoil_vectors(payload, fault)

    def _message(self, payload: Json) -> Json:
        message: Json = payload["message"]
        return message

    def _spoil_vectors(self, payload: Json, fault: Fault) -> Json:
        payload["embeddings"] = spoiled_vectors(payload["embeddings"], fault)
        return payload

    def _spoil_stream(self, parts: list[Json], injected: _Injected) -> Iterator[Json]:
        half = 0 if injected.fault is Fault.CONTENT else len(parts) // 2
        yield from parts[:half]
        if injected.fault is Fault.CUT:
            raise ConnectionAbortedError
        if injected.fault is Fault.CONTENT:
            yield from self._parts_of_text(NOT_JSON)
        if injected.fault is Fault.BROKEN:
            yield {"error": "llama runner process has terminated"}
        if injected.fault is Fault.STALL:
            self._be_silent(injected)
            yield from parts[half:]

    def _parts_of_text(self, text: str) -> Iterator[Json]:
        return _chat_parts("test", text, self.server.ollama.done_reason)

    def _be_silent(self, injected: _Injected) -> None:
        self.server.ollama.be_silent(injected.seconds, self.connection)

    def _trickle(self, payload: Any, injected: _Injected) -> None:
        body = json.dumps(payload if isinstance(payload, dict) else list(payload)).encode()
        kind = "application/json" if isinstance(payload, dict) else self.STREAM_TYPE
        head = (
            f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
        ).encode()
        slow = body
        if injected.fault is Fault.TRICKLE_HEADERS:
            slow = head + body
        else:
            self.wfile.write(head)
        for byte in slow:
            self.wfile.write(bytes([byte]))
            self._be_silent(injected)

    def _cut(self, payload: Json) -> None:
        data = json.dumps(payload).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data[: len(data) // 2])
        self.close_connection = True

    def _send(self, status: int, payload: Json) -> None:
        self._send_bytes(status, json.dumps(payload).encode())

    def _send_bytes(self, status: int, data: bytes) -> None:
        if not self._consumed:
            # What is left of the request would be read as the next one.
            self.close_connection = True
        self.send_response(status)
        self.send_header("Content-Type", "application/json; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, parts: Iterator[Json]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", self.STREAM_TYPE)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for part in parts:
            line = json.dumps(part).encode() + b"\n"
            self.wfile.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")
        self.wfile.write(b"0\r\n\r\n")

    # What each endpoint may be given, by the documentation: name to type.
    _EMBED: ClassVar[dict[str, Any]] = {
        "model": str,
        "input": (str, list),
        "truncate": bool,
        "options": dict,
        "keep_alive": (str, int, float),
        "dimensions": int,
    }
    _SHOW: ClassVar[dict[str, Any]] = {"model": str, "verbose": bool}
    _CHAT: ClassVar[dict[str, Any]] = {
        "model": str,
        "messages": list,
        "tools": list,
        "think": (bool, str),
        "format": (str, dict),
        "options": dict,
        "stream": bool,
        "keep_alive": (str, int, float),
    }

    def _tags(self) -> Json:
        ollama = self.server.ollama
        ollama.requests.append(Request(self.path, {}))
        names = [*ollama.embedding_models, *ollama.chat_models]
        return {"models": [_description(name) for name in names]}

    def _show(self, body: Json) -> Json:
        check(body, self._SHOW, required=("model",))
        ollama = self.server.ollama
        name = ollama.full_name(body["model"])
        info: Json = {"general.architecture": "test"}
        if ollama.context_length is not None:
            info["test.context_length"] = ollama.context_length
        if name in ollama.embedding_models:
            info["test.embedding_length"] = ollama.embedding_models[name]
        kind = "embedding" if name in ollama.embedding_models else "completion"
        details = _description(name)["details"]
        return {"template": "", "details": details, "model_info": info, "capabilities": [kind]}

    def _embed(self, body: Json) -> Json:
        check(body, self._EMBED, required=("model", "input"))
        ollama = self.server.ollama
        name = ollama.full_name(body["model"])
        if name not in ollama.embedding_models:
            raise BadRequestError("this model does not support embeddings", status=501)
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        if not all(isinstance(text, str) for text in texts):
            raise BadRequestError("invalid input type")
        dimension = ollama.embedding_models[name]
        return {
            "model": body["model"],
            "embeddings": [embed_words(text, dimension) for text in texts],
            "total_duration": 1,
            "load_duration": 1,
            "prompt_eval_count": sum(len(text.split()) for text in texts),
        }

    def _chat(self, body: Json) -> Json | Iterator[Json]:
        check(body, self._CHAT, required=("model", "messages"))
        ollama = self.server.ollama
        if ollama.full_name(body["model"]) not in ollama.chat_models:
            raise BadRequestError(f'"{body["model"]}" does not support chat')
        messages = body["messages"]
        for message in messages:
            if not isinstance(message, dict) or not isinstance(message.get("content"), str):
                raise BadRequestError("a message needs a content")
            if message.get("role") not in ("system", "user", "assistant", "tool"):
                raise BadRequestError("a message needs a known role")
        if isinstance(body.get("format"), dict):
            content = json.dumps(ollama.answers(body["format"], messages), ensure_ascii=False)
        elif body.get("format") == "json":
            content = json.dumps({"answer": ollama.reply(messages)})
        else:
            content = ollama.reply(messages)
        if body.get("stream", True):
            return _chat_parts(body["model"], content, ollama.done_reason)
        return _chat_answer(body["model"], content, ollama.done_reason)


def spoiled_vectors(vectors: list[list[float]], fault: Fault) -> list[list[float]]:
    """Return vectors with a fault."""
    if fault is Fault.DIMENSION:
        return [vector[:-1] for vector in vectors]
    if fault is Fault.RAGGED:
        vectors[-1].pop()
    elif fault is Fault.COUNT:
        vectors.pop()
    elif fault is Fault.NAN:
        vectors[0][0] = math.nan
    elif fault is Fault.ZERO:
        vectors[0] = [0.0] * len(vectors[0])
    return vectors


def check(body: Json, allowed: dict[str, Any], required: tuple[str, ...]) -> None:
    for name, value in body.items():
        if name not in allowed:
            raise BadRequestError(f"unknown field {name}")
        if not isinstance(value, allowed[name]):
            raise BadRequestError(f"wrong type of {name}")
    for name in required:
        if name not in body or body[name] == "":
            raise BadRequestError(f"{name} is required")


def _description(name: str) -> Json:
    return {
        "name": name,
        "model": name,
        "modified_at": _CREATED_AT,
        "size": 1_000_000,
        "digest": hashlib.sha256(name.encode()).hexdigest(),
        "details": {
            "parent_model": "",
            "format": "gguf",
            "family": "test",
            "families": ["test"],
            "parameter_size": "1M",
            "quantization_level": "F16",
        },
    }


def _chat_answer(model: str, content: str, done_reason: str | None = None) -> Json:
    answer: Json = {
        "model": model,
        "created_at": _CREATED_AT,
        "message": {"role": "assistant", "content": content},
        "done": done_reason is not None,
    }
    if done_reason is not None:
        counts = ("prompt_eval_count", "eval_count")
        durations = ("total_duration", "load_duration", "prompt_eval_duration", "eval_duration")
        answer |= {"done_reason": done_reason, **dict.fromkeys((*counts, *durations), 1)}
    return answer


def _chat_parts(model: str, content: str, done_reason: str) -> Iterator[Json]:
    for part in re.findall(r"\S+\s*", content):
        yield _chat_answer(model, part)
    yield _chat_answer(model, "", done_reason)
