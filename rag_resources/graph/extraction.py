"""Extracts mentions and causal statements from a note.

Mentions are found by the rules of `core.mentions`. Causal statements are found by the rules of
`core.causal`, or by a language model if the settings say so. The model's statements count only if
cause and effect are quoted from the chunk: it cannot invent any, only point at wrong ones.
"""

import re
import time
from collections.abc import Iterator, Sequence
from typing import Annotated

from pydantic import BaseModel, Field

from rag_resources.core.causal import (
    LEAST_WORDS,
    MAX_SIDE_CHARS,
    CausalStatement,
    Relation,
    find_statements,
)
from rag_resources.core.configuration import canonical_hash
from rag_resources.core.deadline import Deadline
from rag_resources.core.errors import InvalidParameterError
from rag_resources.core.graph_version import GraphPart, rules_version
from rag_resources.core.mentions import find_mentions
from rag_resources.core.text import Span
from rag_resources.languages.messages import _
from rag_resources.prompts import prompt
from rag_resources.providers.inputs import as_data
from rag_resources.providers.protocols import LanguageModel
from rag_resources.store.graph import Extraction, NoteToRead

LANGUAGE_MODEL = "llm"
"""The value of the setting that makes a language model read."""

CALL_MS = 120_000.0
"""Longest wait for the model to read one chunk."""

CONFIDENCE = 0.8
"""Confidence of the model's statements; it is not measured."""

REVISION = 1
"""Raise this whenever a change of this module gives other statements of a language model."""

_PROMPT = "graph_causes"
_MOST = 60

_Text = Annotated[str, Field(max_length=2 * MAX_SIDE_CHARS)]


class Cause(BaseModel):
    """A causal statement, in the words of its chunk."""

    cause: _Text
    effect: _Text
    marker: _Text = ""
    relation: Relation


class Causes(BaseModel):
    """The causal statements of a chunk."""

    statements: Annotated[list[Cause], Field(max_length=_MOST)]


class Extractor:
    """Extracts a part of the graph from notes.

    Args:
        model: Finds the causal statements, from several threads; None: rules find them.
    """

    def __init__(self, model: LanguageModel | None = None) -> None:
        self._model = model

    def is_slow(self, part: GraphPart) -> bool:
        """Whether a part takes so long that no lock may be held meanwhile."""
        return part is GraphPart.STATEMENTS and self._model is not None

    def version(self, part: GraphPart) -> str:
        """Return the version for a part; another version makes the part anew."""
        return extractor_version(part, self._model.name if self._model else None)

    def extract(self, part: GraphPart, note: NoteToRead) -> Extraction:
        """Return what a part has of a note.

        Raises:
            ProviderError: The note cannot be read.
            DeadlineExceededError: Reading took too long.
        """
        chunks, version = note.chunks, self.version(part)
        if part is GraphPart.MENTIONS:
            mentions = find_mentions(note.title, [chunk.content for chunk in chunks], note.tags)
            by_chunk = dict(zip([chunk.chunk_id for chunk in chunks], mentions, strict=True))
            return Extraction(note, by_chunk, {}, "rules", version)
        model = self._model
        find = find_statements if model is None else lambda content: _quoted(model, content)
        statements = {chunk.chunk_id: find(chunk.content) for chunk in chunks}
        return Extraction(note, {}, statements, model.name if model else "rules", version)


def build_extractor(name: str, language_model: LanguageModel | None) -> Extractor:
    """Return the extractor that the settings name.

    Args:
        name: `rules` or `llm`.
        language_model: None if none is configured.

    Raises:
        InvalidParameterError: `llm` without a language model.
    """
    if name != LANGUAGE_MODEL:
        return Extractor()
    if language_model is None:
        raise InvalidParameterError(
            _(
                "a language model reads the graph (GRAPH_EXTRACTOR=llm) and there is none: set "
                "LLM_MODEL"
            ),
            extractor=name,
        )
    return Extractor(language_model)


def extractor_version(part: GraphPart, model: str | None) -> str:
    """Return the version of a part whose statements a model finds; None: rules find them."""
    if part is GraphPart.MENTIONS or model is None:
        return rules_version(part)
    return canonical_hash({"revision": REVISION, "model": model, "prompt": prompt(_PROMPT).version})


def _quoted(model: LanguageModel, content: str) -> list[CausalStatement]:
    """Return the model's statements whose cause and effect are quoted from the chunk, in order."""
    said = model.answer(
        f"<pasaje>\n{as_data(content)}\n</pasaje>\n{prompt(_PROMPT).task}",
        Causes,
        system=prompt(_PROMPT).system,
        deadline=Deadline.after(CALL_MS, time.monotonic),
    )
    found = {}
    for item in said.statements:
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
            cause, effect, marker, model.name, item.relation, CONFIDENCE
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
