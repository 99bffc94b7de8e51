"""Cuts chunks into small windows: a few whole sentences each, with the note's title and tags.

`core.chunking` makes chunks, `core.sentences` finds sentences, `indexing.embed` embeds windows.
"""

from collections.abc import Sequence

from pydantic import Field, model_validator

from rag_resources.core.blocks import read
from rag_resources.core.chunking_version import algorithm
from rag_resources.core.configuration import canonical_hash
from rag_resources.core.contextual import tags_in_words
from rag_resources.core.fusion_config import Part
from rag_resources.core.sentences import sentences
from rag_resources.core.text import Span
from rag_resources.languages.messages import _

REVISION = 3
"""Version of this module. Raise it by 1 after a change that alters any window or its text."""

_CLOSED = (".", "!", "?", "…", ":")


class WindowsConfig(Part):
    """How chunks are cut into windows.

    Attributes:
        sentences: Sentences per window.
        stride: Sentences from the start of one window to the start of the next.
    """

    sentences: int = Field(1, ge=1, le=20)
    stride: int = Field(1, ge=1, le=20)

    @model_validator(mode="after")
    def _leaves_no_gap(self) -> "WindowsConfig":
        if self.stride > self.sentences:
            raise ValueError(
                _("stride must not be larger than sentences: some sentences would be in no window")
            )
        return self


def cut_windows(content: str, config: WindowsConfig) -> list[Span]:
    """Cut the content of a chunk into windows of whole sentences.

    Returns:
        Spans of the content, in order; every sentence is in at least one. A chunk with fewer
        sentences than a window is one window; blank content has none.

    Properties: 9, 12.
    """
    found = sentences(content)
    starts = range(0, max(1, len(found) - config.sentences + config.stride), config.stride)
    return [
        Span(found[first].start, found[min(first + config.sentences, len(found)) - 1].end)
        for first in starts
        if found
    ]


def window_words(content: str, span: Span) -> str:
    """Return what is seen of a window of a chunk's content.

    A row of a table comes with the names of its columns, if they are in the chunk.
    """
    reading = read(content)
    text = reading.rendered(span.start, span.end) or content[span.start : span.end]
    columns = reading.columns_at(span.start)
    return f"{columns}\n{text}" if columns else text


def window_text(title: str, text: str, tags: Sequence[str] = ()) -> str:
    """Return the text that a window's vector represents: "Title (tag, tag). Sentences"."""
    words = tags_in_words(tags)
    heading = " ".join([*title.split(), *([f"({words})"] if words else [])])
    if not heading:
        return text
    return f"{heading} {text}" if heading.endswith(_CLOSED) else f"{heading}. {text}"


def windows_hash(config: WindowsConfig) -> str:
    """Return a hash of the settings and of the algorithms that decide the windows of a chunk."""
    return canonical_hash(
        {**config.model_dump(mode="json"), "revision": REVISION, "algorithm": algorithm()}
    )
