"""Property 64: every character is in one block, and what a range shows comes from that range."""

import unicodedata
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from rag_resources.core.blocks import read, rendered
from rag_resources.core.sentences import sentences
from tests.strategies import any_notes, structured_notes

MARKS = st.sampled_from(
    [
        *("**", "_", "`", "\n\n", "\n", "\r\n", "# ", "- ", "> ", "> [!note] ", "| a | b |\n"),
        *("|---|---|\n", "```\n", "[[", "]]", "|", "%%", "<b>", "<!--", "-->", "&ntilde;", "\\"),
        *(
            "\u00ad",
            "\u200b",
            "![x](",
            ")",
            "\t",
            "2/3/26, 9:43 - Ana: ",
            "[^1]",
            "id:: 3\n",
            "---",
        ),
        *("palabra", "ñandú", "e\u0301", "12", " ", " ", "😀"),
    ]
)
MARKDOWN = st.lists(MARKS, max_size=30).map("".join)


@given(st.one_of(MARKDOWN, any_notes(), structured_notes()))
def test_property_64_blocks_cover_a_text_and_show_only_their_own_range(text: str) -> None:
    reading = read(text)
    borders = [0, *(block.span.end for block in reading.blocks)]
    assert [block.span.start for block in reading.blocks] == borders[:-1]
    assert borders[-1] == len(text)
    assert all(start < end for start, end in pairwise(borders))
    parts = [reading.rendered(block.span.start, block.span.end) for block in reading.blocks]
    assert "".join("".join(parts).split()) == "".join(reading.rendered().split())
    ends = 0
    for start, end, shown in reading.pieces:
        assert ends <= start <= end <= len(text)
        assert shown
        ends = end
    assert unicodedata.is_normalized("NFC", reading.rendered())


@given(st.one_of(MARKDOWN, any_notes()))
def test_property_64_only_marks_and_white_space_are_outside_what_sentences_show(text: str) -> None:
    found = sentences(text)
    covered = {place for span in found for place in range(span.start, span.end)}
    assert not "".join(text[place] for place in range(len(text)) if place not in covered).strip()
    reading = read(text)
    if rendered(text):
        assert all(reading.rendered(span.start, span.end) for span in found)
