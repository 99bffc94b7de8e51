"""Errors as `application/problem+json` (RFC 9457), with `error` and `details`.

They are in Spanish, or in the language that `Accept-Language` prefers if the catalogue has it.
"""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, get_type_hints

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException

from rag_resources.api.language import preferred_language
from rag_resources.core.errors import (
    ConflictError,
    DatabaseError,
    DeadlineExceededError,
    DependencyOpenError,
    InvalidInputError,
    ModelMissingError,
    ProblemsError,
    ProviderError,
    RagError,
)
from rag_resources.core.quoting import shown
from rag_resources.core.validation import check_writable, describe_problem, unknown_key
from rag_resources.languages.files import LANGUAGES
from rag_resources.languages.messages import Text, _, joined, render

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER_S = 2
OPENAI_PATHS = ("/v1/chat/", "/v1/models", "/v1/embeddings")

SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "title": "Problem",
    "required": ["type", "title", "status", "detail", "error", "details"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "error": {"type": ["string", "object"]},
        "details": {"type": "array", "items": {"type": "string"}},
        "requestId": {"type": "string"},
    },
}

_TITLES: Mapping[HTTPStatus, Text] = {
    HTTPStatus.BAD_REQUEST: _("Invalid parameters"),
    HTTPStatus.UNAUTHORIZED: _("No valid key"),
    HTTPStatus.FORBIDDEN: _("Not allowed"),
    HTTPStatus.NOT_FOUND: _("Not found"),
    HTTPStatus.METHOD_NOT_ALLOWED: _("Method not allowed"),
    HTTPStatus.CONFLICT: _("Conflict with stored data"),
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: _("Too large"),
    HTTPStatus.TOO_MANY_REQUESTS: _("Too many requests"),
    HTTPStatus.INTERNAL_SERVER_ERROR: _("Internal server error"),
    HTTPStatus.SERVICE_UNAVAILABLE: _("Service unavailable"),
    HTTPStatus.GATEWAY_TIMEOUT: _("Timed out"),
}
"""What is wrong in general; a status that only FastAPI answers with keeps its own phrase."""

INVALID = _("Invalid parameters")
TIMED_OUT = _("Timed out")
INTERNAL = _("Internal server error")
_log = structlog.get_logger()


