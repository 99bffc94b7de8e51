"""The sentences around a passage, cut from its note by offsets. Properties 13 and 14."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence

from rag_resources.core.configuration import ContextConfig
from rag_resources.core.sentences import sentences
from rag_resources.core.text import Span, is_blank

_REACHES = (2_000, 16_000, 128_000)
"""Distances around a passage, in characters, within which sentences are searched, in this order.

The search stops when there are enough. After the last distance the window takes what was found,
and may begin or end inside a sentence.
"""
_PARAGRAPH_CHARS = 10_000
"""How much farther to look for the end of a paragraph."""
_PARAGRAPH_BREAK = "\n\n"
"""No sentence crosses it, so text on either side can be cut into sentences separately."""


def expand(
    content: str,
    matched: Iterable[Span],
    config: ContextConfig,
    *,
    sentences: Callable[[str], Sequence[Span]] = sentences,
) -> list[Span]:
    """Widen passages of one note by whole sentences; windows that overlap or touch are merged.

    Args:
        content: The note.
        matched: Passages of it, in any order.
        config: How many sentences before and after.
        sentences: Splits a text into sentences; gets the whole note, or the surroundings of the
            passages in a long one. May use a cache.

    Returns:
        One window per passage, in the order given; each contains its passage. Passages whose
        windows were merged share one.
    """
    known: dict[Span, Sequence[Span]] = {}

    def cut(region: Span) -> Sequence[Span]:
        if region not in known:
            found = sentences(content[region.start : region.end])
            if region.start:
                found = [Span(region.start + own.start, region.start + own.end) for own in found]
            known[region] = found
        return known[region]

    windows = [_window(content, passage, config, cut) for passage in matched]
    if len(windows) == 1:
        return windows
    merged = _merge(windows)
    return [
        next(window for window in merged if window.start <= own.start and own.end <= window.end)
        for own in windows
    ]


def _window(
    content: str, passage: Span, config: ContextConfig, cut: Callable[[Span], Sequence[Span]]
) -> Span:
    if is_blank(content[: passage.start] + content[passage.end :]):
        return passage
    borders: Sequence[Span] = ()
    first = after = 0
    for reach in _REACHES:
        region = _around(content, passage, reach)
        borders = cut(region)
        first = bisect_right(borders, passage.start, key=lambda sentence: sentence.end)
        after = bisect_left(borders, passage.end, key=lambda sentence: sentence.start)
        # The first and last sentence of a region may be parts of longer ones.
        if (region.start == 0 or first > config.sentences_before) and (
            region.end == len(content) or len(borders) - after > config.sentences_after
        ):
            break
    start = max(0, first - config.sentences_before)
    end = min(len(borders), after + config.sentences_after)
    if start >= end:
        return passage
    return Span(min(passage.start, borders[start].start), max(passage.end, borders[end - 1].end))


def _around(content: str, passage: Span, reach: int) -> Span:
    """Return the surroundings of a passage, in whole paragraphs unless they are very long."""
    start, end = passage.start - reach, passage.end + reach
    if start > 0:
        paragraph = content.rfind(_PARAGRAPH_BREAK, max(0, start - _PARAGRAPH_CHARS), start)
        if paragraph >= 0:
            start = paragraph + len(_PARAGRAPH_BREAK)
        elif start <= _PARAGRAPH_CHARS:
            start = 0
    if end < len(content):
        paragraph = content.find(_PARAGRAPH_BREAK, end, end + _PARAGRAPH_CHARS)
        if paragraph >= 0:
            end = paragraph
        elif end + _PARAGRAPH_CHARS >= len(content):
            end = len(content)
    return Span(max(0, start), min(len(content), end))


def _merge(windows: Sequence[Span]) -> list[Span]:
    merged: list[Span] = []
    for window in sorted(windows, key=lambda span: (span.start, span.end)):
        if merged and window.start <= merged[-1].end:
            merged[-1] = Span(merged[-1].start, max(merged[-1].end, window.end))
        else:
            merged.append(window)
    return merged
