"""Cuts notes into chunks with exact offsets: greedy runs of sentences, or by structure.

`core.blocks` reads the structure and `core.sentences` the sentences; a row of a table is one.

Properties 7 to 12 are about this module; if they conflict, size takes precedence over overlap.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from uuid import UUID, uuid5

from rag_resources.core.blocks import Reading, read
from rag_resources.core.configuration import ChunkingConfig, ChunkLimits
from rag_resources.core.errors import InvalidParameterError
from rag_resources.core.rules import rules
from rag_resources.core.sentences import sentences
from rag_resources.core.text import Span, content_sha256, count_tokens, is_blank
from rag_resources.core.types import Chunk
from rag_resources.languages.messages import _

TokenCounter = Callable[[str], int]

# A clause ends after these marks, or before a conjunction. A match starts only at the beginning of
# a run of white space: trying every position in it would take time quadratic in its length.
_CLAUSE_BORDER = re.compile(
    rf"(?<=[;:,—])\s+|(?<!\s)\s++(?=(?:{'|'.join(rules().sentences.conjunctions)})\s)",
    re.IGNORECASE,
)
_WORD = re.compile(r"\S+")
_BLANK_LINE = re.compile(r"\n[^\S\n]*\n")
_HEADING_CHARS = 120
_HEADING_END = re.compile(r"[\w)»\"'”’]$")

# Cost of ending a chunk at a border, besides its distance from the target (at most 1).
_AT_PARAGRAPH, _AT_LINE, _AT_SENTENCE, _AFTER_HEADING, _SHORT_REST = 0.0, 0.5, 1.0, 2.0, 4.0


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
        raise InvalidParameterError(_("The note is empty."), note_id=str(note_id))
    limits = config.limits
    if config.strategy == "structure":
        spans = _by_structure(content, config, counter)
    else:
        spans = _pack(content, _units_of(content, limits, counter), limits, counter)
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
        first = _overlap_start(size, first, fresh, len(units), limits)
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
    start = _overlap_start(size, first, best + 1, end + 1, limits)
    return best if best == last or size(start, end) <= limits.longest else last


def _by_structure(text: str, config: ChunkingConfig, counter: TokenCounter) -> list[Span]:
    """Return the chunks of a text that is not blank, in order.

    A chunk ends where it costs least: its distance from the target length, plus 0 between
    paragraphs, 0.5 between lines of a table or list, 1 between sentences, 2 after a heading or a
    table's header. A rest that would be too short costs more than all of these. A chunk has
    between the shortest and the longest length, if the pieces allow it.

    Properties: 7, 8, 9, 10, 11, 12.
    """
    limits = config.limits
    units = _units_of(text, limits, len)
    costs = _costs(text, units)

    def size(first: int, last: int) -> int:
        return units[last].end - units[first].start

    spans: list[Span] = []
    first = fresh = 0
    while fresh < len(units):
        last = _best_end(size, first, fresh, costs, config)
        spans.append(Span(units[first].start, units[last].end))
        fresh = last + 1
        first = _overlap_start(size, first, fresh, len(units), limits)
    return spans


def _best_end(
    size: Callable[[int, int], int],
    first: int,
    fresh: int,
    costs: Sequence[float],
    config: ChunkingConfig,
) -> int:
    """The last unit of the chunk that begins at unit `first`."""
    end = len(costs) - 1
    sizes = {fresh: size(first, fresh)}
    while (last := fresh + len(sizes)) <= end and (length := size(first, last)) <= config.max:
        sizes[last] = length
    long_enough = {last: length for last, length in sizes.items() if length >= config.min}
    if not long_enough:
        return max(sizes)

    def cost(last: int) -> float:
        distance = abs(long_enough[last] - config.target) / (config.max - config.min)
        short_rest = last < end and size(last + 1, end) < config.min
        return costs[last] + distance + _SHORT_REST * short_rest

    return min(long_enough, key=lambda last: (cost(last), -last))


def _costs(text: str, units: Sequence[Span]) -> list[float]:
    """Return the cost of ending a chunk after each unit."""
    blocks = read(text).blocks
    heads = {len(text[: own.span.end].rstrip()) for own in blocks if own.is_header}
    costs = []
    opens = True  # whether the unit is the first of its block
    for unit, after in zip(units, [*units[1:], None], strict=True):
        gap = text[unit.end : after.start] if after else ""
        is_block_end = bool(_BLANK_LINE.search(gap))
        if after is None:
            costs.append(_AT_PARAGRAPH)
        elif unit.end in heads or (is_block_end and opens and _is_heading(text, unit)):
            costs.append(_AFTER_HEADING)
        elif is_block_end:
            costs.append(_AT_PARAGRAPH)
        else:
            costs.append(_AT_LINE if "\n" in gap else _AT_SENTENCE)
        opens = is_block_end
    return costs


def _is_heading(text: str, unit: Span) -> bool:
    content = text[unit.start : unit.end]
    return (
        len(content) <= _HEADING_CHARS
        and "\n" not in content
        and bool(_HEADING_END.search(content))
    )


def _units_of(text: str, limits: ChunkLimits, counter: TokenCounter) -> list[Span]:
    """Return the sentences; one that is too long is split into clauses, words or characters."""
    units: list[Span] = []
    for sentence in sentences(text):
        if counter(text[sentence.start : sentence.end]) <= limits.longest:
            units.append(sentence)
        else:
            units.extend(_split_sentence(text, sentence, limits, counter))
    return units


def _split_sentence(
    text: str, sentence: Span, limits: ChunkLimits, counter: TokenCounter
) -> Iterator[Span]:
    """Yield the clauses of a sentence, or words and characters of those that are too long."""
    # Runs of words are at most as long as the overlap, so that neighbours can share one.
    limit = limits.overlap or limits.longest
    clauses = (
        clause
        for part in read(text).visible(sentence)
        for clause in _cut(text, _trimmed(text, part), _CLAUSE_BORDER)
        if clause.length
    )
    for clause in clauses:
        if counter(text[clause.start : clause.end]) <= limits.longest:
            yield clause
        else:
            yield from _split_words(text, clause, limit, limits.longest, counter)


def _trimmed(text: str, span: Span) -> Span:
    content = text[span.start : span.end]
    start = span.start + len(content) - len(content.lstrip())
    return Span(start, max(start, span.start + len(content.rstrip())))


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
    """Yield runs of words within the limit; a longer word alone, cut if over `max_tokens`."""
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


def _overlap_start(
    size: Callable[[int, int], int], first: int, fresh: int, count: int, limits: ChunkLimits
) -> int:
    """Return where the next run of units begins: it repeats the last ones of this run."""
    if fresh >= count or limits.overlap == 0:
        return fresh
    start = fresh
    while start - 1 > first and size(start - 1, fresh - 1) <= 1.5 * limits.overlap:
        start -= 1
    if start == fresh and start - 1 > first and size(start - 1, fresh - 1) <= limits.longest / 2:
        start -= 1
    while start < fresh and size(start, fresh) > limits.longest:
        start += 1
    return start
