"""`/v1/retrieve` and the adapter `/api/v1/query`: passages that answer a question."""

from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic_core import to_json

from rag_resources.api.bodies import Found, QueryRequest, Search
from rag_resources.api.identity import Caller, Searcher
from rag_resources.api.language import reader_language
from rag_resources.api.problems import ProblemError
from rag_resources.api.searching import found_as_json, searched
from rag_resources.languages.messages import _
from rag_resources.settings import Settings

router = APIRouter(tags=["search"])


@router.post("/v1/retrieve", response_model=Found, summary="Passages that answer a question")
@router.post("/api/retrieve", response_model=Found, summary="As /v1/retrieve")
async def retrieve(request: Request, caller: Searcher, body: Search) -> Response:
    """Search with a named configuration, any field of it changed, or with the one that serves."""
    return _as_json(await _found(request, caller, body))


@router.post("/api/v1/query", response_model=Found, summary="As /v1/retrieve, with fewer choices")
async def query(request: Request, caller: Searcher, body: QueryRequest) -> Response:
    """Search as `QUERY_MODE` and the other settings say; an empty result has a message."""
    settings: Settings = request.app.state.settings
    top_k = settings.query_topk_default if body.top_k is None else body.top_k
    if top_k > settings.query_topk_max:
        problem = _("topK: {value} is larger than the maximum, {maximum}").format(
            value=top_k, maximum=settings.query_topk_max
        )
        raise ProblemError(HTTPStatus.BAD_REQUEST, _("The request is not valid:"), [problem])
    threshold = body.similarity_threshold
    if threshold is None:
        threshold = settings.query_similarity_threshold
    search = Search.model_validate(
        {
            "query": body.query,
            "topK": top_k,
            "config": {"strategy": settings.query_mode, "similarity_threshold": threshold},
            "filters": {"source": body.source, "tags": body.tags},
        }
    )
    found = await _found(request, caller, search)
    if not found["results"]:
        found["message"] = _("No results were found for this query.")
    return _as_json(found)


def _as_json(found: dict[str, Any]) -> Response:
    """Write JSON several times as fast as `json`, which took a tenth of a full-text question."""
    return Response(to_json(found), media_type="application/json")


async def _found(request: Request, caller: Caller, body: Search) -> dict[str, Any]:
    language = reader_language(request, body)
    return await searched(
        request,
        caller,
        body,
        lambda app, arguments: found_as_json(app.retrieve(body.query, **arguments), language),
    )
