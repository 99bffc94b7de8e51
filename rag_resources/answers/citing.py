"""Cites the notes that an answer was copied from, and checks that they still say it. Property 47.

What a citation is belongs in `core.citations`; choosing the sentences in `core.quotation`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

import structlog

from rag_resources.answers.prompting import origin_of
from rag_resources.core.answer_log import LoggedCitation
from rag_resources.core.answers import CitedSentence
from rag_resources.core.citations import AnswerSentence, Citation
from rag_resources.core.golden_places import NoteRange
from rag_resources.core.note_labels import note_label
from rag_resources.core.places import NoteSpan, Place, places_of
from rag_resources.core.quotation import SourcePassage, quote_of
from rag_resources.core.text import Span
from rag_resources.core.types import RetrievalResult
from rag_resources.database.pool import Connection
from rag_resources.store.documents import fetch_spans
from rag_resources.store.notes import CitedNote, fetch_cited, fetch_notes

_log = structlog.get_logger()


def passages_of(results: Sequence[RetrievalResult], language: str = "es") -> list[SourcePassage]:
    """Return the passages that an answerer gets: each result with the sentences around it.

    Args:
        results: Best first.
        language: The language in which a language model is told where passages are from.
    """
    return [
        SourcePassage(
            own.expanded_content,
            origin_of(own, language),
            (own.title, *(own.place.heading_path if own.place else ())),
            tuple(each.moved(own.matched_bounds[0] - own.start_char) for each in own.windows),
        )
        for own in results
    ]


def cite(
    connection: Connection, sentences: Sequence[CitedSentence], results: Sequence[RetrievalResult]
) -> list[AnswerSentence]:
    """Return sentences with the ranges of notes that support them.

    A range that the note no longer has, because it was edited or deleted after the search, is not
    cited, and a sentence without a citation is left out.

    Args:
        connection: In a transaction that sees the present notes.
        sentences: From `passages_of` the same results.
        results: Best first.
    """
    quoted = [[_quoted(results[own.rank - 1], own.span) for own in s.sources] for s in sentences]
    ranges = [own for each in quoted for own in each]
    citations = dict(zip(ranges, _citations(connection, ranges), strict=True))
    cited = []
    for sentence, own in zip(sentences, quoted, strict=True):
        held = tuple(found for each in own if (found := citations[each]))
        if held:
            cited.append(AnswerSentence(sentence.text, held, sentence.is_quotation))
    return cited


def quoted_ranges(
    connection: Connection, sentences: Sequence[CitedSentence], results: Sequence[RetrievalResult]
) -> list[NoteRange]:
    """Return the ranges of notes that readers are shown with some sentences; see `cite`."""
    return [
        NoteRange(own.note_id, own.quote_start, own.quote_end)
        for sentence in cite(connection, sentences, results)
        for own in sentence.citations
    ]


@dataclass(frozen=True, slots=True, eq=False)
class _Quoted:
    """A range of a note as the search read it."""

    result: RetrievalResult
    span: Span
    text: str


def _quoted(result: RetrievalResult, span: Span) -> _Quoted:
    """Return a range of a result's expanded content as a range of its note."""
    first = result.start_char - result.matched_bounds[0]
    text = result.expanded_content[span.start : span.end]
    return _Quoted(result, Span(first + span.start, first + span.end), text)


def _citations(connection: Connection, quoted: Sequence[_Quoted]) -> list[Citation | None]:
    """Return the citation of each range; None if the note no longer has it."""
    ranges = [(own.result.note_id, own.span.start, own.span.end) for own in quoted]
    stored, spans = fetch_cited(connection, ranges), fetch_spans(connection, ranges)
    return [_citation(*each) for each in zip(quoted, stored, spans, strict=True)]


def _citation(
    quoted: _Quoted, note: CitedNote | None, spans: Sequence[NoteSpan]
) -> Citation | None:
    result, span = quoted.result, quoted.span
    if note is None or note.text != quoted.text:
        _log.info("citation_left_out", note_id=str(result.note_id), gone=note is None)
        return None
    place = result.place
    if place and (found := places_of(spans, span.start, span.end)):
        place = replace(place, places=found)
    quote = quote_of(note.around, Span(note.start, note.start + span.length))
    moved = span.start - note.start
    return Citation(
        result.note_id,
        span.start,
        span.end,
        note.content_sha256,
        result.title,
        result.external_id,
        result.created_at,
        place,
        moved + quote.span.start,
        moved + quote.span.end,
        quote.before,
        quote.after,
        quote.columns,
    )


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
