"""`/v1/documents`: files that clients upload, and how far each document is."""

import json
import re
from collections.abc import Callable
from http import HTTPStatus
from typing import Annotated, Any, TypeVar
from uuid import UUID

import anyio.to_thread
from fastapi import APIRouter, File, Form, Header, Path, Query, Request, Response, UploadFile
from fastapi.encoders import jsonable_encoder
from fastapi.responses import JSONResponse

from rag_resources.api.bodies import DeletedAddress, DocumentChanges, DocumentRows
from rag_resources.api.identity import Reader, Writer
from rag_resources.api.problems import ProblemError, invalid
from rag_resources.application.documents import Documents
from rag_resources.core.errors import ExtractionError, InvalidSourceError
from rag_resources.core.places import Box
from rag_resources.core.quoting import shown
from rag_resources.core.validation import check_writable
from rag_resources.documents.uploads import check_upload
from rag_resources.languages.messages import _, about
from rag_resources.settings import Settings
from rag_resources.store.document_list import DocumentSummary

router = APIRouter(tags=["documents"])
PATHS = ("/v1/documents", "/api/v1/documents/ingest")
"""The path for uploads."""
_BOX = re.compile(",".join([r"(-?[0-9]{1,6}(?:\.[0-9]{1,6})?)"] * 4))

ResultT = TypeVar("ResultT")


async def upload(
    request: Request,
    caller: Writer,
    file: Annotated[
        UploadFile,
        # Generators of clients know a file by `format` rather than by OpenAPI 3.1's media type.
        File(
            description="PDF, DOCX, XLSX, XLS, ODS, HTML, CSV, Markdown",
            json_schema_extra={"format": "binary"},
        ),
    ],
    title: Annotated[str, Form(max_length=300)] = "",
    metadata: Annotated[str, Form(max_length=100_000, description="A JSON object")] = "",
    idempotency_key: Annotated[str, Header(max_length=200)] = "",
) -> JSONResponse:
    """Store a file, to be read and indexed by the next run; a repeated request changes nothing."""
    settings: Settings = request.app.state.settings
    described = _parsed(metadata)
    check_writable({"title": title, "file": file.filename, "metadata": described})
    if (file.size or 0) > settings.extraction.file_mb * 1024**2:
        message = _(
            "The file takes more than {megabytes} MB. Raise EXTRACTION__FILE_MB or split the file."
        ).format(megabytes=settings.extraction.file_mb)
        raise ProblemError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, message)

    def work() -> JSONResponse:
        content = file.file.read()
        received = check_upload(
            content,
            file.filename or "",
            tenant=caller.tenant,
            title=title,
            metadata=described,
            idempotency_key=idempotency_key,
        )
        with request.app.state.tenants.of(caller.tenant) as app:
            made = app.documents.register(received, content)
        headers = {"Location": f"/v1/documents/{made.document_id}"}
        return JSONResponse(_json(made), HTTPStatus.ACCEPTED, headers=headers)

    return await _in_turn(request, work)


@router.get("/v1/documents")
def list_all(
    request: Request,
    caller: Reader,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
) -> DocumentRows:
    """List the latest documents; `total` counts all of them."""
    with request.app.state.tenants.of(caller.tenant) as app:
        documents, total = app.documents.list(limit=limit)
    return DocumentRows(documents=documents, total=total)


@router.get("/v1/documents/{document_id:uuid}", response_model=DocumentSummary)
def show(request: Request, caller: Reader, document_id: UUID) -> JSONResponse:
    """Show a document: how far each stage is, and what failed."""
    with request.app.state.tenants.of(caller.tenant) as app:
        found = _found(app.documents, document_id)
        failures = jsonable_encoder(app.documents.details(found).failures)
    return JSONResponse(_json(found) | {"failures": failures})


