"""Chunking on notes small enough to compute by hand; sizes are words unless said otherwise."""

from itertools import pairwise
from uuid import UUID, uuid5

import pytest

from rag_resources.core.chunking import chunk_id, chunk_note
from rag_resources.core.configuration import ChunkingConfig
from rag_resources.core.errors import InvalidParameterError
from rag_resources.core.text import content_sha256, count_tokens
from rag_resources.core.types import Chunk
from tests.strategies import count_words

NOTE_ID = UUID("11111111-2222-3333-4444-555555555555")


def config(overlap: int = 0, minimum: int = 0, size: int = 16) -> ChunkingConfig:
    return ChunkingConfig(max_tokens=size, overlap_tokens=overlap, min_tokens=minimum)


def note_of(*sizes: int) -> str:
    """Return sentences of so many words each; the first word is the number of the sentence."""
    return " ".join(
        " ".join([f"S{number}", *["voz"] * (size - 1)]) + "." for number, size in enumerate(sizes)
    )


def sentences_in(chunk: Chunk) -> list[int]:
    return [int(word[1:].strip(".")) for word in chunk.content.split() if word.startswith("S")]


def layout(sizes: list[int], cut: ChunkingConfig) -> list[list[int]]:
    """Return the sentences of each chunk."""
    chunks = chunk_note(NOTE_ID, note_of(*sizes), cut, counter=count_words)
    return [sentences_in(chunk) for chunk in chunks]


@pytest.mark.parametrize(
    ("sizes", "cut", "expected"),
    [
        pytest.param([3], config(minimum=10), [[0]], id="a short note is one chunk"),
        pytest.param([8, 8], config(), [[0, 1]], id="exactly full"),
        pytest.param([8, 9], config(), [[0], [1]], id="one word too many"),
        pytest.param([8, 8, 8], config(), [[0, 1], [2]], id="no overlap asked, none given"),
        pytest.param([8, 3, 3, 8], config(4), [[0, 1, 2], [1, 2, 3]], id="exactly 1.5 x overlap"),
        pytest.param([8, 3, 4, 8], config(4), [[0, 1, 2], [2, 3]], id="over 1.5 x overlap"),
        pytest.param([8, 8, 8], config(1), [[0, 1], [1, 2]], id="one sentence of half a chunk"),
        pytest.param([3, 3, 5, 5, 2], config(1), [[0, 1, 2, 3], [3, 4]], id="one and no more"),
        pytest.param([7, 9, 7], config(1), [[0, 1], [2]], id="one sentence over half a chunk"),
        pytest.param([10, 6, 12], config(4), [[0, 1], [2]], id="size wins over overlap"),
        pytest.param([8, 3, 3, 12], config(4), [[0, 1, 2], [2, 3]], id="size drops the farthest"),
        pytest.param([8, 9], config(15), [[0], [1]], id="a chunk is never repeated whole"),
        pytest.param([4, 4, 4, 4, 3], config(minimum=6), [[0, 1, 2], [3, 4]], id="tail spared one"),
        pytest.param(
            [4, 3, 3, 3, 3, 1], config(minimum=7), [[0, 1, 2], [3, 4, 5]], id="spared two"
        ),
        pytest.param(
            [4, 4, 4, 4, 6], config(minimum=6), [[0, 1, 2, 3], [4]], id="not a short tail"
        ),
        pytest.param([12, 4, 3], config(minimum=14), [[0, 1], [2]], id="nothing to spare"),
        pytest.param([6, 6, 3, 3], config(minimum=6), [[0, 1], [2, 3]], id="spared exactly enough"),
        pytest.param([6, 6, 3, 2], config(minimum=6), [[0], [1, 2, 3]], id="five is not enough"),
        pytest.param([6, 10, 2], config(minimum=6), [[0], [1, 2]], id="the minimum is left behind"),
        pytest.param([5, 11, 2], config(minimum=6), [[0, 1], [2]], id="less than it would be left"),
    ],
)
def test_sentences_are_packed_by_the_rules(
    sizes: list[int], cut: ChunkingConfig, expected: list[list[int]]
) -> None:
    assert layout(sizes, cut) == expected


