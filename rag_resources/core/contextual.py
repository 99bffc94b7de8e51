"""The contextual prefix of a chunk: which note it comes from, and which part of the note it is.

Its wording is in `languages/es/rules/prefix.toml`. It is embedded, so it is part of the algorithm
(`core.chunking_version`), not a message.

Source: Anthropic, "Introducing Contextual Retrieval" (2024). Properties 19 and 20.
"""

import re
from collections.abc import Sequence

from rag_resources.core.blocks import read, rendered
from rag_resources.core.rules import rules
from rag_resources.core.sentences import iter_sentences
from rag_resources.core.text import Span
from rag_resources.core.types import Chunk

SUMMARY_CHARS = 160
TOPIC_CHARS = 60
HEADER_CHARS = 600
TAGS_CHARS = 200
"""Tags past this many characters are left out: they would dilute the text that they stand with."""


def summarize(title: str, content: str) -> str:
    """Describe a note by its title and its first sentence, without a language model.

    Returns:
        At most `SUMMARY_CHARS` characters on one line; empty only if title and content are.
    """
    reading = read(content)
    first = next(iter_sentences(content), Span(0, 0))
    opening = reading.rendered(first.start, first.end) or content[first.start : first.end]
    parts = [part for part in (_one_line(title), _one_line(opening)) if part]
    return _shorten(": ".join(parts), SUMMARY_CHARS)


def contextual_prefix(summary: str, chunks: Sequence[Chunk], index: int) -> str:
    """Return the prefix of chunk `index` of a note whose chunks are `chunks`, in order.

    It contains the summary, "Parte i de n", the openings of the neighbours, and the section
    (first, middle, last).
    """
    wording = rules().prefix
    parts = [wording.part.format(part=index + 1, parts=len(chunks), summary=summary)]
    if index > 0:
        parts.append(wording.previous.format(topic=_topic(chunks[index - 1])))
    if index < len(chunks) - 1:
        parts.append(wording.next.format(topic=_topic(chunks[index + 1])))
    parts.append(_section(index, len(chunks)))
    return " ".join(parts)


def contextual_topics(
    summary: str, chunks: Sequence[Chunk], index: int, tags: Sequence[str] = ()
) -> str:
    """Return the subject of chunk `index`: the summary, the neighbours' openings, the note's tags.

    Full-text search indexes these with the chunk, since the prefix's fixed words are in every
    chunk.
    """
    neighbours = [chunks[near] for near in (index - 1, index + 1) if 0 <= near < len(chunks)]
    words = [tags_in_words(tags)] if tags else []
    return " ".join([summary, *(_topic(chunk) for chunk in neighbours), *words])


def tags_in_words(tags: Sequence[str]) -> str:
    """Return a note's tags as text, "plan piloto, agua": as many as fit in `TAGS_CHARS`."""
    text = ""
    for tag in tags:
        words = " ".join(re.split(r"[\s_-]+", tag)).strip()
        longer = f"{text}, {words}" if text else words
        if len(longer) > TAGS_CHARS:
            break
        text = longer if words else text
    return text


def contextual_text(prefix: str, content: str) -> str:
    """Return the text that is embedded as the contextual vector of a chunk."""
    return f"{prefix}\n{content}"


def with_header(text: str, header: str) -> str:
    """Return the prefix or the topics of a chunk with the header of the table that it begins in.

    The header is embedded and searched with the chunk, but is no part of its content.
    """
    return f"{text}\n{rendered(header)[:HEADER_CHARS]}" if header else text


def _section(index: int, count: int) -> str:
    wording = rules().prefix
    if index == 0:
        return wording.first
    return wording.last if index == count - 1 else wording.middle


def _topic(chunk: Chunk) -> str:
    return _shorten(_one_line(chunk.searched), TOPIC_CHARS)


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line.strip(" .#*-") or line


def _shorten(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    return text[:limit].rsplit(" ", 1)[0][: limit - 1].rstrip(" ,;:.") + "…"
