"""Searches and answers on behalf of a caller."""

import asyncio
import math
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import closing
from http import HTTPStatus
from threading import Event
from typing import Any, TypeVar

import structlog
from fastapi import Request

from rag_resources.api.admission import Admission
from rag_resources.api.bodies import Search
from rag_resources.api.identity import Caller
from rag_resources.api.language import question_language
from rag_resources.api.metrics import count_retrieval
from rag_resources.api.problems import INTERNAL, TIMED_OUT, ProblemError
from rag_resources.api.tenants import Tenants
from rag_resources.application import Application
from rag_resources.application.answers import Asked
from rag_resources.application.wiring import Answered
from rag_resources.core.citations import AnswerSentence
from rag_resources.core.errors import DatabaseTimeoutError, DeadlineExceededError, RagError
from rag_resources.core.types import RetrievalResponse
from rag_resources.languages.files import LANGUAGES
from rag_resources.languages.messages import _, render
from rag_resources.resilience.deadlines import while_waited_for
from rag_resources.retrieval.confidence import answer_in_words
from rag_resources.retrieval.notices import left_out_in_words

ResultT = TypeVar("ResultT")
_log = structlog.get_logger()

_STAGE_NAMES = {
    "transform": "queryTransformation",
    "rerank": "reranking",
    "expand": "contextExpansion",
}
HEARTBEAT_S = 15.0
"""Proxies end connections on which nothing comes for 30 or 60 s."""
_LOOK_EVERY_S = 0.25
"""Interval of the checks whether the caller is still connected."""


async def searched(
    request: Request,
    caller: Caller,
    body: Search,
    work: Callable[[Application, dict[str, Any]], ResultT],
) -> ResultT:
    """Run a search in the caller's application, after the queue, within the rest of its deadline.

    Args:
        request: Gives the time of arrival.
        caller: Gives the tenant.
        body: The search.
        work: Called with the application and the arguments of `Application.retrieve`.

    Raises:
        ProblemError: The queue is full.
        DatabaseError: The database cannot be reached.
    """
    tenants: Tenants = request.app.state.tenants
    admission: Admission = request.app.state.admission
    arguments = {
        "configuration": body.configuration,
        "overrides": body.overrides(),
        "top_k": body.top_k,
        "filters": body.filters.as_filters() if body.filters else None,
        "language": question_language(body),
    }

    def admitted(remaining_ms: float) -> ResultT:
        with tenants.of(caller.tenant) as app:
            return work(app, {**arguments, "deadline_ms": remaining_ms})

    return await admission.run(request.state.arrived_at, admitted)


def found_as_json(answered: Answered, language: str) -> dict[str, Any]:
    """Return the body of a retrieval.

    Raises:
        ProblemError: 503: nothing could be searched.
    """
    response = answered.response.reworded(lambda text: render(text, language))
    count_retrieval(response)
    require_searched(response)
    written = response.to_json()
    metadata = {
        name: written[name]
        for name in (
            "strategy",
            "model",
            "latencyMs",
            "degraded",
            "messages",
            "cached",
            "transformedQuery",
        )
    }
    return {
        "results": written["results"],
        "metadata": {
            **answered.origin_to_json(),
            **metadata,
            "query": written["query"],
            "stages": _stages(written),
        },
        "confidence": written["confidence"],
    }


def _stages(written: Mapping[str, Any]) -> dict[str, float]:
    """Return the milliseconds of each stage, by the names of the contract."""
    stages = {_STAGE_NAMES.get(name, name): ms for name, ms in written["stages"].items()}
    others = math.fsum(stages.get(name, 0.0) for name in _STAGE_NAMES.values())
    return {**stages, "retrieval": max(0.0, written["latencyMs"] - others)}


def asked_as_json(asked: Asked, language: str) -> dict[str, Any]:
    """Return the body of an answer.

    Raises:
        ProblemError: 503: nothing could be searched.
    """
    reworded = asked.reworded(lambda text: render(text, language))
    response = reworded.retrieval.response
    count_retrieval(response)
    require_searched(response)
    written = {name: value for name, value in reworded.to_json().items() if name != "error"}
    return written | {"explanations": _explanations(asked, language)}


