"""Searches and answers on behalf of a caller. The seam of streaming is `streamed`."""

import time
from collections.abc import Callable, Iterator
from http import HTTPStatus
from typing import Any, TypeVar

from fastapi import Request

from rag_resources.api.admission import Admission
from rag_resources.api.bodies import Search
from rag_resources.api.identity import Caller
from rag_resources.api.metrics import count_retrieval
from rag_resources.api.problems import ProblemError
from rag_resources.api.tenants import Tenants
from rag_resources.application import Application
from rag_resources.application.answers import Asked
from rag_resources.application.wiring import Answered
from rag_resources.core.citations import AnswerSentence
from rag_resources.languages.messages import render
from rag_resources.telemetry import continued

ResultT = TypeVar("ResultT")


async def searched(
    request: Request,
    caller: Caller,
    body: Search,
    work: Callable[[Application, dict[str, Any]], ResultT],
) -> ResultT:
    """Run a search in the caller's application, behind the queue, within what is left of its time.

    Args:
        request: Gives the time of arrival and the trace to continue.
        caller: Gives tenant and filters.
        body: The search.
        work: Called with the application and the arguments of `Application.retrieve`.

    Raises:
        ProblemError: The queue is full, or the request is not allowed.
    """
    tenants: Tenants = request.app.state.tenants
    admission: Admission = request.app.state.admission
    arguments = {
        "configuration": body.configuration,
        "overrides": body.config,
        "top_k": body.top_k,
        "filters": caller.within(body.filters.as_filters() if body.filters else None),
        "language": body.language,
    }

    def admitted(remaining_ms: float) -> ResultT:
        with continued(request.headers.get("traceparent")), tenants.of(caller.tenant) as app:
            return work(app, {**arguments, "deadline_ms": remaining_ms})

    return await admission.run(request.state.arrived_at, admitted)


def found_as_json(answered: Answered, language: str) -> dict[str, Any]:
    """Return the body of a retrieval.

    Raises:
        ProblemError: 503: nothing could be searched.
    """
    response = answered.response.reworded(lambda text: render(text, language))
    count_retrieval(response)
    if response.error:
        raise ProblemError(
            HTTPStatus.SERVICE_UNAVAILABLE, response.error, headers={"Retry-After": "2"}
        )
    written = response.to_json()
    metadata = {
        name: written[name]
        for name in (
            "strategy",
            "model",
            "latencyMs",
            "stages",
            "degraded",
            "messages",
            "cached",
            "transformedQuery",
        )
    }
    return {
        "query": written["query"],
        "results": written["results"],
        "metadata": {"configuration": render(answered.configuration, language), **metadata},
        "confidence": written["confidence"],
    }


def asked_as_json(asked: Asked, language: str) -> dict[str, Any]:
    """Return the body of an answer.

    Raises:
        ProblemError: 503: nothing could be searched.
    """
    reworded = asked.reworded(lambda text: render(text, language))
    response = reworded.retrieval.response
    count_retrieval(response)
    if response.error:
        raise ProblemError(
            HTTPStatus.SERVICE_UNAVAILABLE, response.error, headers={"Retry-After": "2"}
        )
    return {name: value for name, value in reworded.to_json().items() if name != "error"}


def streamed(asked: Asked) -> Iterator[AnswerSentence]:
    """Return the sentences of an answer, each as soon as it is known.

    All of them are known once the answer is. Where answers are written sentence by sentence, this
    is the one place to change.
    """
    yield from asked.answer.sentences


def now() -> int:
    """Return the seconds since 1970, as OpenAI's form writes times."""
    return int(time.time())
