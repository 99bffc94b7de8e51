"""Cuts notes into chunks with exact offsets: greedy runs of sentences, or by structure.

`core.chunk_units` finds the sentences; cutting by structure is in `core.structure_chunking`.

Properties 7 to 12 are about this module; if they conflict, size takes precedence over overlap.
"""

from collections.abc import Callable, Sequence
from uuid import UUID, uuid5

from rag_resources.core.blocks import Reading, read
from rag_resources.core.chunk_units import TokenCounter, overlap_start, units_of
from rag_resources.core.configuration import ChunkingConfig, ChunkLimits
from rag_resources.core.errors import InvalidParameterError
from rag_resources.core.structure_chunking import structure_spans
from rag_resources.core.text import Span, content_sha256, count_tokens, is_blank
from rag_resources.core.types import Chunk
from rag_resources.languages.messages import _


def chunk_id(note_id: UUID, chunk_index: int, content: str) -> UUID:
    """Return a chunk's id: UUIDv5 of note id, index and content, so that reruns give the same."""
    return uuid5(note_id, f"{chunk_index}:{content_sha256(content).hex()}")


def chunk_note(
    note_id: UUID, content: str, config: ChunkingConfig, *, counter: TokenCounter = count_tokens
) -> list[Chunk]:
    """Cut a note into chunks of whole sentences, or of rows of a table.

    Args:
        note_id: The parent note.
        content: Its text, not blank.
        config: Strategy and sizes.
        counter: Counts the tokens of a text; must never decrease when the text grows.

    Returns:
        Chunks numbered from 0 that cover all but white space and long hidden parts, each of at most
        the longest length. Neighbours share the trailing units (sentences, or clauses of an
        over-long sentence) that fit in 1.5 x the overlap, at least one if it fits in half a chunk.

    Raises:
        InvalidParameterError: The note is blank.

    Properties: 7, 8, 9, 10, 11, 12.
    """
    if is_blank(content):
        raise InvalidParameterError(_("The note is blank."), note_id=str(note_id))
    limits = config.limits
    if config.strategy == "structure":
        spans = structure_spans(content, config, counter)
    else:
        spans = _pack(content, units_of(content, limits, counter), limits, counter)
    reading = read(content)
    return [
        Chunk(
            chunk_id=chunk_id(note_id, index, content[span.start : span.end]),
            note_id=note_id,
            chunk_index=index,
            start_char=span.start,
            end_char=span.end,
            content=content[span.start : span.end],
            rendered=_rendered(reading, span),
        )
        for index, span in enumerate(spans)
    ]


def _rendered(reading: Reading, span: Span) -> str | None:
    """What is seen of a chunk; None if that is its text but for white space, or nothing."""
    shown = reading.rendered(span.start, span.end)
    same = shown.split() == reading.text[span.start : span.end].split()
    return None if same or not shown else shown


def _pack(
    text: str, units: Sequence[Span], limits: ChunkLimits, counter: TokenCounter
) -> list[Span]:
    """Greedy runs of units; a short last run takes over units from the run before it."""

    def size(first: int, last: int) -> int:
        return counter(text[units[first].start : units[last].end])

    runs: list[Span] = []
    first, fresh = 0, 0  # the run starts at unit `first`; units before `fresh` are overlap
    while fresh < len(units):
        last = fresh
        while last + 1 < len(units) and size(first, last + 1) <= limits.longest:
            last += 1
        if last + 1 < len(units):
            last = _spare_tail(size, first, fresh, last, len(units) - 1, limits)
        runs.append(Span(units[first].start, units[last].end))
        fresh = last + 1
        first = overlap_start(size, first, fresh, len(units), limits)
    return runs


def _spare_tail(
    size: Callable[[int, int], int],
    first: int,
    fresh: int,
    last: int,
    end: int,
    limits: ChunkLimits,
) -> int:
    """Move the border back while the last run is too short and this run can spare units."""
    best = last
    while size(best + 1, end) < limits.shortest:
        if best - 1 < fresh or size(first, best - 1) < limits.shortest:
            return last
        best -= 1
    # The overlap is added to the last run: if both do not fit, moving would only add a chunk.
    start = overlap_start(size, first, best + 1, end + 1, limits)
    return best if best == last or size(start, end) <= limits.longest else last
