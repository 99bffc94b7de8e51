"""Cites the notes that an answer was copied from, and checks that they still say it.

What a citation is belongs in `core.citations`; choosing the sentences in `core.quotation`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import structlog

from rag_resources.answers.origins import origin_of
from rag_resources.core.answers import CitedSentence
from rag_resources.core.citations import AnswerSentence, Citation
from rag_resources.core.places import NoteSpan, places_of
from rag_resources.core.quotation import SourcePassage, beside, columns_of
from rag_resources.core.text import Span
from rag_resources.core.types import RetrievalResult
from rag_resources.database.pool import Connection
from rag_resources.store.documents import fetch_spans
from rag_resources.store.notes import CitedNote, fetch_cited

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
            cited.append(AnswerSentence(sentence.text, held, sentence.is_supported))
    return cited


@dataclass(frozen=True, slots=True, eq=False)
class _Quoted:
    """A range of a note as the search read it, with what is around it in the passage."""

    result: RetrievalResult
    span: Span
    text: str
    beside: tuple[str, str]
    columns: str


def _quoted(result: RetrievalResult, span: Span) -> _Quoted:
    """Return a range of a result's expanded content as a range of its note."""
    first = result.start_char - result.matched_bounds[0]
    text = result.expanded_content[span.start : span.end]
    around = beside(result.expanded_content, span)
    columns = columns_of(result.expanded_content, span)
    return _Quoted(result, Span(first + span.start, first + span.end), text, around, columns)


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
    return Citation(
        result.note_id,
        span.start,
        span.end,
        note.content_sha256,
        result.title,
        result.external_id,
        result.created_at,
        place,
        *quoted.beside,
        quoted.columns,
    )