class ProblemError(Exception):
    """An answer with an error status.

    Args:
        status: The HTTP status.
        message: The text for the caller.
        details: One line per problem.
        headers: The answer's headers.
    """

    def __init__(
        self,
        status: HTTPStatus,
        message: str,
        details: Sequence[str] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.details = details
        self.headers = headers


def invalid(*details: str) -> ProblemError:
    """Return the problem of invalid parameters."""
    return ProblemError(HTTPStatus.BAD_REQUEST, INVALID, details)


def later(message: Any, *, seconds: int = RETRY_AFTER_S, status: HTTPStatus) -> ProblemError:
    """Return the problem that tells a caller to retry later; the message may name `{seconds}`."""
    return ProblemError(
        status, message.format(seconds=seconds), headers={"Retry-After": str(seconds)}
    )


def unavailable() -> ProblemError:
    """Return the problem of a database that does not answer."""
    return later(
        _("The database is not available. Please try again later."),
        status=HTTPStatus.SERVICE_UNAVAILABLE,
    )


def problem_of(error: RagError) -> ProblemError:
    """Return the problem that a caller gets for an error of the product.

    Messages about the database name its address, which only the operator may see.
    """
    if isinstance(error, ProblemsError):
        return invalid(*(error.problems or [error.headline]))
    if isinstance(error, ConflictError | ModelMissingError):
        return ProblemError(HTTPStatus.CONFLICT, error.message)
    if isinstance(error, InvalidInputError):
        return invalid(error.message)
    if isinstance(error, DeadlineExceededError):
        return ProblemError(HTTPStatus.GATEWAY_TIMEOUT, TIMED_OUT)
    if isinstance(error, DatabaseError | DependencyOpenError | ProviderError):
        return unavailable()
    return ProblemError(HTTPStatus.INTERNAL_SERVER_ERROR, INTERNAL)


def openai_error(problem: ProblemError, language: str) -> dict[str, Any]:
    """Return a problem as clients of OpenAI's API read it."""
    told = [render(each, language) for each in (problem.message, *problem.details)]
    is_ours = problem.status >= HTTPStatus.INTERNAL_SERVER_ERROR
    kind = "server_error" if is_ours else "invalid_request_error"
    return {"message": "\n".join(told), "type": kind, "param": None, "code": None}


def problem_response(
    problem: ProblemError,
    request_id: str | None = None,
    *,
    language: str = LANGUAGES[0],
    path: str = "",
) -> JSONResponse:
    """Write a problem; on the paths of OpenAI's API `error` has that one's form."""
    message, *details = (render(each, language) for each in (problem.message, *problem.details))
    content = {
        "type": "about:blank",
        "title": render(_TITLES.get(problem.status, problem.status.phrase), language),
        "status": int(problem.status),
        "detail": ":\n  - ".join([message, "\n  - ".join(details)]) if details else message,
        "error": message,
        "details": details,
    }
    if path.startswith(OPENAI_PATHS):
        content["error"] = openai_error(problem, language)
    if request_id:
        content["requestId"] = request_id
    headers = dict(problem.headers or {})
    return JSONResponse(content, int(problem.status), headers, media_type=MEDIA_TYPE)


def invalid_request(details: Sequence[Any], model: type[BaseModel] | None = None) -> ProblemError:
    """Return the problem of an invalid body or parameters; names each field.

    Args:
        details: The errors that pydantic found.
        model: The body's model; with it, the known names are listed beside an unknown one.
    """
    described = [_described(each, model) for each in details]
    return invalid(*described)


def _described(detail: Any, model: type[BaseModel] | None) -> str:
    place, *path = detail["loc"] or ("body",)
    if detail["type"] == "json_invalid":
        return _("the body is not valid JSON")
    if not path and detail["type"] in {"model_attributes_type", "model_type", "dict_type"}:
        # FastAPI only decodes what is said to be JSON.
        is_json = not isinstance(detail["input"], bytes)
        return (
            _("the body must be a JSON object, in braces")
            if is_json
            else _("the body must be JSON (Content-Type: application/json)")
        )
    if detail["type"] == "value_error" and not isinstance(detail["ctx"]["error"].args[0], Text):
        # Not ours, so it is FastAPI's, which checks nothing itself but that a file is one.
        return joined(
            ": ",
            (
                ".".join(map(shown, path)),
                _("the file is missing: send it with its name, as multipart/form-data"),
            ),
        )
    kept = path or [place]
    located: Any = {**detail, "loc": tuple(kept)}
    return describe_problem(located, model if place == "body" else None)


def _body_model(request: Request) -> type[BaseModel] | None:
    """Return the model of the body that the request's route takes."""
    annotation = get_type_hints(request.scope.get("endpoint", object)).get("body")
    is_model = isinstance(annotation, type) and issubclass(annotation, BaseModel)
    return annotation if is_model else None


async def refuse_unknown_parameters(request: Request) -> None:
    """Refuse parameters after `?` that cannot be stored or that the operation does not have.

    Raises:
        ProblemError: There are some.
    """
    check_writable({"path": request.url.path, **request.path_params, **request.query_params})
    if not request.query_params:
        return
    path = getattr(request.scope.get("route"), "path_format", "")
    operation = request.app.openapi()["paths"].get(path, {}).get(request.method.lower())
    if operation is None:  # The page and its files, which are not part of the schema.
        return
    known = [each["name"] for each in operation.get("parameters", ()) if each["in"] == "query"]
    problems = [
        joined(": ", (shown(name), unknown_key(known)))
        for name in request.query_params
        if name not in known
    ]
    if problems:
        raise invalid(*problems)


def _http_problem(request: Request, error: HTTPException) -> ProblemError:
    """Return the problem for a request that FastAPI itself refuses."""
    path, status = shown(request.url.path), HTTPStatus(error.status_code)
    if status is HTTPStatus.NOT_FOUND:
        message = _("{path} does not exist. What there is can be seen at /docs.").format(path=path)
        return ProblemError(status, message)
    if status is HTTPStatus.METHOD_NOT_ALLOWED:
        # One path may be several routes, each with its own method: the schema has them together.
        route = getattr(request.scope.get("route"), "path_format", "")
        methods = (name.upper() for name in request.app.openapi()["paths"].get(route, {}))
        allowed = ", ".join(sorted(methods))
        message = _(
            "{path} does not accept {method}, but {allowed}. What there is can be seen at /docs."
        ).format(path=path, method=shown(request.method), allowed=allowed or "–")
        return ProblemError(status, message, headers={"Allow": allowed})
    if status is HTTPStatus.BAD_REQUEST:  # FastAPI says so of a body that Python cannot read.
        return invalid(_("the body is not valid JSON"))
    is_ours = status >= HTTPStatus.INTERNAL_SERVER_ERROR
    message = INTERNAL if is_ours else INVALID
    return ProblemError(status, message, headers=error.headers)


def add_handlers(app: FastAPI) -> None:
    """Answer every error of an application with a problem."""

    def respond(request: Request, problem: ProblemError) -> JSONResponse:
        language = preferred_language(request.headers.get("accept-language", ""))
        request_id = getattr(request.state, "request_id", None)
        return problem_response(problem, request_id, language=language, path=request.url.path)

    async def on_problem(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, ProblemError)
        return respond(request, error)

    async def on_rag_error(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RagError)
        problem = problem_of(error)
        if problem.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            _log.warning("request_failed", error=type(error).__name__, message=error.msgid)
        return respond(request, problem)

    async def on_invalid(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError | ValidationError)
        return respond(request, invalid_request(error.errors(), _body_model(request)))

    async def on_http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        problem = _http_problem(request, error)
        if request.method == "OPTIONS" and problem.status is HTTPStatus.METHOD_NOT_ALLOWED:
            return Response(status_code=HTTPStatus.NO_CONTENT, headers=dict(problem.headers or {}))
        return respond(request, problem)

    app.add_exception_handler(ProblemError, on_problem)
    app.add_exception_handler(RagError, on_rag_error)
    app.add_exception_handler(RequestValidationError, on_invalid)
    app.add_exception_handler(HTTPException, on_http)
