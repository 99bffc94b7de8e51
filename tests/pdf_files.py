"""Small PDF files made for tests, with reportlab."""

from collections.abc import Callable, Sequence
from io import BytesIO
from typing import Any

from PIL import Image
from reportlab.lib.pagesizes import A4
from reportlab.pdfgen.canvas import Canvas

from rag_resources.core.documents import Page, PageFailure
from rag_resources.documents.pdf import PdfReader

WIDTH, HEIGHT = A4
Draw = Callable[[Any], None]

PROSE = (
    "El ayuntamiento aprobó ayer el plan de movilidad de la ciudad, que prevé nuevas líneas de "
    "autobús en los barrios del norte y del sur, más carriles para bicicletas y menos plazas de "
    "aparcamiento en el centro. La oposición pidió un estudio del gasto, y el concejal de "
    "hacienda prometió entregarlo antes del verano, cuando se cierre el ejercicio anterior."
)


def pdf_of(*pages: Draw, **options: Any) -> BytesIO:
    """A PDF with a page for each function that draws one."""
    file = BytesIO()
    canvas = Canvas(file, pagesize=A4, invariant=True, **options)
    for draw in pages:
        canvas.setFont("Helvetica", 10)
        draw(canvas)
        canvas.showPage()
    canvas.save()
    file.seek(0)
    return file


def read(file: BytesIO) -> list[Page | PageFailure]:
    """All pages of a file."""
    return list(PdfReader().read(file))


def read_one(draw: Draw, **options: Any) -> Page:
    """The only page of a file."""
    (page,) = read(pdf_of(draw, **options))
    assert isinstance(page, Page)
    return page


def draw_picture(canvas: Any) -> None:
    """A picture on most of the page, as of a scanned one."""
    canvas.drawInlineImage(Image.new("RGB", (40, 60), (200, 10, 10)), 20, 20, 550, 800)


def kinds(page: Page) -> list[tuple[str, str]]:
    """Kind and text of each block; line breaks as spaces."""
    return [
        (block.kind.value, " ".join(page.text[block.start : block.end].split()))
        for block in page.blocks
    ]


def wrapped(text: str, width: int) -> list[str]:
    """A text in lines of at most this many characters."""
    lines = [""]
    for word in text.split():
        if len(lines[-1]) + len(word) >= width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def draw_lines(
    canvas: Any, lines: Sequence[str], left: float, top: float, pitch: float = 12.0
) -> float:
    """Draw lines from a height down, counted from the upper edge; return the next height."""
    for number, line in enumerate(lines):
        canvas.drawString(left, HEIGHT - top - number * pitch, line)
    return top + len(lines) * pitch
