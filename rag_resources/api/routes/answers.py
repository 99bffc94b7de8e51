"""`/v1/answers`: sentences with citations, as JSON or as server-sent events."""

import json
from collections.abc import Iterator
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse

from rag_resources.api.bodies import AnswerRequest
from rag_resources.api.identity import Searcher
from rag_resources.api.searching import asked_as_json, searched, streamed
from rag_resources.application.answers import Asked

router = APIRouter(tags=["answers"])

EVENTS: dict[str, Any] = {"content": {"text/event-stream": {}}}


@router.post("/v1/answers", response_model=dict[str, Any], responses={200: EVENTS})
async def answer(request: Request, caller: Searcher, body: AnswerRequest) -> Response:
    """Answer a question with sentences of the notes.

    With `stream` each sentence is an event `sentence`, and the whole answer the last event, `done`.
    """
    language = body.language or request.app.state.settings.answer_language

    def work(asked: Asked) -> tuple[Asked, dict[str, Any]]:
        return asked, asked_as_json(asked, language)

    asked, written = await searched(
        request,
        caller,
        body,
        lambda app, arguments: work(app.answers.ask(body.query, **arguments)),
    )
    if not body.stream:
        return JSONResponse(written)
    return StreamingResponse(_events(asked, written), media_type="text/event-stream")


def _events(asked: Asked, written: dict[str, Any]) -> Iterator[str]:
    for sentence in streamed(asked):
        yield event(sentence.to_json(), name="sentence")
    yield event(written, name="done")


def event(data: Any, *, name: str = "") -> str:
    """Write a server-sent event."""
    written = json.dumps(data, ensure_ascii=False)
    return f"event: {name}\ndata: {written}\n\n" if name else f"data: {written}\n\n"
