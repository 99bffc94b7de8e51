"""Lets a language model read notes for the graph.

A name or cause counts only if its words are in the chunk: the model cannot invent any, only point
at wrong ones. Extraction by rules is in `graph.extractors`.
"""

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, TypeVar

from pydantic import BaseModel, Field

from rag_resources.core.causal import (
    LEAST_WORDS,
    MAX_SIDE_CHARS,
    CausalStatement,
    Relation,
)
from rag_resources.core.configuration import canonical_hash
from rag_resources.core.deadline import Deadline
from rag_resources.core.graph_version import GraphPart, rules_version
from rag_resources.core.mentions import MAX_NAME_CHARS, EntityKind, Mention, find_mentions, fold
from rag_resources.core.text import Span
from rag_resources.languages.prompts import Prompt, prompt
from rag_resources.providers.inputs import as_data
from rag_resources.providers.protocols import LanguageModel
from rag_resources.store.graph import NoteToRead

CALL_MS = 120_000.0
"""Longest wait for the model to read one chunk."""

CONFIDENCE = 0.8
"""Confidence of its statements. It is not measured; `rag graph review` shows how many are right."""

REVISION = 1
"""Raise this whenever a change of this module gives other mentions or statements."""

_PROMPTS = {GraphPart.MENTIONS: "graph_names", GraphPart.STATEMENTS: "graph_causes"}
_MOST = 60

_Text = Annotated[str, Field(max_length=2 * MAX_SIDE_CHARS)]
_ShapeT = TypeVar("_ShapeT", bound=BaseModel)


class Names(BaseModel):
    """The names of a chunk."""

    names: Annotated[list[_Text], Field(max_length=_MOST)]


class Cause(BaseModel):
    """A causal statement, in the words of its chunk."""

    cause: _Text
    effect: _Text
    marker: _Text = ""
    relation: Relation


class Causes(BaseModel):
    """The causal statements of a chunk."""

    statements: Annotated[list[Cause], Field(max_length=_MOST)]


def language_model_version(part: GraphPart, model: str) -> str:
    """Return the version of a part that a language model makes: its name, prompt and module."""
    version = {"revision": REVISION, "model": model, "prompt": _prompt(part).version}
    # Tags and dates are found by rules.
    rules = {"rules": rules_version(part)} if part is GraphPart.MENTIONS else {}
    return canonical_hash(version | rules)


class LanguageModelExtractor:
    """Names and causal statements by a language model; tags and dates by rules.

    Args:
        model: Safe to use from several threads.
    """

    is_slow = True

    def __init__(self, model: LanguageModel) -> None:
        self._model = model

    @property
    def name(self) -> str:
        """See `Extractor`."""
        return self._model.name

    def version(self, part: GraphPart) -> str:
        """See `Extractor`."""
        return language_model_version(part, self.name)

    def mentions(self, note: NoteToRead) -> list[list[Mention]]:
        """See `Extractor`."""
        contents = [chunk.content for chunk in note.chunks]
        by_rules = find_mentions(note.title, contents, note.tags)
        return [
            [*others, *_names(content, self._ask(GraphPart.MENTIONS, content, Names).names, others)]
            for content, found in zip(contents, by_rules, strict=True)
            for others in [[each for each in found if each.kind is not EntityKind.NAME]]
        ]

    def statements(self, note: NoteToRead) -> list[list[CausalStatement]]:
        """See `Extractor`."""
        return [
            _statements(
                chunk.content,
                self._ask(GraphPart.STATEMENTS, chunk.content, Causes).statements,
                self.name,
            )
            for chunk in note.chunks
        ]

    def _ask(self, part: GraphPart, content: str, shape: type[_ShapeT]) -> _ShapeT:
        return self._model.answer(
            f"<pasaje>\n{as_data(content)}\n</pasaje>\n{_prompt(part).task}",
            shape,
            system=_prompt(part).system,
            deadline=Deadline.after(CALL_MS, time.monotonic),
        )


def _prompt(part: GraphPart) -> Prompt:
    return prompt(_PROMPTS[part])


def _names(content: str, named: Iterable[str], others: Sequence[Mention]) -> Iterator[Mention]:
    """Yield every occurrence of a name, longest names first, without overlaps."""
    taken = [other.span for other in others if other.span.length]
    for name in sorted(dict.fromkeys(named), key=lambda item: (-len(item), item)):
        if not any(map(str.isalpha, name)) or len(name) > MAX_NAME_CHARS:
            continue
        for span in _places(content, name):
            if not any(span.overlaps(other) for other in taken):
                taken.append(span)
                written = content[span.start : span.end]
                yield Mention(EntityKind.NAME, fold(written), written, span)


def _statements(content: str, said: Iterable[Cause], model: str) -> list[CausalStatement]:
    """Return the statements whose cause and effect are both quoted from the chunk, in order."""
    found = {}
    for item in said:
        sides = _nearest(list(_places(content, item.cause)), list(_places(content, item.effect)))
        if sides is None or not all(_says_something(content, side) for side in sides):
            continue
        cause, effect = sides
        markers = [
            place
            for place in _places(content, item.marker)
            if not place.overlaps(cause) and not place.overlaps(effect)
        ]
        first = min(cause.end, effect.end)
        marker = min(
            markers,
            key=lambda place: (abs(place.start - first), place.start),
            default=Span(effect.start, effect.start),
        )
        found[cause, effect] = CausalStatement(
            cause, effect, marker, model, item.relation, CONFIDENCE
        )
    return sorted(found.values(), key=lambda item: (item.cause.start, item.effect.start))


def _places(content: str, quote: str) -> Iterator[Span]:
    """Yield the occurrences of a quote as whole words, ignoring spaces and capitals."""
    words = quote.strip(" \t\r\n.,;:«»\"'“”()").split()
    if words:
        pattern = r"\s+".join(re.escape(word) for word in words)
        for match in re.finditer(rf"(?<!\w){pattern}(?!\w)", content, re.IGNORECASE):
            yield Span(*match.span())


def _nearest(causes: Sequence[Span], effects: Sequence[Span]) -> tuple[Span, Span] | None:
    """Return the cause and the effect that are closest together without overlapping."""
    pairs = [(one, other) for one in causes for other in effects if not one.overlaps(other)]
    return min(
        pairs,
        key=lambda pair: (abs(pair[0].start - pair[1].start), pair[0].start),
        default=None,
    )


def _says_something(content: str, side: Span) -> bool:
    text = content[side.start : side.end]
    return side.length <= MAX_SIDE_CHARS and len(text.split()) >= LEAST_WORDS
