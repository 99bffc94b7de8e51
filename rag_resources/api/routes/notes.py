"""`/v1/notes` and `/v1/tags`: notes to open and tags to filter by; `/v1/me`: the key's rights."""

from http import HTTPStatus
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Request

from rag_resources.api.bodies import Tag, Tags, Who
from rag_resources.api.identity import Reader
from rag_resources.api.problems import ProblemError
from rag_resources.languages.messages import _
from rag_resources.store.open_notes import OpenNote

router = APIRouter(tags=["notes"])


@router.get("/v1/notes/{note_id:uuid}")
def show(request: Request, caller: Reader, note_id: UUID) -> OpenNote:
    """Open a note."""
    with request.app.state.tenants.of(caller.tenant) as app:
        found = app.notes.open(note_id)
    if found is None:
        message = _("“{name}” does not exist.").format(name=note_id)
        raise ProblemError(HTTPStatus.NOT_FOUND, message)
    note: OpenNote = found
    return note


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
