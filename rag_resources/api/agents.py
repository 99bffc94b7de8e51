"""The tools of `api.routes.mcp`: the arguments that agents give, and the text they read."""

from http import HTTPStatus
from typing import Annotated, Any
from uuid import UUID

import anyio.to_thread
from fastapi import Request
from pydantic import BeforeValidator, Field

from rag_resources.api.bodies import Body, FiltersInCamelCase, Question, Search
from rag_resources.api.identity import Caller
from rag_resources.api.problems import ProblemError
from rag_resources.api.searching import asked_as_json, found_as_json, searched
from rag_resources.core.filters import Moment, ShortText
from rag_resources.core.note_labels import note_label
from rag_resources.languages.messages import _
from rag_resources.store.open_notes import OpenNote

MOST_CHARS = 20_000
"""Most characters of a note that are returned at once, because an agent's context is small."""


class Restricted(Body):
    """A question, and which notes are searched.

    Attributes:
        tags: The notes have all of these.
        file: The document with this address.
        created_from: A date, or a date and time.
        created_until: Likewise; notes are older.
    """

    query: Question
    tags: Annotated[
        tuple[ShortText, ...],
        Field(max_length=20),
        BeforeValidator(lambda given: (given,) if isinstance(given, str) else given),
    ] = ()
    file: ShortText | None = None
    created_from: Moment | None = None
    created_until: Moment | None = None

    def as_search(self, top_k: int | None = None) -> Search:
        """Return these arguments as a search of the API."""
        given = {
            "tags": self.tags,
            "created_from": self.created_from,
            "created_until": self.created_until,
            "metadata": {"file": self.file} if self.file else {},
        }
        filters = FiltersInCamelCase.model_validate(given)
        return Search.model_validate({"query": self.query, "topK": top_k, "filters": filters})


class SearchNotes(Restricted):
    """The arguments of `search_notes`."""

    limit: Annotated[int, Field(ge=1, le=20)] = 5


class AskNotes(Restricted):
    """The arguments of `ask_notes`."""


class GetNote(Body):
    """The arguments of `get_note`; `start` and `end` are characters."""

    id: UUID
    start: Annotated[int, Field(ge=0)] = 0
    end: Annotated[int, Field(ge=1)] | None = None


def _language(request: Request) -> str:
    language: str = request.app.state.settings.answer_language
    return language


async def search(request: Request, wanted: SearchNotes) -> tuple[str, dict[str, Any]]:
    """Return passages as text and as `/v1/retrieve` gives them."""
    body, language = wanted.as_search(wanted.limit), _language(request)
    caller: Caller = request.state.caller
    found = await searched(
        request,
        caller,
        body,
        lambda app, arguments: found_as_json(app.retrieve(body.query, **arguments), language),
    )
    parts = [
        f"[{rank}] {_label(result)} ({_day(result)}; note {result['noteId']})\n{result['content']}"
        for rank, result in enumerate(found["results"], start=1)
    ]
    told = [*parts, *found["metadata"]["messages"]]
    return "\n\n".join(told or [_("No results were found for this query.")]), found


async def ask(request: Request, wanted: AskNotes) -> tuple[str, dict[str, Any]]:
    """Return an answer as text with numbered sources, and as `/v1/answers` gives it."""
    body, language = wanted.as_search(), _language(request)
    caller: Caller = request.state.caller
    answer = await searched(
        request,
        caller,
        body,
        lambda app, arguments: asked_as_json(app.answers.ask(body.query, **arguments), language),
    )
    sources: dict[tuple[str, int, int], int] = {}
    lines: list[str] = []
    sentences: list[str] = []
    for sentence in answer["sentences"]:
        numbers = []
        for cited in sentence["citations"]:
            place = cited["noteId"], cited["start"], cited["end"]
            if place not in sources:
                sources[place] = len(sources) + 1
                where = f"note {place[0]}, {place[1]}-{place[2]}"
                lines.append(f"[{sources[place]}] {_label(cited)} ({_day(cited)}; {where})")
            numbers.append(f"[{sources[place]}]")
        sentences.append(f"{sentence['text']} {''.join(numbers)}")
    text = " ".join(sentences) or answer["notice"]
    return "\n\n".join([text, "\n".join(lines), *answer["explanations"]]).strip(), answer


async def get(request: Request, wanted: GetNote) -> tuple[str, dict[str, Any]]:
    """Return a note's title and text, and all that is known of it."""
    caller: Caller = request.state.caller

    def work() -> OpenNote | None:
        with request.app.state.tenants.of(caller.tenant) as app:
            found: OpenNote | None = app.notes.open(wanted.id)
            return found

    note = await anyio.to_thread.run_sync(work)
    if note is None:
        message = _("“{name}” does not exist.").format(name=wanted.id)
        raise ProblemError(HTTPStatus.NOT_FOUND, message)
    end = min(wanted.end or len(note.content), wanted.start + MOST_CHARS, len(note.content))
    part = {
        "content": note.content[wanted.start : end],
        "start": wanted.start,
        "end": end,
        "characters": len(note.content),
    }
    label = note_label(note.title, note.external_id, note.id)
    text = f"{label} ({note.created_at:%Y-%m-%d})\n\n{part['content']}"
    return text, {**note.model_dump(mode="json", by_alias=True), **part}


def _label(row: dict[str, Any]) -> str:
    return note_label(row["title"], row["externalId"], row["noteId"])


def _day(row: dict[str, Any]) -> str:
    return str(row["createdAt"] or "")[:10]
