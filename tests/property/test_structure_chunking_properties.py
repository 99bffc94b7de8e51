"""Properties 6 to 12 of the strategy `structure`, for any note and configuration."""

from itertools import pairwise
from uuid import UUID

from hypothesis import given

from rag_resources.core.chunking import chunk_note
from rag_resources.core.configuration import ChunkingConfig
from rag_resources.core.sentences import sentences
from rag_resources.core.types import Chunk
from tests.strategies import structure_configs, structured_notes

NOTE_ID = UUID(int=7)


def cut(note: str, config: ChunkingConfig) -> list[Chunk]:
    return chunk_note(NOTE_ID, note, config)


@given(structured_notes(), structure_configs())
def test_property_06_to_09_chunks_by_structure_are_a_sequence_that_covers_the_note(
    note: str, config: ChunkingConfig
) -> None:
    chunks = cut(note, config)
    assert [chunk.chunk_index for chunk in chunks] == list(range(len(chunks)))
    assert {chunk.note_id for chunk in chunks} == {NOTE_ID}
    covered = 0
    for chunk in chunks:
        assert 0 <= chunk.start_char < chunk.end_char <= len(note)
        assert note[chunk.start_char : chunk.end_char] == chunk.content
        assert not note[covered : chunk.start_char].strip()
        covered = chunk.end_char
    assert not note[covered:].strip()
    for left, right in pairwise(chunks):
        assert left.start_char < right.start_char
        assert left.end_char < right.end_char


@given(structured_notes(), structure_configs())
def test_property_10_and_11_chunks_by_structure_are_bounded_and_share_what_the_rule_allows(
    note: str, config: ChunkingConfig
) -> None:
    chunks = cut(note, config)
    for chunk in chunks:
        assert len(chunk.content) <= config.max
    for left, right in pairwise(chunks):
        merged = len(note[left.start_char : right.end_char])
        assert merged > config.max or len(left.content) >= config.min
        shared = len(note[right.start_char : left.end_char])
        largest = max(1.5 * config.overlap, config.max / 2)
        assert shared <= (largest if config.overlap else 0)
    if len(chunks) > 1 and len(chunks[-1].content) < config.min:
        left, right = chunks[-2:]
        assert len(note[left.start_char : right.end_char]) > config.max


@given(structured_notes(), structure_configs())
def test_property_12_chunks_by_structure_end_at_sentences_or_rows(
    note: str, config: ChunkingConfig
) -> None:
    pieces = sentences(note)
    borders = {at for piece in pieces for at in (piece.start, piece.end)}
    too_long = {
        place
        for piece in pieces
        if len(note[piece.start : piece.end]) > config.max
        for place in range(piece.start, piece.end + 1)
    }
    for chunk in cut(note, config):
        assert {chunk.start_char, chunk.end_char} <= borders | too_long
