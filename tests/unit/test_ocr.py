"""Pages without text are recognised by tesseract, here a program that answers as it does."""

from pathlib import Path
from typing import Any

import pytest

from rag_resources.core.documents import Page, PageFailure, Route
from rag_resources.documents.ocr import Tesseract
from rag_resources.documents.pdf import PdfReader
from rag_resources.languages.messages import _
from tests.pdf_files import draw_picture, kinds, pdf_of
from tests.tesseract import ANSWER, program


def read(recogniser: Tesseract) -> list[Page | PageFailure]:
    def write(canvas: Any) -> None:
        canvas.drawString(70, 700, "Texto")

    return list(PdfReader(recogniser).read(pdf_of(draw_picture, write)))


def test_a_page_without_text_is_recognised_with_its_places(tmp_path: Path) -> None:
    png = "assert sys.stdin.buffer.read(8) == b'\\x89PNG\\r\\n\\x1a\\n'; sys.stdin.buffer.read()"
    recogniser = program(tmp_path, f"{png}\nsys.stdout.buffer.write({ANSWER!r}.encode())")

    scanned, written = read(recogniser)

    assert isinstance(scanned, Page)
    assert (scanned.route, scanned.notices) == (Route.OCR, ())
    assert kinds(scanned) == [("paragraph", "Acta de sesión ordinaria")]
    box = scanned.blocks[0].runs[0].box
    assert box is not None
    assert (box.left, box.right) == (pytest.approx(72), pytest.approx(206.4))
    assert isinstance(written, Page)
    assert (written.route, written.text) == (Route.TEXT, "Texto")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (
            "sys.exit(1)",
            _(
                "The recognition of the text (OCR) of a page failed. Check that “tesseract” works "
                "and has the data of the language “{languages}”."
            ),
        ),
        (
            "time.sleep(30)",
            _("The recognition of the text (OCR) of a page took more than {seconds:g} s."),
        ),
    ],
)
def test_a_page_that_cannot_be_recognised_fails_alone(
    tmp_path: Path, code: str, message: str
) -> None:
    scanned, written = read(program(tmp_path, code))

    assert isinstance(scanned, PageFailure)
    assert scanned.reason.msgid == message.msgid  # type: ignore[attr-defined]
    assert isinstance(written, Page)


def test_another_recogniser_makes_pages_stale(tmp_path: Path) -> None:
    recogniser = program(tmp_path, "")
    hashes = {
        PdfReader().reader_hash,
        PdfReader(recogniser).reader_hash,
        PdfReader(Tesseract(recogniser.program, "spa+cat")).reader_hash,
    }

    assert len(hashes) == 3