@router.get(
    "/v1/documents/{document_id:uuid}/pages/{page}",
    response_class=Response,
    responses={200: {"content": {"image/png": {}}}},
)
async def picture(
    request: Request,
    caller: Reader,
    document_id: UUID,
    page: Annotated[int, Path(ge=1, le=100_000)],
    box: Annotated[list[str], Query(max_length=500, description="left,top,right,bottom")] = [],  # noqa: B006 - FastAPI copies it
) -> Response:
    """Show a page of a PDF document as a picture, with boxes marked, in points from the top."""
    boxes = [_box(each) for each in box]

    def work() -> bytes:
        with request.app.state.tenants.of(caller.tenant) as app:
            found = _found(app.documents, document_id)
            try:
                drawn: bytes = app.documents.picture(found, page, boxes=boxes)
            except ExtractionError:
                message = _("There is no picture of page {page} of this document.").format(
                    page=page
                )
                raise ProblemError(HTTPStatus.NOT_FOUND, message) from None
            return drawn

    png = await _in_turn(request, work)
    return Response(png, media_type="image/png", headers={"Cache-Control": "private, no-cache"})


@router.delete("/v1/documents/{document_id:uuid}", status_code=HTTPStatus.NO_CONTENT)
def delete(request: Request, caller: Writer, document_id: UUID) -> Response:
    """Delete a document with everything that has its text; its source does not bring it back."""
    with request.app.state.tenants.of(caller.tenant) as app:
        found = _found(app.documents, document_id)
        app.documents.delete(found, reason="HTTP")
    return Response(status_code=HTTPStatus.NO_CONTENT)


@router.patch("/v1/documents/{document_id:uuid}")
def describe(
    request: Request, caller: Writer, document_id: UUID, body: DocumentChanges
) -> DocumentSummary:
    """Change the title of an uploaded document, and fields of its metadata."""
    with request.app.state.tenants.of(caller.tenant) as app:
        _found(app.documents, document_id)
        app.documents.describe(document_id, title=body.title, changes=body.metadata)
        return _found(app.documents, document_id)


@router.post("/v1/documents/restore", status_code=HTTPStatus.NO_CONTENT)
def restore(request: Request, caller: Writer, body: DeletedAddress) -> Response:
    """Let a deleted document be uploaded again, or its source bring it back."""
    with request.app.state.tenants.of(caller.tenant) as app:
        if not app.documents.restore(body.address):
            message = _("No document with the address {address} was deleted.").format(
                address=shown(body.address)
            )
            raise ProblemError(HTTPStatus.NOT_FOUND, message)
    return Response(status_code=HTTPStatus.NO_CONTENT)


async def _in_turn(request: Request, work: Callable[[], ResultT]) -> ResultT:
    """Run work in a thread, a few at once: each holds a whole file in memory."""
    return await anyio.to_thread.run_sync(work, limiter=request.app.state.uploading)


def _box(written: str) -> Box:
    """Read a box.

    Raises:
        ProblemError: 400: it is not four numbers on a page.
    """
    match = _BOX.fullmatch(written)
    if match is None:
        problem = _("box: “{value}” is not four numbers: left,top,right,bottom").format(
            value=shown(written)
        )
        raise invalid(problem)
    left, top, right, bottom = (float(each) for each in match.groups())
    return Box(min(left, right), min(top, bottom), max(left, right), max(top, bottom))


def _parsed(metadata: str) -> Any:
    try:
        return json.loads(metadata) if metadata.strip() else None
    except (ValueError, RecursionError):
        raise InvalidSourceError(about("metadata", _("must be a JSON object"))) from None


def _json(document: DocumentSummary) -> dict[str, Any]:
    return document.model_dump(mode="json", by_alias=True)


def _found(documents: Documents, document_id: UUID) -> DocumentSummary:
    found = documents.find_by_id(document_id)
    if found is None:
        message = _("“{name}” does not exist.").format(name=document_id)
        raise ProblemError(HTTPStatus.NOT_FOUND, message)
    return found


for _path in PATHS:
    router.post(_path, status_code=HTTPStatus.ACCEPTED, response_model=DocumentSummary)(upload)