def _explanations(asked: Asked, language: str) -> list[str]:
    """Say what is missing from an answer and why, and with which confidence it is right."""
    response = asked.retrieval.response
    told: list[str] = [*response.messages]
    if asked.interruption:
        told.append(asked.interruption)
    told += asked.reading.notes
    told += left_out_in_words(response.degraded)
    if asked.metadata.dropped:
        told.append(
            _("Sentences were left out because their sources do not say them: {count}.").format(
                count=asked.metadata.dropped
            )
        )
    told += answer_in_words(asked.confidence, asked.silence)
    return [render(each, language) for each in dict.fromkeys(told)]


async def streamed(
    request: Request, caller: Caller, body: Search, reading: Mapping[str, Any]
) -> AsyncGenerator[AnswerSentence | Asked | None, None]:
    """Begin an answer, and return its sentences, each as soon as it is checked, then the whole.

    `reading` says how the question is read; see `Answers.stream`. None is yielded whenever nothing
    came for `HEARTBEAT_S`.

    This returns when the first sentence is ready, so that an earlier failure can still become an
    HTTP status; but after `HEARTBEAT_S` at the latest. When the caller disconnects, the work ends
    at once, also that of a language model.

    Raises:
        ProblemError: As for `searched`.
        RagError: As for `Answers.stream`.
    """
    loop, left = asyncio.get_running_loop(), Event()
    ready: asyncio.Queue[AnswerSentence | Asked | Exception] = asyncio.Queue()

    def write(app: Application, arguments: dict[str, Any]) -> None:
        stream = app.answers.stream(body.query, **arguments, **reading)
        with while_waited_for(left), closing(stream) as sentences:
            for each in sentences:
                loop.call_soon_threadsafe(ready.put_nowait, each)
                if left.is_set():
                    break

    async def work() -> None:
        try:
            await searched(request, caller, body, write)
        except Exception as error:  # noqa: BLE001 - raised where the sentences are read
            ready.put_nowait(error)

    working = asyncio.create_task(work())
    first = await _first(request, ready, left)
    if isinstance(first, Asked):
        require_searched(first.retrieval.response)

    async def rest() -> AsyncGenerator[AnswerSentence | Asked | None, None]:
        each = first
        try:
            while not isinstance(each, Asked):
                yield each
                each = await _next(ready, HEARTBEAT_S)
            yield each
            await working
        finally:
            left.set()

    return rest()


async def _first(
    request: Request, ready: "asyncio.Queue[AnswerSentence | Asked | Exception]", left: Event
) -> AnswerSentence | Asked | None:
    """Wait for the first sentence, and end the work if the caller disconnects meanwhile."""
    until = time.monotonic() + HEARTBEAT_S
    first = None
    try:
        while first is None and time.monotonic() < until:
            first = await _next(ready, _LOOK_EVERY_S)
            if first is None and await request.is_disconnected():
                left.set()
    except BaseException:
        left.set()
        raise
    return first


async def _next(
    ready: "asyncio.Queue[AnswerSentence | Asked | Exception]", wait_s: float
) -> AnswerSentence | Asked | None:
    try:
        each = await asyncio.wait_for(ready.get(), wait_s)
    except TimeoutError:
        return None
    if isinstance(each, Exception):
        raise each
    return each


def require_searched(response: RetrievalResponse, language: str = LANGUAGES[0]) -> None:
    """Refuse a response that found nothing because nothing could be searched.

    Raises:
        ProblemError: 504 if the deadline passed; 500 if what failed is no known fault; else 503.
    """
    if not response.error:
        return
    causes = response.causes
    if any(isinstance(each, DatabaseTimeoutError | DeadlineExceededError) for each in causes):
        raise ProblemError(HTTPStatus.GATEWAY_TIMEOUT, TIMED_OUT)
    if not any(isinstance(each, RagError) for each in causes):
        _log.error("search_failed", errors=sorted({type(each).__name__ for each in causes}))
        raise ProblemError(HTTPStatus.INTERNAL_SERVER_ERROR, INTERNAL)
    told = render(response.error, language)
    raise ProblemError(HTTPStatus.SERVICE_UNAVAILABLE, told, headers={"Retry-After": "2"})


def now() -> int:
    """Return the seconds since 1970, as OpenAI's API writes times."""
    return int(time.time())
