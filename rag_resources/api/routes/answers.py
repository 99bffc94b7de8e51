"""`/v1/answers`: sentences with citations, as JSON or as server-sent events."""

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse

from rag_resources.api.bodies import AnswerRequest
from rag_resources.api.identity import Reader
from rag_resources.api.language import reader_language
from rag_resources.api.problems import ProblemError
from rag_resources.api.searching import asked_as_json, searched, streamed
from rag_resources.application.answers import Asked
from rag_resources.core.citations import AnswerSentence
from rag_resources.core.errors import RagError
from rag_resources.languages.messages import render

router = APIRouter(tags=["answers"])

HEARTBEAT = ":\n\n"
"""A comment among the events, which clients ignore."""

EVENTS: dict[str, Any] = {"content": {"text/event-stream": {}}}


@router.post("/v1/answers", response_model=dict[str, Any], responses={200: EVENTS})
async def answer(request: Request, caller: Reader, body: AnswerRequest) -> Response:
    """Answer a question with sentences of the notes.

    With `stream` each sentence is an event `sentence` as soon as it is checked, and the whole
    answer the last event, `done`; if that fails on the way, the last event is `error`.
    """
    language = reader_language(request, body)
    if body.stream:
        sentences = await streamed(request, caller, body, body.reading())
        return event_stream(_events(sentences, language))
    written = await searched(
        request,
        caller,
        body,
        lambda app, arguments: asked_as_json(
            app.answers.ask(body.query, **arguments, **body.reading()), language
        ),
    )
    return JSONResponse(written)


async def _events(
    sentences: AsyncGenerator[AnswerSentence | Asked | None, None], language: str
) -> AsyncGenerator[str, None]:
    """Yield an event for each sentence, then for the whole answer, or for an error."""
    async with aclosing(sentences):
        try:
            async for each in sentences:
                if each is None:
                    yield HEARTBEAT
                elif isinstance(each, Asked):
                    yield event(asked_as_json(each, language), name="done")
                else:
                    yield event(each.to_json(), name="sentence")
        except (RagError, ProblemError) as error:
            yield event({"error": render(error.message, language)}, name="error")


def event_stream(events: AsyncGenerator[str, None]) -> StreamingResponse:
    """Send events, which nothing on the way may keep back."""
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(events, media_type="text/event-stream", headers=headers)


def event(data: Any, *, name: str = "") -> str:
    """Write a server-sent event."""
    written = json.dumps(data, ensure_ascii=False)
    return f"event: {name}\ndata: {written}\n\n" if name else f"data: {written}\n\n"
