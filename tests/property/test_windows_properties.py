"""Properties 9 and 12, of windows: how chunks are cut, for any text and configuration."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from rag_resources.core.sentences import sentences
from rag_resources.core.text import is_blank
from rag_resources.core.windows import WindowsConfig, cut_windows, window_text
from tests.strategies import blank_texts, notes

configs = st.integers(1, 6).flatmap(
    lambda size: st.builds(WindowsConfig, sentences=st.just(size), stride=st.integers(1, size))
)


@given(notes(), configs)
def test_property_12_windows_are_whole_sentences_at_their_stride(
    content: str, config: WindowsConfig
) -> None:
    found = sentences(content)
    starts, ends = [span.start for span in found], [span.end for span in found]
    windows = cut_windows(content, config)
    for window in windows:
        first, last = starts.index(window.start), ends.index(window.end)
        assert last - first + 1 <= config.sentences
        assert last - first + 1 == config.sentences or last == len(found) - 1
    for left, right in pairwise(windows):
        assert starts.index(right.start) - starts.index(left.start) == config.stride
        assert left.end < right.end  # None lies inside the one before.


@given(notes(), configs)
def test_property_09_windows_lose_no_character(content: str, config: WindowsConfig) -> None:
    covered = set[int]().union(*(range(w.start, w.end) for w in cut_windows(content, config)))
    outside = "".join(content[place] for place in range(len(content)) if place not in covered)
    assert is_blank(outside)


@given(blank_texts(), configs)
def test_property_09_a_blank_text_has_no_window(blank: str, config: WindowsConfig) -> None:
    assert cut_windows(blank, config) == []


@given(notes(), notes())
def test_property_12_the_text_of_a_window_ends_with_it_and_begins_with_the_title(
    title: str, text: str
) -> None:
    made = window_text(title, text)
    assert made.endswith(text)
    assert made.removesuffix(text).split() == title.split() or made.removesuffix(
        text
    ).rstrip().removesuffix(".").split() == (title.split())
