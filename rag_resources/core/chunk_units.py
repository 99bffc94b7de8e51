"""The pieces that chunks are made of: sentences, and parts of those that are too long.

How pieces are put together belongs in `core.chunking` and `core.structure_chunking`.
"""

import re
from collections.abc import Callable, Iterator

from rag_resources.core.blocks import read
from rag_resources.core.configuration import ChunkLimits
from rag_resources.core.rules import rules
from rag_resources.core.sentences import sentences
from rag_resources.core.text import Span

TokenCounter = Callable[[str], int]

# A clause ends after these marks, or before a conjunction. A match starts only at the beginning of
# a run of white space: trying every position in it would take time quadratic in its length.
_CLAUSE_BORDER = re.compile(
    rf"(?<=[;:,—])\s+|(?<!\s)\s++(?=(?:{'|'.join(rules().sentences.conjunctions)})\s)",
    re.IGNORECASE,
)
_WORD = re.compile(r"\S+")


def units_of(text: str, limits: ChunkLimits, counter: TokenCounter) -> list[Span]:
    """Return the sentences; one that is too long is split into clauses, words or characters."""
    units: list[Span] = []
    for sentence in sentences(text):
        if counter(text[sentence.start : sentence.end]) <= limits.longest:
            units.append(sentence)
        else:
            units.extend(split_sentence(text, sentence, limits, counter))
    return units


def split_sentence(
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


def overlap_start(
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
