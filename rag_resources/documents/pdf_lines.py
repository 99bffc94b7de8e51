"""Lines of a page: its words, grouped from left to right.

Words of one line without a wide gap are a segment. `documents.pdf_layout` puts segments into
columns.
"""

from bisect import bisect, bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from rag_resources.documents.pdf_drawings import Rule
from rag_resources.documents.pdf_geometry import Rectangle
from rag_resources.documents.pdf_words import Word

WIDE_GAP = 0.7
"""Times the size of the letters; a wider gap between words separates cells or columns."""

_JUMP = 0.6
"""Times the size: how far a word may begin before the end of the one before it."""

_SMALL = 0.8
"""Times the usual size; smaller letters can be raised or lowered figures."""

_OVERLAP = 0.35
"""Share of its height by which such a figure overlaps its line."""


@dataclass(slots=True)
class Segment:
    """Words of one line without a wide gap between them, from left to right."""

    words: list[Word]
    left: float = 0.0
    top: float = 0.0
    right: float = 0.0
    bottom: float = 0.0
    order: int = 0

    def __post_init__(self) -> None:
        self.left = min(word.left for word in self.words)
        self.right = max(word.right for word in self.words)
        # Raised and lowered words do not make a line taller.
        tallest = max(self.words, key=lambda word: (word.style.size, len(word.text)))
        self.top, self.bottom = tallest.top, tallest.bottom
        self.order = min(word.order for word in self.words)

    @property
    def box(self) -> Rectangle:
        """Left, top, right, bottom."""
        return self.left, self.top, self.right, self.bottom

    @property
    def size(self) -> float:
        """Size of the letters."""
        return self.bottom - self.top

    @property
    def text(self) -> str:
        """The words, with spaces."""
        return " ".join(word.text for word in self.words)


def segments_of(words: Sequence[Word], vertical: Sequence[Rule] = ()) -> list[Segment]:
    """Join the words of a line that have no wide gap and no vertical rule between them."""
    rules = sorted(vertical, key=lambda rule: rule.at)
    runs: list[list[Word]] = []
    for word in words:
        if (
            runs
            and _follows(runs[-1][-1], word, WIDE_GAP)
            and not _is_ruled_off(runs[-1][-1], word, rules)
        ):
            runs[-1].append(word)
        else:
            runs.append([word])
    return _rejoined([Segment(run) for run in runs], rules)


def _follows(last: Word, word: Word, gap: float) -> bool:
    size = max(last.style.size, word.style.size)
    return -_JUMP * size < word.left - last.right < gap * size and same_line(last, word)


def same_line(first: Word | Segment, second: Word | Segment) -> bool:
    """Whether two boxes overlap in height by more than half of the smaller one."""
    return _overlap_share(first, second) > 0.5


def _is_ruled_off(last: Word, word: Word, rules: Sequence[Rule]) -> bool:
    middle = (word.top + word.bottom) / 2
    first = bisect_left(rules, last.right - 1, key=_position)
    after = bisect(rules, word.left + 1, lo=first, key=_position)
    return any(rule.start <= middle <= rule.end for rule in rules[first:after])


def _position(rule: Rule) -> float:
    return rule.at


def _rejoined(segments: Sequence[Segment], rules: Sequence[Rule]) -> list[Segment]:
    """Join segments that the file draws apart although they touch."""
    joined: list[Segment] = []
    for line in lines_of(segments):
        last: Segment | None = None
        for segment in line:
            if (
                last
                and _follows(last.words[-1], segment.words[0], 0.45)
                and not _is_ruled_off(last.words[-1], segment.words[0], rules)
            ):
                joined[-1] = last = Segment([*last.words, *segment.words])
            else:
                joined.append(segment)
                last = segment
    return sorted(joined, key=lambda segment: segment.order)


def lines_of(segments: Iterable[Segment]) -> list[list[Segment]]:
    """Group segments by line, from top to bottom, each from left to right.

    Raised and lowered figures, which are small, go to the line that they overlap most.
    """
    all_segments = list(segments)
    if not all_segments:
        return []
    usual = median([segment.size for segment in all_segments])
    lines: list[list[Segment]] = []
    small: list[Segment] = []
    for segment in sorted(all_segments, key=lambda s: (s.top + s.bottom, s.left)):
        if segment.size < _SMALL * usual:
            small.append(segment)
        else:
            _add_to_line(segment, lines, lines[-3:], 0.5)
    large = sorted(lines, key=lambda line: line[0].top)
    tops = [line[0].top for line in large]
    for segment in small:
        at = bisect(tops, segment.top)
        _add_to_line(segment, lines, [*large[max(0, at - 2) : at + 2], *lines[-2:]], _OVERLAP)
    for line in lines:
        line.sort(key=lambda s: s.left)
    return sorted(lines, key=lambda line: max(line, key=lambda s: s.size).bottom)


def _add_to_line(
    segment: Segment, lines: list[list[Segment]], near: Sequence[list[Segment]], least: float
) -> None:
    """Add a segment to the near line that it overlaps most in height, or open a line."""
    best = max(near, key=lambda line: _overlap_share(line[0], segment), default=None)
    if best is not None and _overlap_share(best[0], segment) > least:
        best.append(segment)
    else:
        lines.append([segment])


def _overlap_share(first: Word | Segment, second: Word | Segment) -> float:
    shared = min(first.bottom, second.bottom) - max(first.top, second.top)
    return shared / (min(first.bottom - first.top, second.bottom - second.top) or 1.0)
