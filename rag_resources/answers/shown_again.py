"""Shows the citations of an earlier answer as their notes are now. Property 47."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from rag_resources.core.answer_log import LoggedCitation
from rag_resources.core.note_labels import note_label
from rag_resources.core.places import Place, places_of
from rag_resources.database.pool import Connection
from rag_resources.store.documents import fetch_spans
from rag_resources.store.notes import fetch_cited, fetch_notes


class CitationState(StrEnum):
    """Whether a cited note was edited or deleted since."""

    AS_CITED = "as_cited"
    EDITED = "edited"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class CitationNow:
    """A citation as its note is now.

    Attributes:
        text: The cited text; None if the note was edited or is gone.
        title: The note's present title; empty if it is gone.
        external_id: As in `core.types.Note`; empty if it is gone.
        places: Where the range is in its document; none if the note is not a section of one, was
            edited, or is gone.
    """

    cited: LoggedCitation
    state: CitationState
    text: str | None = None
    title: str = ""
    external_id: str = ""
    created_at: datetime | None = None
    places: tuple[Place, ...] = ()

    @property
    def label(self) -> str:
        """What people are shown of the note."""
        return note_label(self.title, self.external_id, self.cited.note_id)

    def to_json(self) -> dict[str, Any]:
        """Return the camelCase form."""
        return {
            **self.cited.to_json(),
            "state": self.state.value,
            "text": self.text,
            "externalId": self.external_id,
            "title": self.title,
            "createdAt": self.created_at.isoformat() if self.created_at else None,
            "places": [place.to_json() for place in self.places],
        }


def citations_now(
    connection: Connection, citations: Sequence[LoggedCitation]
) -> tuple[CitationNow, ...]:
    """Return citations as their notes are now, in the same order; an expired note is gone."""
    ranges = [(own.note_id, own.start, own.end) for own in citations]
    stored, spans = fetch_cited(connection, ranges), fetch_spans(connection, ranges)
    notes = fetch_notes(connection, {own.note_id for own in citations})
    found = []
    for own, note, of_document in zip(citations, stored, spans, strict=True):
        known = notes.get(own.note_id)
        if note is None or known is None:
            found.append(CitationNow(own, CitationState.GONE))
            continue
        is_same = note.content_sha256.hex() == own.content_sha256
        found.append(
            CitationNow(
                own,
                CitationState.AS_CITED if is_same else CitationState.EDITED,
                note.text if is_same else None,
                known.title,
                known.external_id,
                known.created_at,
                places_of(of_document, own.start, own.end) if is_same else (),
            )
        )
    return tuple(found)
