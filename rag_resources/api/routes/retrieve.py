"""`/v1/retrieve` and the adapter `/api/v1/query`: passages that answer a question."""

from collections.abc import Sequence
from http import HTTPStatus
from itertools import accumulate
from typing import Any

import structlog
from fastapi import APIRouter, Request, Response
from pydantic_core import to_json

from rag_resources.api.bodies import (
    FiltersInCamelCase,
    Found,
    QueryRequest,
    QueryResult,
    QueryResults,
    Search,
)
from rag_resources.api.identity import Caller, Reader
from rag_resources.api.language import reader_language
from rag_resources.api.problems import INTERNAL, ProblemError, invalid
from rag_resources.api.searching import found_as_json, require_searched, searched
from rag_resources.application import Application
from rag_resources.core.configuration import Strategy
from rag_resources.core.errors import DatabaseError
from rag_resources.core.retrievers import RankedList
from rag_resources.core.types import RetrievalResult
from rag_resources.languages.messages import _, render
from rag_resources.settings import Settings

QUERY_THRESHOLD = 0.6
"""Lowest cosine of `/api/v1/query`, unless a request names another."""
_BY_VECTORS = {RankedList.SEMANTIC, RankedList.CONTEXTUAL, RankedList.WINDOWS, RankedList.NOTES}
router = APIRouter(tags=["search"])
_log = structlog.get_logger()


@router.post("/v1/retrieve", response_model=Found, summary="Passages that answer a question")
@router.post("/api/retrieve", response_model=Found)
async def retrieve(request: Request, caller: Reader, body: Search) -> Response:
    """Search with a named configuration, any field of it changed, or with the one that serves."""
    return _as_json(await _found(request, caller, body))


@router.post("/api/v1/query", summary="As /v1/retrieve, with fewer choices")
async def query(request: Request, caller: Reader, body: QueryRequest) -> QueryResults:
    """Search as `QUERY_MODE` says; passages whose score is below the threshold are left out."""
    settings: Settings = request.app.state.settings
    top_k = settings.query_topk_default if body.top_k is None else body.top_k
    if top_k > settings.query_topk_max:
        raise invalid(
            _("topK: {value} is larger than the maximum, {maximum}").format(
                value=top_k, maximum=settings.query_topk_max
            )
        )
    threshold = QUERY_THRESHOLD if body.similarity_threshold is None else body.similarity_threshold
    filters = FiltersInCamelCase(source=body.source, tags=body.tags or ())
    search = Search(query=body.query, top_k=top_k, strategy=Strategy(settings.query_mode))
    language = reader_language(request, search)

    def work(app: Application, arguments: dict[str, Any]) -> QueryResults:
        own = filters
        if body.document_id:
            note_ids = app.notes.of_document(body.document_id) or (body.document_id,)
            own = own.model_copy(update={"note_ids": note_ids})
        arguments["filters"] = own.as_filters()
        response = app.retrieve(body.query, **arguments).response
        require_searched(response, language)
        found = zip(response.results, _similarities(response.results), strict=True)
        kept = [(each, score) for each, score in found if score >= threshold]
        origins = app.notes.origins([each.note_id for each, _score in kept])
        answer = QueryResults(
            results=[
                QueryResult(
                    document_id=origins[each.note_id].document_id or each.note_id,
                    title=each.title,
                    chunk_index=each.chunk_index,
                    snippet=each.content,
                    score=score,
                    source=origins[each.note_id].source,
                    tags=origins[each.note_id].tags,
                )
                for each, score in kept
                if each.note_id in origins
            ]
        )
        if not answer.results:
            answer.message = render(_("No results were found for this query."), language)
        return answer

    try:
        answer = await searched(request, caller, search, work)
    except DatabaseError as error:
        _log.error("query_failed", error=type(error).__name__)
        raise ProblemError(HTTPStatus.INTERNAL_SERVER_ERROR, INTERNAL) from error
    _log.info("query", results=len(answer.results), top_k=top_k, threshold=threshold)
    return answer


def _similarities(results: Sequence[RetrievalResult]) -> list[float]:
    """Return the cosines of results with the question, in [0, 1], on which the threshold is told.

    The order stays: no passage has a higher one than those before it. One that was found without
    vectors has that of the one before it; without one, the best cosine there is, or 1.
    """
    own = [each.original_score if each.lists[0] in _BY_VECTORS else None for each in results]
    best = max((score for score in own if score is not None), default=1.0)
    falling = accumulate((best if score is None else score for score in own), min)
    return [max(0.0, score) for score in falling]


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
