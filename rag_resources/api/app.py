"""Builds the HTTP application from settings."""

from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from threading import Event, Thread
from typing import Any

import anyio
import anyio.to_thread
import structlog
from fastapi import Depends, FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from starlette.middleware.cors import CORSMiddleware

from rag_resources.api import problems
from rag_resources.api.admission import Admission
from rag_resources.api.identity import Door
from rag_resources.api.middleware import MAX_BODY_KB, EveryRequest
from rag_resources.api.routes import (
    answers,
    chat,
    documents,
    evaluations,
    feedback,
    golden,
    health,
    mcp,
    notes,
    page,
    retrieve,
)
from rag_resources.api.tenants import Tenants
from rag_resources.application import Application
from rag_resources.core.errors import RagError
from rag_resources.languages.messages import _
from rag_resources.logs import log_to_stderr
from rag_resources.packaged import product_version
from rag_resources.settings import Settings, load_settings

_log = structlog.get_logger()
UPLOADS_AT_ONCE = 2
WARM_UP = "notas"
"""A question with a searchable word; without one it is refused before any model is loaded."""
LOOK_EVERY_S = 1.0
"""How often it is looked whether the database answers, and whether another configuration serves."""
FORM_KB = 256
"""Room for the other fields of an upload's form, besides the file."""
_PROBLEM = {"content": {problems.MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}}
_MODULES = (
    retrieve,
    answers,
    feedback,
    chat,
    notes,
    documents,
    golden,
    evaluations,
    health,
    page,
    mcp,
)
_STATUSES = {
    "400": "Invalid parameters",
    "401": "No valid key",
    "403": "Not allowed with this key",
    "404": "Not there",
    "409": "In contradiction to what is stored",
    "413": "Body too large",
    "429": "Too many requests with this key, or too many questions of this tenant",
    "503": "Busy, or something that is needed is down",
    "504": "Not answered in time",
    "default": "Any other problem",
}


def create() -> FastAPI:
    """Build the application of a worker from the environment."""
    settings = load_settings()
    log_to_stderr(level=settings.log_level)
    return build_app(settings)


def build_app(settings: Settings) -> FastAPI:
    """Build the application; the database is opened when it starts."""

    @asynccontextmanager
    async def opened(app: FastAPI) -> AsyncIterator[None]:
        tenants = await anyio.to_thread.run_sync(Tenants, settings)
        has_database = Event()
        has_database.set()
        admission = Admission(
            threads=settings.api_threads,
            waiting=settings.api_queue,
            has_database=has_database.is_set,
        )
        app.state.settings = settings
        app.state.tenants = tenants
        app.state.admission = admission
        app.state.door = Door(settings, tenants.own.application)
        app.state.measuring = ThreadPoolExecutor(1, thread_name_prefix="evaluation")
        app.state.uploading = anyio.CapacityLimiter(UPLOADS_AT_ONCE)
        app.state.warm = Event()
        app.state.has_database = has_database
        app.state.mcp = mcp.build_sessions(settings)
        stopping = Event()
        warming = _start_watching(tenants.own.application, app.state.warm, has_database, stopping)
        try:
            async with app.state.mcp.run():
                yield
        finally:
            stopping.set()
            await anyio.to_thread.run_sync(warming.join)
            await anyio.to_thread.run_sync(admission.close)
            app.state.measuring.shutdown(wait=False, cancel_futures=True)
            await anyio.to_thread.run_sync(tenants.close)

    app = FastAPI(
        title=_("API of Brain Sync RAG"),
        version=product_version(),
        lifespan=opened,
        docs_url=None,
        dependencies=[Depends(problems.refuse_unknown_parameters)],
        redoc_url=None,
        responses={
            status: {"description": words, **_PROBLEM} for status, words in _STATUSES.items()
        },
    )
    for module in _MODULES:
        app.include_router(module.router)
    problems.add_handlers(app)
    upload_kb = settings.extraction.file_mb * 1024 + FORM_KB
    app.add_middleware(
        EveryRequest,
        max_body_kb=MAX_BODY_KB,
        longer=dict.fromkeys(documents.PATHS, upload_kb),
    )

    if settings.api_cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.api_cors_origins,
            allow_methods=["*"],
            allow_headers=["*"],
            expose_headers=["X-Request-Id"],
        )

    def schema() -> dict[str, Any]:
        if app.openapi_schema is None:
            made = get_openapi(title=app.title, version=app.version, routes=app.routes)
            made["components"]["schemas"]["Problem"] = dict(problems.SCHEMA)
            _describe_operations(made["paths"], is_open=settings.api_open)
            app.openapi_schema = made
        return app.openapi_schema

    app.openapi = schema  # type: ignore[method-assign]
    return app


def _describe_operations(paths: dict[str, Any], *, is_open: bool) -> None:
    """Give aliases a tag of their own, and say where the key may be missing.

    An alias is an operation below `/api/` that is also one below `/v1/`.
    """
    routes = [each for module in _MODULES for each in module.router.routes]
    served = [each for each in routes if isinstance(each, APIRoute)]
    own = {each.endpoint: each.path_format for each in served if each.path.startswith("/v1/")}
    for route in served:
        for operation in paths.get(route.path_format, {}).values():
            if route.path.startswith("/api/") and route.endpoint in own:
                operation |= {"tags": ["aliases"], "summary": f"As {own[route.endpoint]}"}
            if is_open and "security" in operation:
                operation["security"] = [{"key": []}, {}]


def _start_watching(
    application: Application, warm: Event, has_database: Event, stopping: Event
) -> Thread:
    """Load the models of the serving configuration before the first question, and of the next ones.

    Every second it is looked whether the database answers, so that requests are refused at once.

    Another configuration may serve later, by a promotion or a rollback, with models that this
    process has not loaded yet. The thread must be joined before Python ends: OpenVINO aborts the
    process if its thread is killed while it compiles a model.
    """

    def load() -> None:
        try:
            application.retrieve(WARM_UP)
        except RagError as error:  # The first question that needs it reports the error.
            _log.warning("not_warm", error=type(error).__name__)
        warm.set()
        while not stopping.wait(LOOK_EVERY_S):
            if not application.database.answers():
                has_database.clear()
                continue
            has_database.set()
            try:
                application.warm_up()
            except Exception as error:  # noqa: BLE001 - it must be looked at again, whatever fails
                _log.debug("not_warm", error=type(error).__name__)

    thread = Thread(target=load, name="warm-up")
    thread.start()
    return thread
