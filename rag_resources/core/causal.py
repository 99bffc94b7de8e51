"""Finds causal statements in chunks by rules.

A statement lies within one chunk: links between notes need a person or a language model. The
markers are in `languages/es/rules/graph.toml`; names are found in `core.mentions`.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from rag_resources.core.mentions import fold
from rag_resources.core.rules import CausalMarker, rules
from rag_resources.core.sentences import sentences
from rag_resources.core.text import Span

MAX_SIDE_CHARS = 400
"""A longer text is not accepted as a cause or effect."""

LEAST_WORDS = 2
"""A shorter text is not accepted as a cause or effect."""


class Relation(StrEnum):
    """How a cause and its effect are related; only these are followed in causal questions."""

    CAUSES = "CAUSES"
    TRIGGERS = "TRIGGERS"
    LEADS_TO = "LEADS_TO"


@dataclass(frozen=True, slots=True)
class CausalStatement:
    """A causal statement of a chunk; all spans are in its content.

    Attributes:
        cause: The words of the cause.
        effect: The words of the effect.
        marker: The words that relate them.
        marker_name: The rule, as `languages/es/rules/graph.toml` names it.
        relation: How they are related.
        confidence: In [0, 1]: how often statements of this rule are right, by estimate.
    """

    cause: Span
    effect: Span
    marker: Span
    marker_name: str
    relation: Relation
    confidence: float


@dataclass(frozen=True, slots=True)
class _Marker:
    """A marker and the expression that finds it."""

    rule: CausalMarker
    expression: re.Pattern[str]


_MARKERS = tuple(
    _Marker(rule, re.compile(rf"(?<!\w)(?:{rule.pattern})(?!\w)", re.IGNORECASE))
    for rule in rules().graph.markers
)


_ANY_MARKER = re.compile(
    rf"(?<!\w)(?:{'|'.join(rule.pattern for rule in rules().graph.markers)})(?!\w)", re.IGNORECASE
)
# Where a clause ends for good.
_HARD = re.compile(r"[;:()\[\]«»“”—–\n…]|[.!]\W?[*_]|, (?:pero|aunque|sino|mientras)(?!\w)")
_TRIM = " \t\r\n\u00a0,;:.…-–—*_>#()[]«»“”\"'!¡"
_LEADING = re.compile(r"(?:(?:y|e|pero|que|pues|luego|también|además)\s+)+", re.IGNORECASE)
_TRAILING = re.compile(r"(?:[\s,]+(?:y|e|o|ni|que|pero))+\Z", re.IGNORECASE)
_WORDS = re.compile(r"[^\W\d_]{2,}")


def find_statements(content: str) -> list[CausalStatement]:
    """Find the causal statements of a chunk.

    Questions contain no statements. A statement inside the cause or the effect of another one is
    represented there by its effect, so that chains have common ends.

    Returns:
        In the order of their markers; cause and effect have at least two words each and do not
        overlap.
    """
    if not _ANY_MARKER.search(content):
        return []
    spans = sentences(content)
    found: list[CausalStatement] = []
    for number, sentence in enumerate(spans):
        text = content[sentence.start : sentence.end]
        if "?" in text or "¿" in text:
            continue
        before = spans[number - 1] if number and _follows(content, spans, number) else None
        found.extend(_of_sentence(content, sentence, before))
    return _chained(found)


def event_key(content: str, span: Span) -> str:
    """Return the text of a span by which equal events of a note are recognised."""
    return fold(content[span.start : span.end])


def _follows(content: str, spans: Sequence[Span], number: int) -> bool:
    """Whether a sentence follows another in the same paragraph."""
    before, sentence = spans[number - 1], spans[number]
    text = content[before.start : before.end]
    return "\n" not in content[before.end : sentence.start] and "?" not in text


def _of_sentence(content: str, sentence: Span, before: Span | None) -> Iterator[CausalStatement]:
    if not _ANY_MARKER.search(content, sentence.start, sentence.end):
        return
    taken: list[Span] = []
    for marker in _MARKERS:
        for match in marker.expression.finditer(content, sentence.start, sentence.end):
            place = Span(*match.span())
            if any(place.overlaps(other) for other in taken):
                continue
            sides = _sides(content, sentence, before, place, marker.rule)
            if sides is None or not all(_says_something(content, side) for side in sides):
                continue
            taken.append(place)
            cause, effect = sides
            yield CausalStatement(
                cause,
                effect,
                place,
                marker.rule.name,
                Relation(marker.rule.relation),
                marker.rule.confidence,
            )


def _sides(
    content: str, sentence: Span, before: Span | None, marker: Span, rule: CausalMarker
) -> tuple[Span, Span] | None:
    """Return cause and effect around a marker; None if one of them is missing."""
    left = _left(content, sentence.start, marker.start)
    right = _right(content, marker.end, sentence.end)
    opens = not _WORDS.search(content, sentence.start, marker.start)
    if rule.order == "cause-first":
        if rule.comma and "," not in content[max(sentence.start, marker.start - 2) : marker.start]:
            return None
        if opens and rule.back and before is not None:
            left = _trimmed(content, before)
        return left, right
    if opens and rule.fronted:
        comma = content.find(",", marker.end, sentence.end)
        if comma < 0:
            return None
        cause = _trimmed(content, Span(marker.end, comma))
        return cause, _right(content, comma + 1, sentence.end)
    return right, left


def _left(content: str, start: int, end: int) -> Span:
    """Return the clause that ends before a place."""
    for match in _HARD.finditer(content, start, end):
        if _WORDS.search(content, match.end(), end):
            start = match.end()
    return _trimmed(content, Span(start, end))


def _right(content: str, start: int, end: int) -> Span:
    """Return the clause that begins at a place."""
    for match in _HARD.finditer(content, start, end):
        if _WORDS.search(content, start, match.start()):
            end = match.start()
            break
    following = _ANY_MARKER.search(content, start, end)
    return _trimmed(content, Span(start, following.start() if following else end))


def _trimmed(content: str, span: Span) -> Span:
    start, end = span.start, span.end
    while start < end and content[start] in _TRIM:
        start += 1
    leading = _LEADING.match(content, start, end)
    start = leading.end() if leading else start
    while end > start and content[end - 1] in _TRIM:
        end -= 1
    trailing = _TRAILING.search(content[start:end])
    return Span(start, start + trailing.start() if trailing else end)


def _says_something(content: str, span: Span) -> bool:
    words = _WORDS.findall(content, span.start, span.end)
    return len(words) >= LEAST_WORDS and span.length <= MAX_SIDE_CHARS


def _chained(found: Sequence[CausalStatement]) -> list[CausalStatement]:
    """Replace a side that contains another whole statement by that statement's effect."""
    narrowed = []
    for statement in sorted(found, key=lambda item: item.marker.start):
        inner = [other for other in found if other is not statement]
        cause = _narrowed(statement.cause, inner)
        effect = _narrowed(statement.effect, inner)
        if cause != effect:
            narrowed.append(replace(statement, cause=cause, effect=effect))
    return narrowed


def _narrowed(side: Span, others: Sequence[CausalStatement]) -> Span:
    for other in others:
        spans = (other.cause, other.effect, other.marker)
        if all(side.start <= span.start and span.end <= side.end for span in spans):
            return other.effect
    return side
