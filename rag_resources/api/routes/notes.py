"""`/v1/notes` and `/v1/tags`: notes to open and tags to filter by; `/v1/me`: the key's rights."""

from contextlib import suppress
from http import HTTPStatus
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Request, Response

from rag_resources.api.bodies import NoteChanges, Tag, Tags, Who
from rag_resources.api.identity import Reader, Writer
from rag_resources.api.problems import ProblemError
from rag_resources.application import Application
from rag_resources.core.errors import ConflictError, InvalidParameterError
from rag_resources.languages.messages import _
from rag_resources.store.open_notes import OpenNote

router = APIRouter(tags=["notes"])


@router.get("/v1/notes/{note_id:uuid}")
def show(request: Request, caller: Reader, note_id: UUID) -> OpenNote:
    """Open a note."""
    with request.app.state.tenants.of(caller.tenant) as app:
        return _opened(app, note_id)


@router.patch("/v1/notes/{note_id:uuid}")
def edit(request: Request, caller: Writer, note_id: UUID, body: NoteChanges) -> OpenNote:
    """Change fields of a note's metadata; its source does not change them back."""
    with request.app.state.tenants.of(caller.tenant) as app:
        document_id = _opened(app, note_id).document_id
        if document_id is not None:
            raise ConflictError(
                _(
                    "The note is a section of a document: change the metadata of that, with PATCH "
                    "/v1/documents/{document_id}."
                ).format(document_id=document_id)
            )
        app.notes.edit(note_id, body.metadata)
        return _opened(app, note_id)


@router.delete("/v1/notes/{note_id:uuid}", status_code=HTTPStatus.NO_CONTENT)
def delete(request: Request, caller: Writer, note_id: UUID) -> Response:
    """Delete a note; it can be restored for some days, and its source does not bring it back."""
    with request.app.state.tenants.of(caller.tenant) as app:
        _opened(app, note_id)
        app.notes.delete([note_id], reason="HTTP")
    return Response(status_code=HTTPStatus.NO_CONTENT)


@router.post("/v1/notes/{note_id:uuid}/restore")
def restore(request: Request, caller: Writer, note_id: UUID) -> OpenNote:
    """Bring a deleted note back."""
    with request.app.state.tenants.of(caller.tenant) as app:
        with suppress(InvalidParameterError):  # There was none, which is then said.
            app.notes.restore([str(note_id)])
        return _opened(app, note_id)


def _opened(app: Application, note_id: UUID) -> OpenNote:
    found = app.notes.open(note_id)
    if found is None:
        message = _("“{name}” does not exist.").format(name=note_id)
        raise ProblemError(HTTPStatus.NOT_FOUND, message)
    return found


@router.get("/v1/tags")
def tags(
    request: Request, caller: Reader, limit: Annotated[int, Query(ge=1, le=1_000)] = 100
) -> Tags:
    """List the tags of the notes, the most used first."""
    with request.app.state.tenants.of(caller.tenant) as app:
        found = app.notes.tags(limit=limit)
    return Tags(tags=[Tag(tag=tag, notes=notes) for tag, notes in found])


@router.get("/v1/me")
def me(caller: Reader) -> Who:
    """Say whose notes the key of this request shows, and what it may do."""
    return Who(
        tenant=caller.tenant,
        role=caller.role.value,
        key_id=caller.key_id or None,
    )
