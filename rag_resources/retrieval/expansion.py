"""Turns passages into results, each with its surrounding sentences, using `core.expansion`."""

from collections.abc import Callable, Mapping, Sequence
from uuid import UUID

from rag_resources.core.configuration import ContextConfig
from rag_resources.core.expansion import expand
from rag_resources.core.text import Span
from rag_resources.core.types import RetrievalResult, ScoredChunk, Windows
from rag_resources.store.passages import Passage

Sentences = Callable[[str], Sequence[Span]]


def expanded_windows(
    passages: Sequence[Passage], config: ContextConfig, sentences: Sentences
) -> dict[UUID, Span]:
    """Widen each passage by its neighbouring sentences.

    Args:
        passages: Without repeats.
        config: How many sentences to add.
        sentences: Cuts a note into sentences.

    Returns:
        The window of each chunk in its note; touching windows of one note are merged.
    """
    windows: dict[UUID, Span] = {}
    by_note: dict[UUID, list[Passage]] = {}
    for passage in passages:
        by_note.setdefault(passage.note.note_id, []).append(passage)
    for own in by_note.values():
        expanded = expand(
            own[0].note.content, [_span(passage) for passage in own], config, sentences=sentences
        )
        windows.update(zip((passage.chunk.chunk_id for passage in own), expanded, strict=True))
    return windows


def results(
    chunks: Sequence[ScoredChunk],
    passages: Mapping[UUID, Passage],
    windows: Mapping[UUID, Span],
    matched: Mapping[UUID, Windows],
) -> tuple[RetrievalResult, ...]:
    """Return the results, in order. Property 5.

    Args:
        chunks: In the order of the results.
        passages: By chunk id.
        windows: The widened span of each in its note, by chunk id; without one, it stands alone.
        matched: The windows of each in the chunk, by chunk id.
    """
    return tuple(
        _result(
            chunk,
            passages[chunk.chunk_id],
            windows.get(chunk.chunk_id),
            matched.get(chunk.chunk_id, ()),
        )
        for chunk in chunks
    )


def _result(
    item: ScoredChunk, passage: Passage, window: Span | None, matched: Windows
) -> RetrievalResult:
    chunk, note = passage.chunk, passage.note
    shown = window or _span(passage)
    return RetrievalResult(
        chunk_id=item.chunk_id,
        note_id=item.note_id,
        content=chunk.content,
        expanded_content=note.content[shown.start : shown.end],
        score=item.score,
        chunk_index=chunk.chunk_index,
        matched_bounds=(chunk.start_char - shown.start, chunk.end_char - shown.start),
        lists=item.lists,
        original_score=item.original_score,
        rerank_score=item.rerank_score,
        title=note.title,
        external_id=note.external_id,
        created_at=note.created_at,
        start_char=chunk.start_char,
        place=passage.place,
        document=passage.document,
        windows=tuple(own.moved(chunk.start_char) for own in matched),
        causal_path=item.path,
    )


def _span(passage: Passage) -> Span:
    return Span(passage.chunk.start_char, passage.chunk.end_char)
