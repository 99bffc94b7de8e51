"""Properties 7 to 12: how notes are cut, for any note, configuration and token counter."""

from collections.abc import Callable
from itertools import pairwise
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_resources.core.chunking import chunk_note
from rag_resources.core.configuration import ChunkingConfig
from rag_resources.core.errors import InvalidParameterError
from rag_resources.core.sentences import sentences
from rag_resources.core.text import Span, count_tokens
from rag_resources.core.types import Chunk
from tests.strategies import blank_texts, chunking_configs, notes, plain_notes, token_counters

Counter = Callable[[str], int]
NOTE_ID = UUID(int=7)


def cut(note: str, config: ChunkingConfig, counter: Counter = count_tokens) -> list[Chunk]:
    return chunk_note(NOTE_ID, note, config, counter=counter)


def text_of(note: str, span: Span) -> str:
    return note[span.start : span.end]


@given(notes(), chunking_configs(), token_counters())
def test_property_07_chunks_are_numbered_without_gap_in_reading_order(
    note: str, config: ChunkingConfig, counter: Counter
) -> None:
    chunks = cut(note, config, counter)
    assert [chunk.chunk_index for chunk in chunks] == list(range(len(chunks)))
    assert {chunk.note_id for chunk in chunks} == {NOTE_ID}
    assert len({chunk.chunk_id for chunk in chunks}) == len(chunks)
    for left, right in pairwise(chunks):
        assert left.start_char < right.start_char
        assert left.end_char < right.end_char


@given(notes(), chunking_configs(), token_counters())
def test_property_08_bounds_are_exact_to_the_character(
    note: str, config: ChunkingConfig, counter: Counter
) -> None:
    for chunk in cut(note, config, counter):
        assert 0 <= chunk.start_char < chunk.end_char <= len(note)
        assert note[chunk.start_char : chunk.end_char] == chunk.content


@given(notes(), blank_texts(), chunking_configs(), token_counters())
def test_property_09_a_note_is_covered_and_a_blank_one_refused(
    note: str, blank: str, config: ChunkingConfig, counter: Counter
) -> None:
    chunks = cut(note, config, counter)
    assert chunks
    covered = set[int]().union(*(range(chunk.start_char, chunk.end_char) for chunk in chunks))
    lost = [place for place in range(len(note)) if place not in covered]
    assert not "".join(note[place] for place in lost).strip()
    with pytest.raises(InvalidParameterError, match="La nota está en blanco"):
        cut(blank, config, counter)


@given(notes(), chunking_configs(), token_counters())
def test_property_10_no_chunk_is_too_large_and_no_cut_is_needless(
    note: str, config: ChunkingConfig, counter: Counter
) -> None:
    """Size rules: neighbours that fit in one chunk are merged; a word that fits is not split."""
    chunks = cut(note, config, counter)
    for chunk in chunks:
        assert counter(chunk.content) <= config.max_tokens
    for left, right in pairwise(chunks):
        assert counter(note[left.start_char : right.end_char]) > config.max_tokens
    inside_sentences = {place for s in sentences(note) for place in range(s.start + 1, s.end)}
    borders = {border for chunk in chunks for border in (chunk.start_char, chunk.end_char)}
    for border in borders & inside_sentences:
        if not note[border - 1].isspace() and not note[border].isspace():
            word = note[:border].split()[-1] + note[border:].split()[0]
            assert counter(word) > config.max_tokens


@given(st.one_of(plain_notes(), notes()), chunking_configs(), token_counters())
def test_property_11_neighbours_share_the_whole_sentences_that_the_rule_allows(
    note: str, config: ChunkingConfig, counter: Counter
) -> None:
    """As many sentences as fit in 1.5 x overlap, else one of at most half a chunk; size wins.

    A chunk never repeats all of the one before it, and no overlap asked for means none. More than
    1.5 x overlap is one sentence, or a piece of an over-long one, whose share is only bounded.
    """
    borders = sentences(note)
    chunks = cut(note, config, counter)
    largest = max(1.5 * config.overlap_tokens, config.max_tokens / 2)
    for left, right in pairwise(chunks):
        shared = counter(note[right.start_char : left.end_char])
        assert shared <= (largest if config.overlap_tokens else 0)
        if shared > 1.5 * config.overlap_tokens:
            inside = range(right.start_char + 1, left.end_char)
            assert not any(sentence.start in inside for sentence in borders)
    if any(counter(text_of(note, sentence)) > config.max_tokens for sentence in borders):
        return
    first_sentence = {sentence.start: number for number, sentence in enumerate(borders)}
    last_sentence = {sentence.end: number for number, sentence in enumerate(borders)}
    for left, right in pairwise(chunks):
        first, last = first_sentence[left.start_char], last_sentence[left.end_char]
        shared_sentences = last + 1 - first_sentence[right.start_char]
        assert shared_sentences == expected_overlap(note, borders, first, last, config, counter)


def expected_overlap(
    note: str,
    borders: list[Span],
    first: int,
    last: int,
    config: ChunkingConfig,
    counter: Counter,
) -> int:
    """Return how many sentences the chunk after sentences `first` to `last` repeats."""

    def size(start: int, end: int) -> int:
        return counter(note[borders[start].start : borders[end].end])

    if config.overlap_tokens == 0:
        return 0
    counts = range(1, last - first + 1)
    allowed = [n for n in counts if size(last - n + 1, last) <= 1.5 * config.overlap_tokens]
    if not allowed and last > first and size(last, last) <= config.max_tokens / 2:
        allowed = [1]
    return max((n for n in allowed if size(last - n + 1, last + 1) <= config.max_tokens), default=0)


@given(notes(), chunking_configs(), token_counters())
def test_property_12_borders_are_those_of_sentences_except_inside_an_over_long_one(
    note: str, config: ChunkingConfig, counter: Counter
) -> None:
    borders = sentences(note)
    starts = {sentence.start for sentence in borders}
    ends = {sentence.end for sentence in borders}
    over_long = [s for s in borders if counter(text_of(note, s)) > config.max_tokens]
    for chunk in cut(note, config, counter):
        assert chunk.content == chunk.content.strip()
        assert chunk.start_char in starts or any(
            s.start < chunk.start_char < s.end for s in over_long
        )
        assert chunk.end_char in ends or any(s.start < chunk.end_char < s.end for s in over_long)
