"""Properties 45 and 46 of pages: places read the same text again, and cleaning loses nothing."""

from contextlib import closing
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rag_resources.core.cleaning import clean
from rag_resources.core.documents import Block, BlockKind, Page, PageFailure, Run
from rag_resources.core.places import Box
from rag_resources.core.text import is_blank
from rag_resources.documents.pdf_places import PdfFile, is_same_text
from tests.pdf_files import pdf_of, read

LINES = st.sampled_from(
    ["Plan de movilidad", "12", "Página 3 de 40", "1. Medidas ...... 4", "2. Gasto ...... 9", "iv"]
) | st.text(st.characters(codec="latin-1", categories=["L", "N", "P"]), min_size=1, max_size=20)
KINDS = st.sampled_from([BlockKind.PARAGRAPH, BlockKind.HEADING, BlockKind.TABLE_ROW])


@st.composite
def pages(draw: st.DrawFn, number: int) -> Page:
    """A page of lines at their heights, each a block of its own or the next line of one."""
    text = ""
    blocks: list[Block] = []
    for index, line in enumerate(draw(st.lists(LINES, max_size=8))):
        start = len(text)
        text += line + "\n"
        run = Run(start, start + len(line), Box(50, 40 + 14 * index, 500, 50 + 14 * index))
        if blocks and draw(st.booleans()):
            last = blocks.pop()
            blocks.append(Block(last.start, run.end, last.kind, runs=(*last.runs, run)))
        else:
            blocks.append(Block(start, run.end, draw(KINDS), runs=(run,)))
    return Page(number, text, blocks=tuple(blocks))


@st.composite
def documents(draw: st.DrawFn) -> list[Page | PageFailure]:
    """Up to eight pages, of which some could not be read."""
    return [
        PageFailure(n, "X") if draw(st.integers(0, 9)) == 0 else draw(pages(n))
        for n in range(1, draw(st.integers(1, 8)) + 1)
    ]


@given(documents())
def test_property_46_cleaning_keeps_the_text_and_accounts_for_every_character(
    document: list[Page | PageFailure],
) -> None:
    cleaned = list(clean(document))

    assert [each.number for each in cleaned] == [each.number for each in document]
    for before, after in zip(document, cleaned, strict=True):
        if isinstance(before, PageFailure) or isinstance(after, PageFailure):
            assert after is before
            continue
        assert after.text == before.text
        kept = [(run.start, run.end) for block in after.blocks for run in block.runs]
        gone = [(removal.start, removal.end) for removal in after.removed]
        taken = sorted([*kept, *gone])
        assert all(a[1] <= b[0] for a, b in pairwise(taken))
        left = list(after.text)
        for start, end in taken:
            left[start:end] = " " * (end - start)
        assert is_blank("".join(left))


@given(
    st.lists(
        st.tuples(
            st.text("abcñáé 019.,-", min_size=1, max_size=30).filter(lambda text: text.strip()),
            st.integers(40, 400),
            st.integers(0, 50),
            st.sampled_from([8, 10, 14]),
        ),
        max_size=12,
    )
)
def test_property_45_every_line_of_a_pdf_page_is_read_again_at_its_place(
    lines: list[tuple[str, int, int, int]],
) -> None:
    def draw(canvas: Any) -> None:
        taken = set()
        for text, left, row, size in lines:
            if row not in taken:
                canvas.setFont("Helvetica", size)
                canvas.drawString(left, 60 + 15 * row, text)
            taken.add(row)

    file = pdf_of(draw)
    with closing(PdfFile(file)) as opened:
        for page in read(file):
            assert isinstance(page, Page)
            left = list(page.text)
            for block in page.blocks:
                for run in block.runs:
                    assert run.box is not None
                    stored = page.text[run.start : run.end]
                    assert is_same_text(stored, opened.text_in(page.number, run.box))
                    left[run.start : run.end] = " " * (run.end - run.start)
            for removal in page.removed:
                left[removal.start : removal.end] = " " * (removal.end - removal.start)
            assert is_blank("".join(left))