def test_a_short_tail_takes_over_sentences_and_its_overlap_comes_on_top() -> None:
    assert layout([4, 4, 4, 4, 3], config(overlap=3, minimum=6)) == [[0, 1, 2], [2, 3, 4]]
    assert layout([4, 4, 4, 4, 3], config(overlap=8, minimum=6)) == [[0, 1, 2], [1, 2, 3, 4]]
    assert layout([6, 6, 3, 2], config(overlap=1, minimum=6)) == [[0], [1, 2, 3]]


def test_a_short_tail_stays_if_the_overlap_leaves_no_room_for_more() -> None:
    """Moving sentence 2 to the tail also moves 1: 8 + 6 + 2 words just fit, 9 + 6 + 2 do not."""
    assert layout([2, 8, 6, 2], config(overlap=6, minimum=3)) == [[0, 1], [1, 2, 3]]
    assert layout([1, 9, 6, 2], config(overlap=6, minimum=3)) == [[0, 1, 2], [2, 3]]


@pytest.mark.parametrize("blank", ["", " ", "\r\n\t", "\u00a0\u2003"])
def test_a_blank_note_is_refused_by_name(blank: str) -> None:
    with pytest.raises(InvalidParameterError, match="en blanco") as caught:
        chunk_note(NOTE_ID, blank, config())
    assert caught.value.context == {"note_id": str(NOTE_ID)}


def test_the_id_of_a_chunk_is_that_of_its_note_place_and_text() -> None:
    digest = content_sha256("texto").hex()
    assert chunk_id(NOTE_ID, 3, "texto") == uuid5(NOTE_ID, f"3:{digest}")
    (chunk,) = chunk_note(NOTE_ID, " texto\n", config())
    assert chunk == Chunk(chunk_id(NOTE_ID, 0, "texto"), NOTE_ID, 0, 1, 6, "texto")
    assert chunk_note(NOTE_ID, " texto\n", config()) == [chunk]
    others = {
        chunk_id(NOTE_ID, 4, "texto"),
        chunk_id(NOTE_ID, 3, "otro"),
        chunk_id(UUID(int=1), 3, "texto"),
    }
    assert len(others | {chunk_id(NOTE_ID, 3, "texto")}) == 4


def contents(note: str, cut: ChunkingConfig) -> list[str]:
    return [chunk.content for chunk in chunk_note(NOTE_ID, note, cut, counter=count_words)]


@pytest.mark.parametrize("mark", [",", ";", ":", " —"])
def test_an_over_long_sentence_is_cut_after_clause_marks(mark: str) -> None:
    clauses = [f"c{number} dos tres cuatro cinco seis{mark}" for number in range(3)]
    found = contents(" ".join(clauses) + " fin", config())
    words = 7 if mark == " —" else 6
    per_chunk = 16 // words
    assert found[0] == " ".join(clauses[:per_chunk])
    assert found[1].startswith(f"c{per_chunk}")


@pytest.mark.parametrize(
    "conjunction", ["y", "o", "pero", "aunque", "porque", "que", "CUANDO", "si"]
)
def test_an_over_long_sentence_is_cut_before_a_conjunction(conjunction: str) -> None:
    half = " ".join(["voz"] * 9)
    assert contents(f"{half} {conjunction} {half}", config()) == [half, f"{conjunction} {half}"]


def test_neighbours_inside_an_over_long_sentence_share_a_clause() -> None:
    clauses = [f"c{number} dos tres cuatro cinco," for number in range(4)]
    assert contents(" ".join(clauses), config(overlap=5)) == [
        " ".join(clauses[:3]),
        " ".join(clauses[2:]),
    ]


def test_a_note_of_one_megabyte_without_a_full_stop_is_cut_at_words() -> None:
    note = "una nota larguísima que no acaba nunca " * 26_000
    chunks = chunk_note(NOTE_ID, note, ChunkingConfig())
    assert len(note.encode()) > 1_000_000
    assert all(count_tokens(chunk.content) <= 512 for chunk in chunks)
    assert chunks[-1].end_char == len(note.rstrip())
    for left, right in pairwise(chunks):
        assert right.start_char <= left.end_char + 1
    words = set(note.split())
    assert all(words.issuperset(chunk.content.split()) for chunk in chunks)
