"""Cites the notes that an answer was copied from, and checks that they still say it.

What a citation is belongs in `core.citations`; choosing the sentences in `core.answers`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import structlog

from rag_resources.core.answers import NOT_FOUND, Answer
from rag_resources.core.citations import AnswerSentence, Citation, CitedAnswer
from rag_resources.core.places import NoteSpan, places_of
from rag_resources.core.sentence_ranking import ScoredPassage
from rag_resources.core.text import Span
from rag_resources.core.types import RetrievalResult
from rag_resources.database.pool import Connection
from rag_resources.store.documents import fetch_spans
from rag_resources.store.notes import CitedNote, fetch_cited

_log = structlog.get_logger()


def passages_of(results: Sequence[RetrievalResult]) -> list[ScoredPassage]:
    """Return what an answerer gets of each result: the passage with the sentences around it."""
    return [ScoredPassage(result.expanded_content, result.score) for result in results]


def cite(
    connection: Connection,
    question: str,
    answer: Answer,
    results: Sequence[RetrievalResult],
    *,
    answerer: str,
) -> CitedAnswer:
    """Return an answer with the ranges of notes that support it.

    A sentence that was copied cites itself. The text of a language model cites the whole passages
    that the model names. A range that the note no longer has, because it was edited or deleted
    after the search, is not cited, and a sentence without a citation is left out.

    Args:
        connection: In a transaction that sees the present notes.
        question: The question.
        answer: From `passages_of` the same results.
        results: Best first.
        answerer: Name and version of what wrote the answer.
    """
    written = _sentences(answer, results)
    ranges = [own for _, quoted in written for own in quoted]
    citations = dict(zip(ranges, _citations(connection, ranges), strict=True))
    sentences = []
    for text, quoted in written:
        held = tuple(found for own in quoted if (found := citations[own]))
        if held:
            sentences.append(AnswerSentence(text, held))
    notice = "" if sentences else NOT_FOUND.text
    return CitedAnswer(question, tuple(sentences), answerer, notice)


@dataclass(frozen=True, slots=True, eq=False)
class _Quoted:
    """A range of a note as the search read it."""

    result: RetrievalResult
    span: Span
    text: str


def _sentences(
    answer: Answer, results: Sequence[RetrievalResult]
) -> list[tuple[str, list[_Quoted]]]:
    """Return the text of each sentence, in reading order, with what it quotes."""
    if answer.sentences:
        in_order = sorted(answer.sentences, key=lambda own: (own.rank, own.span.start))
        return [(own.text, [_quoted(results[own.rank - 1], own.span)]) for own in in_order]
    if not answer.found:
        return []
    passages = [results[rank - 1] for rank in answer.ranks]
    return [(answer.text, [_quoted(own, Span(*own.matched_bounds)) for own in passages])]


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
    return Citation(
        result.note_id,
        span.start,
        span.end,
        note.content_sha256,
        result.title,
        result.created_at,
        place,
    )
