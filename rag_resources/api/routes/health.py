"""`/healthz`, `/readyz`, `/metrics`, and `/docs`, which loads nothing from other servers."""

from html import escape
from http import HTTPStatus

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response
from prometheus_client import CONTENT_TYPE_LATEST

from rag_resources.api.identity import Operator
from rag_resources.api.metrics import written
from rag_resources.api.problems import later, unavailable
from rag_resources.languages.messages import _

router = APIRouter(tags=["operation"])


@router.get("/healthz", response_model=dict[str, str])
async def healthz() -> JSONResponse:
    """Say that the process answers."""
    return JSONResponse({"status": "ok"})


@router.get("/readyz", response_model=dict[str, str])
async def readyz(request: Request) -> JSONResponse:
    """Say whether questions can be answered: the models are loaded and the database answers."""
    if not request.app.state.warm.is_set():
        raise later(
            _("The service is busy. Try again in {seconds} s."),
            status=HTTPStatus.SERVICE_UNAVAILABLE,
        )
    if not request.app.state.has_database.is_set():
        raise unavailable()
    return JSONResponse({"status": "ready"})


@router.get("/metrics", response_class=Response)
def metrics(request: Request, caller: Operator) -> Response:
    """Write the numbers of all tenants together, for Prometheus; needs an operator's key."""
    counted = written(request.app.state.tenants.own.application)
    return Response(counted, media_type=CONTENT_TYPE_LATEST)


@router.get("/docs", include_in_schema=False)
async def docs(request: Request) -> HTMLResponse:
    """Show the endpoints in a page that loads nothing."""
    rows = "".join(
        f"<tr><td>{escape(method.upper())}</td><td><code>{escape(path)}</code></td>"
        f"<td>{escape(operation.get('description', ''))}</td></tr>"
        for path, operations in request.app.openapi()["paths"].items()
        for method, operation in operations.items()
    )
    title, intro = (
        escape(_("API of Brain Sync RAG")),
        escape(
            _(
                "Every request has the header Authorization: Bearer KEY if there are keys. The "
                "whole schema, for generating clients, is at"
            )
        ),
    )
    return HTMLResponse(
        f'<!doctype html><html lang="es"><meta charset="utf-8"><title>{title}</title>'
        "<style>body{font:1rem/1.5 sans-serif;margin:2rem}td{padding:.3rem .8rem;"
        "vertical-align:top;border-top:1px solid #ccc}</style>"
        f'<h1>{title}</h1><p>{intro} <a href="/openapi.json">/openapi.json</a>.</p>'
        f"<table>{rows}</table></html>",
        headers={"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"},
    )
