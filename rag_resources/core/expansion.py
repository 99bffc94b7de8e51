"""The sentences around a passage, cut from its note by offsets. Properties 13 and 14."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from functools import cache

from rag_resources.core.configuration import ContextConfig
from rag_resources.core.text import Span, is_blank, sentences

_REACHES = (2_000, 16_000, 128_000)
"""How far around a passage sentences are looked for, in characters, until there are enough.

After the last a window makes do with what was found, which may begin or end inside a sentence.
"""
_PARAGRAPH_CHARS = 10_000
"""How much farther the end of a paragraph is looked for."""
_PARAGRAPH_BREAK = "\n\n"
"""No sentence goes on after it: what lies before and behind is cut alike apart."""


def expand(
    content: str,
    matched: Iterable[Span],
    config: ContextConfig,
    *,
    sentences: Callable[[str], Sequence[Span]] = sentences,
) -> list[Span]:
    """Widen passages of one note by whole sentences; windows that overlap or touch become one.

    Args:
        content: The note.
        matched: Passages of it, in any order.
        config: How many sentences before and after.
        sentences: Cuts the note, or what of a long one lies around the passages, perhaps with the
            help of a cache.

    Returns:
        One window per passage, in the order given; passages whose windows met share the same one.
        Each contains its passage.
    """

    @cache
    def cut(region: Span) -> Sequence[Span]:
        found = sentences(content[region.start : region.end])
        if region.start == 0:
            return found
        return [Span(region.start + span.start, region.start + span.end) for span in found]

    windows = [_window(content, passage, config, cut) for passage in matched]
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
        # The outermost sentences of a region may be pieces of longer ones.
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
    """What lies around a passage, by whole paragraphs unless they are very long."""
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
