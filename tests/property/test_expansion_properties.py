"""Properties 13 and 14: an expanded passage is cut from the note and contains the passage."""

from itertools import pairwise
from unittest.mock import patch
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from rag_resources.core import expansion
from rag_resources.core.chunking import chunk_note
from rag_resources.core.configuration import ContextConfig
from rag_resources.core.expansion import expand
from rag_resources.core.sentences import sentences
from rag_resources.core.text import Span
from tests.strategies import chunking_configs, context_configs, notes, spans_of


@st.composite
def notes_with_passages(draw: st.DrawFn) -> tuple[str, list[Span]]:
    """A note with some of its chunks, or with spans on any border, in any order."""
    note = draw(notes())
    if draw(st.booleans()):
        return note, draw(st.lists(spans_of(note), max_size=5))
    chunks = chunk_note(UUID(int=1), note, draw(chunking_configs()))
    spans = [Span(chunk.start_char, chunk.end_char) for chunk in chunks]
    return note, draw(st.lists(st.sampled_from(spans), max_size=5))


def expected_window(note: str, passage: Span, config: ContextConfig) -> Span:
    """Return the passage with every sentence it meets and its neighbours, found one by one."""
    borders = sentences(note)
    met = [
        number
        for number, sentence in enumerate(borders)
        if max(sentence.start, passage.start) < min(sentence.end, passage.end)
    ]
    if not met:  # white space between sentences: neighbours only
        before = [s for s in borders if s.end <= passage.start]
        after = [s for s in borders if s.start >= passage.end]
        taken = before[len(before) - min(len(before), config.sentences_before) :]
        taken += after[: config.sentences_after]
    else:
        low = max(0, met[0] - config.sentences_before)
        taken = borders[low : met[-1] + config.sentences_after + 1]
    return Span(
        min([passage.start, *(s.start for s in taken)]), max([passage.end, *(s.end for s in taken)])
    )


@given(notes_with_passages(), context_configs())
def test_property_13_expanded_content_is_a_piece_of_the_note_by_offsets(
    case: tuple[str, list[Span]], config: ContextConfig
) -> None:
    note, passages = case
    for passage in passages:
        (window,) = expand(note, [passage], config)
        assert 0 <= window.start < window.end <= len(note)
        assert note[window.start : window.end] in note
        assert window == expected_window(note, passage, config)


@given(
    st.lists(notes(max_sentences=3), min_size=1, max_size=12).map("\n\n".join),
    st.data(),
    context_configs(),
)
def test_property_13_what_is_cut_of_a_long_note_is_as_if_all_were_cut(
    note: str, data: st.DataObject, config: ContextConfig
) -> None:
    longest = max(map(len, note.split("\n\n")))
    passage = data.draw(spans_of(note))
    with (
        patch.object(expansion, "_REACHES", (5, 40, 10_000)),
        patch.object(expansion, "_PARAGRAPH_CHARS", longest + 2),
    ):
        (window,) = expand(note, [passage], config)
    assert window == expected_window(note, passage, config)


@given(notes_with_passages(), context_configs())
def test_property_14_a_passage_lies_in_its_window_and_windows_that_meet_are_one(
    case: tuple[str, list[Span]], config: ContextConfig
) -> None:
    note, passages = case
    windows = expand(note, passages, config)
    assert len(windows) == len(passages)
    for passage, window in zip(passages, windows, strict=True):
        expanded = note[window.start : window.end]
        start, end = passage.start - window.start, passage.end - window.start
        assert 0 <= start < end <= len(expanded)
        assert expanded[start:end] == note[passage.start : passage.end]
    distinct = sorted(set(windows), key=lambda window: window.start)
    for left, right in pairwise(distinct):
        assert left.end < right.start
    # A window holds nothing that no passage asked for.
    wanted = set[int]().union(
        *(
            range(own.start, own.end)
            for own in (expected_window(note, passage, config) for passage in passages)
        )
    )
    assert wanted == set[int]().union(*(range(w.start, w.end) for w in distinct))
