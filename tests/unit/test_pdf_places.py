"""Places in PDF files: read again from the file, and drawn on a picture of the page."""

from contextlib import closing
from io import BytesIO
from typing import Any

import pytest
from PIL import Image

from rag_resources.core.documents import Page
from rag_resources.core.places import Box
from rag_resources.documents.pdf_places import PdfFile, is_same_text
from tests.pdf_files import HEIGHT, PROSE, WIDTH, draw_lines, pdf_of, read, wrapped


def draw_page(canvas: Any) -> None:
    top = draw_lines(canvas, wrapped(PROSE + " desa-", 60), 70, 80)
    draw_lines(canvas, ["rrollo del plan."], 70, top)
    for number, row in enumerate((("Partida", "2024"), ("Transporte", "1.250"), ("Total", "9.1"))):
        canvas.drawString(75, HEIGHT - 415 - 20 * number, row[0])
        canvas.drawString(255, HEIGHT - 415 - 20 * number, row[1])
    canvas.grid([70, 250, 350], [HEIGHT - 400 - 20 * n for n in range(4)])
    canvas.saveState()
    canvas.rotate(90)
    canvas.drawString(200, -40, "Texto al margen de la página")
    canvas.restoreState()


def test_every_line_and_cell_is_read_again_at_its_place() -> None:
    file = pdf_of(draw_page)
    (page,) = read(file)
    assert isinstance(page, Page)

    with closing(PdfFile(file)) as opened:
        for block in page.blocks:
            for run in block.runs:
                assert run.box is not None
                stored = page.text[run.start : run.end]
                assert is_same_text(stored, opened.text_in(1, run.box))
        assert opened.text_in(1, Box(0, 0, 20, 20)) == ""
    assert sum(len(block.runs) for block in page.blocks) > 12
    assert "Texto al margen de la página" in page.text


def test_a_picture_shows_the_page_with_its_boxes() -> None:
    with closing(PdfFile(pdf_of(draw_page))) as opened:
        plain = Image.open(BytesIO(opened.picture(1)))
        marked = Image.open(BytesIO(opened.picture(1, [Box(100, 500, 200, 600)])))

    scale = marked.width / WIDTH
    assert marked.format == "PNG"
    assert marked.height / marked.width == pytest.approx(HEIGHT / WIDTH, rel=0.01)
    at = (round(99 * scale), round(550 * scale))
    assert plain.getpixel(at) == (255, 255, 255)
    assert marked.getpixel(at) == (214, 39, 40)
    assert marked.getpixel((round(150 * scale), round(550 * scale))) == (255, 255, 255)
