"""Cuts notes into chunks of whole sentences, with exact offsets. `core.text` finds the sentences.

Properties 7 to 12 are about this module; if they conflict, size takes precedence over overlap.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from uuid import UUID, uuid5

from rag_resources.core.configuration import ChunkingConfig
from rag_resources.core.errors import InvalidParameterError
from rag_resources.core.messages import Message
from rag_resources.core.rules import rules
from rag_resources.core.sentences import sentences
from rag_resources.core.text import Span, content_sha256, count_tokens, is_blank
from rag_resources.core.types import Chunk

TokenCounter = Callable[[str], int]

# A clause ends after these marks, or before a conjunction. A match starts only at the beginning of
# a run of white space: trying every position in it would take time quadratic in its length.
_CLAUSE_BORDER = re.compile(
    rf"(?<=[;:,—])\s+|(?<!\s)\s++(?=(?:{'|'.join(rules().sentences.conjunctions)})\s)",
    re.IGNORECASE,
)
_WORD = re.compile(r"\S+")


def chunk_id(note_id: UUID, chunk_index: int, content: str) -> UUID:
    """Return a chunk's id: UUIDv5 of note id, index and content, so that reruns give the same."""
    return uuid5(note_id, f"{chunk_index}:{content_sha256(content).hex()}")


def chunk_note(
    note_id: UUID, content: str, config: ChunkingConfig, *, counter: TokenCounter = count_tokens
) -> list[Chunk]:
    """Cut a note into chunks of whole sentences.

    Args:
        note_id: The parent note.
        content: Its text, not blank.
        config: Sizes in tokens of `counter`.
        counter: Counts the tokens of a text; must never decrease when the text grows.

    Returns:
        Chunks numbered from 0 that cover every character that is not white space, each of at most
        `config.max_tokens`. Neighbours share the trailing units (sentences, or clauses of an
        over-long sentence) that fit in 1.5 x `config.overlap_tokens`, at least one if it fits in
        half a chunk.

    Raises:
        InvalidParameterError: The note is blank.

    Properties: 7, 8, 9, 10, 11, 12.
    """
    if is_blank(content):
        raise InvalidParameterError(Message.BLANK_NOTE, note_id=str(note_id))
    spans = _pack(content, _units(content, config, counter), config, counter)
    return [
        Chunk(
            chunk_id=chunk_id(note_id, index, content[span.start : span.end]),
            note_id=note_id,
            chunk_index=index,
            start_char=span.start,
            end_char=span.end,
            content=content[span.start : span.end],
        )
        for index, span in enumerate(spans)
    ]


def _units(text: str, config: ChunkingConfig, counter: TokenCounter) -> list[Span]:
    """Sentences; one that is too long is split into clauses, words or characters."""
    units: list[Span] = []
    for sentence in sentences(text):
        if counter(text[sentence.start : sentence.end]) <= config.max_tokens:
            units.append(sentence)
        else:
            units.extend(_split_sentence(text, sentence, config, counter))
    return units


def _split_sentence(
    text: str, sentence: Span, config: ChunkingConfig, counter: TokenCounter
) -> Iterator[Span]:
    # Runs of words are at most as long as the overlap, so that neighbours can share one.
    limit = config.overlap_tokens or config.max_tokens
    for clause in _cut(text, sentence, _CLAUSE_BORDER):
        if counter(text[clause.start : clause.end]) <= config.max_tokens:
            yield clause
        else:
            yield from _split_words(text, clause, limit, config.max_tokens, counter)


def _cut(text: str, span: Span, border: re.Pattern[str]) -> Iterator[Span]:
    """Pieces between the borders; never empty, as sentences have no white space at the ends."""
    start = span.start
    for match in border.finditer(text, span.start, span.end):
        yield Span(start, match.start())
        start = match.end()
    yield Span(start, span.end)


def _split_words(
    text: str, span: Span, limit: int, max_tokens: int, counter: TokenCounter
) -> Iterator[Span]:
    """Runs of words within the limit; a longer word alone, and cut if it exceeds `max_tokens`."""
    run: Span | None = None
    for match in _WORD.finditer(text, span.start, span.end):
        word = Span(match.start(), match.end())
        if run and counter(text[run.start : word.end]) <= limit:
            run = Span(run.start, word.end)
            continue
        if run:
            yield run
        run = word
        if counter(text[word.start : word.end]) > max_tokens:
            # A single character may be several tokens; it is kept, or the run would be empty.
            while run.length > 1 and counter(text[run.start : run.end]) > limit:
                head = _longest_prefix(text, run, limit, counter)
                yield head
                run = Span(head.end, run.end)
    if run:
        yield run


def _longest_prefix(text: str, span: Span, limit: int, counter: TokenCounter) -> Span:
    low, high = span.start + 1, span.end
    while low < high:
        middle = (low + high + 1) // 2
        if counter(text[span.start : middle]) <= limit:
            low = middle
        else:
            high = middle - 1
    return Span(span.start, low)


def _pack(
    text: str, units: Sequence[Span], config: ChunkingConfig, counter: TokenCounter
) -> list[Span]:
    """Greedy runs of units; a short last run takes over units from the run before it."""

    def size(first: int, last: int) -> int:
        return counter(text[units[first].start : units[last].end])

    runs: list[Span] = []
    first, fresh = 0, 0  # the run starts at unit `first`; units before `fresh` are overlap
    while fresh < len(units):
        last = fresh
        while last + 1 < len(units) and size(first, last + 1) <= config.max_tokens:
            last += 1
        if last + 1 < len(units):
            last = _spare_tail(size, first, fresh, last, len(units) - 1, config)
        runs.append(Span(units[first].start, units[last].end))
        fresh = last + 1
        first = _overlap_start(size, first, fresh, len(units), config)
    return runs


def _spare_tail(
    size: Callable[[int, int], int],
    first: int,
    fresh: int,
    last: int,
    end: int,
    config: ChunkingConfig,
) -> int:
    """Move the border back while the last run is too short and this run can spare units."""
    best = last
    while size(best + 1, end) < config.min_tokens:
        if best - 1 < fresh or size(first, best - 1) < config.min_tokens:
            return last
        best -= 1
    # The overlap is added to the last run: if both do not fit, moving would only add a chunk.
    start = _overlap_start(size, first, best + 1, end + 1, config)
    return best if best == last or size(start, end) <= config.max_tokens else last


def _overlap_start(
    size: Callable[[int, int], int], first: int, fresh: int, count: int, config: ChunkingConfig
) -> int:
    """The first unit of the next run, which repeats the trailing units of this one from there."""
    if fresh >= count or config.overlap_tokens == 0:
        return fresh
    start = fresh
    while start - 1 > first and size(start - 1, fresh - 1) <= 1.5 * config.overlap_tokens:
        start -= 1
    if start == fresh and start - 1 > first and size(start - 1, fresh - 1) <= config.max_tokens / 2:
        start -= 1
    while start < fresh and size(start, fresh) > config.max_tokens:
        start += 1
    return start
