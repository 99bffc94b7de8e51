"""What every request of the API gets, whatever happens inside."""

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send
from structlog.testing import capture_logs

from rag_resources.api.middleware import EveryRequest
from rag_resources.languages.messages import _

SECRET = "la clave de la caja"


async def crashing(_: Scope, __: Receive, ___: Send) -> None:
    raise ValueError(SECRET)


async def crashing_late(_: Scope, __: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    raise ValueError(SECRET)


def request(app: Any) -> list[Message]:
    """Send a request; return what the server is told to send."""
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/v1/retrieve", "headers": []}
    asyncio.run(EveryRequest(app, max_body_kb=1)(scope, receive, send))
    return sent


def test_an_unexpected_error_is_a_problem_that_tells_nothing_of_it() -> None:
    """The log has its type and place."""
    with capture_logs() as logs:
        start, body = request(crashing)

    assert start["status"] == 500
    headers = dict(start["headers"])
    assert headers[b"content-type"] == b"application/problem+json"
    problem = json.loads(body["body"])
    assert problem["error"] == _("Internal server error")
    assert problem["requestId"] == headers[b"x-request-id"].decode()
    assert SECRET not in str((problem, logs))
    crashed = next(entry for entry in logs if entry["event"] == "request_crashed")
    assert crashed["error"] == "ValueError"
    assert crashed["where"].startswith("crashing:")


@pytest.mark.parametrize(
    ("path", "status", "logged"),
    [("/readyz", 200, False), ("/readyz", 503, True), ("/v1/retrieve", 200, True)],
)
def test_what_watches_the_server_fills_no_log(path: str, status: int, logged: bool) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        scope["route"] = SimpleNamespace(path=path)
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    with capture_logs() as logs:
        request(app)
    assert any(entry["event"] == "request" for entry in logs) == logged


def test_an_answer_that_has_begun_is_cut() -> None:
    """A second status would make the first one look whole."""
    with pytest.raises(ValueError, match=SECRET):
        request(crashing_late)
