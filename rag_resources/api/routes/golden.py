"""`/v1/golden-dataset`: the golden questions, one by one and as a file."""

from http import HTTPStatus
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse

from rag_resources.api.bodies import GoldenBody, GoldenFile
from rag_resources.api.identity import Caller, Reader, Writer
from rag_resources.api.problems import ProblemError
from rag_resources.core.golden import GoldenEntry
from rag_resources.golden.dataset import Golden
from rag_resources.languages.messages import _

router = APIRouter(tags=["golden dataset"])
PATHS = ("/v1/golden-dataset", "/api/golden-dataset")
SOURCE = "api"
"""The source that is stored with imported questions."""


def list_entries(
    request: Request,
    caller: Reader,
    limit: Annotated[int | None, Query(ge=1, le=1_000)] = None,
    offset: Annotated[int, Query(ge=0, le=1_000_000_000)] = 0,
) -> JSONResponse:
    """List the questions in a stable order; all of them, unless `limit` says how many."""
    with request.app.state.tenants.of(caller.tenant) as app:
        entries = app.golden.entries()
    shown = [entry.to_json() for entry in entries[offset:][:limit]]
    return JSONResponse({"entries": shown, "total": len(entries)})


def add(request: Request, caller: Writer, body: GoldenBody) -> JSONResponse:
    """Add a question."""
    with request.app.state.tenants.of(caller.tenant) as app:
        entry = app.golden.add(body.fields(), origin=_origin(caller))
    return JSONResponse(entry.to_json(), HTTPStatus.CREATED)


def export(request: Request, caller: Reader) -> JSONResponse:
    """Write all questions, as `import` reads them."""
    with request.app.state.tenants.of(caller.tenant) as app:
        entries = [entry.to_json() for entry in app.golden.entries()]
    headers = {"Content-Disposition": 'attachment; filename="golden.json"'}
    return JSONResponse({"entries": entries}, headers=headers)


def import_all(
    request: Request,
    caller: Writer,
    body: GoldenFile,
    replace: Annotated[bool, Query()] = False,
) -> JSONResponse:
    """Import all questions or none; with `replace` questions that are not given are deleted."""
    with request.app.state.tenants.of(caller.tenant) as app:
        made = app.golden.import_rows(
            body.model_dump(), name=SOURCE, origin=_origin(caller), replace=replace
        )
        total = len(app.golden.entries())
    return JSONResponse(
        {
            "changed": len(made.changes),
            "kept": [entry.query for entry in made.kept],
            "deleted": list(made.deleted),
            "orphaned": list(made.orphaned),
            "total": total,
        }
    )


def show(request: Request, caller: Reader, golden_id: UUID) -> JSONResponse:
    """Show a question."""
    with request.app.state.tenants.of(caller.tenant) as app:
        return JSONResponse(_found(app.golden, golden_id).to_json())


def update(
    request: Request, caller: Writer, golden_id: UUID, body: GoldenBody, reason: str = ""
) -> JSONResponse:
    """Change the given fields of a question."""
    with request.app.state.tenants.of(caller.tenant) as app:
        _found(app.golden, golden_id)
        entry = app.golden.update(
            str(golden_id), body.fields(), origin=_origin(caller), reason=reason
        )
    return JSONResponse(entry.to_json())


def delete(request: Request, caller: Writer, golden_id: UUID, reason: str = "") -> Response:
    """Delete a question; the history keeps it."""
    with request.app.state.tenants.of(caller.tenant) as app:
        app.golden.delete([_found(app.golden, golden_id)], origin=_origin(caller), reason=reason)
    return Response(status_code=HTTPStatus.NO_CONTENT)


def _found(golden: Golden, golden_id: UUID) -> GoldenEntry:
    for entry in golden.entries():
        if entry.golden_id == golden_id:
            return entry
    raise ProblemError(
        HTTPStatus.NOT_FOUND,
        _("“{name}” does not exist.").format(name=golden_id),
    )


def _origin(caller: Caller) -> str:
    return f"api {caller.key_id}".strip()


for _path in PATHS:
    _answers: dict[str, Any] = {"response_model": dict[str, Any]}
    router.get(_path, **_answers)(list_entries)
    router.post(_path, status_code=HTTPStatus.CREATED, **_answers)(add)
    router.get(f"{_path}/export", **_answers)(export)
    router.post(f"{_path}/export", **_answers)(export)
    router.post(f"{_path}/import", **_answers)(import_all)
    router.get(f"{_path}/{{golden_id:uuid}}", **_answers)(show)
    router.patch(f"{_path}/{{golden_id:uuid}}", **_answers)(update)
    router.delete(f"{_path}/{{golden_id:uuid}}", status_code=HTTPStatus.NO_CONTENT)(delete)
