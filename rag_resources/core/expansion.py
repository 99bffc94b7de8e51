"""The sentences around a passage, cut from its note by offsets. Properties 13 and 14."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence

from rag_resources.core.configuration import ContextConfig
from rag_resources.core.text import Span, sentences


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
        sentences: Cuts the note, perhaps with the help of a cache.

    Returns:
        One window per passage, in the order given; passages whose windows met share the same one.
        Each contains its passage.
    """
    borders = sentences(content)
    passages = list(matched)
    windows = [_window(passage, borders, config) for passage in passages]
    merged = _merge(windows)
    return [
        next(window for window in merged if window.start <= own.start and own.end <= window.end)
        for own in windows
    ]


def _window(passage: Span, borders: Sequence[Span], config: ContextConfig) -> Span:
    first = bisect_right(borders, passage.start, key=lambda sentence: sentence.end)
    after = bisect_left(borders, passage.end, key=lambda sentence: sentence.start)
    start = max(0, first - config.sentences_before)
    end = min(len(borders), after + config.sentences_after)
    if start >= end:
        return passage
    return Span(min(passage.start, borders[start].start), max(passage.end, borders[end - 1].end))


def _merge(windows: Sequence[Span]) -> list[Span]:
    merged: list[Span] = []
    for window in sorted(windows, key=lambda span: (span.start, span.end)):
        if merged and window.start <= merged[-1].end:
            merged[-1] = Span(merged[-1].start, max(merged[-1].end, window.end))
        else:
            merged.append(window)
    return merged
