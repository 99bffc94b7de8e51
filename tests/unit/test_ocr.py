"""Pages without text are recognised by tesseract, here a program that answers as it does."""

import sys
from pathlib import Path
from typing import Any

import pytest

from rag_resources.core.documents import Page, PageFailure, Route
from rag_resources.core.messages import Message
from rag_resources.documents.ocr import Tesseract
from rag_resources.documents.pdf import PdfReader
from tests.pdf_files import draw_picture, kinds, pdf_of

HEAD = (
    "level\tpage_num\tblock_num\tpar_num\tline_num\tword_num\tleft\ttop\twidth\theight\tconf\ttext"
)
WORDS = [
    (1, 1, 300, 400, 200, 40, 96, "Acta"),
    (1, 1, 520, 402, 90, 38, 95, "de"),
    (1, 1, 640, 400, 220, 48, 93, "sesión"),
    (1, 2, 300, 456, 330, 48, 91, "ordinaria"),
    (1, 2, 700, 470, 20, 20, 3, "~|"),
]
ROWS = [
    f"5\t1\t{block}\t1\t{line}\t1\t{left}\t{top}\t{width}\t{height}\t{conf}\t{text}"
    for block, line, left, top, width, height, conf, text in WORDS
]


def program(folder: Path, code: str) -> Tesseract:
    """A program in the place of tesseract."""
    path = folder / "tesseract"
    version = "if '--version' in sys.argv: sys.exit(print('tesseract 5.3.0\\n leptonica'))"
    path.write_text(f"#!{sys.executable}\nimport sys, time\n{version}\n{code}\n", "utf-8")
    path.chmod(0o755)
    return Tesseract(str(path), timeout_s=2.0)


def read(recogniser: Tesseract) -> list[Page | PageFailure]:
    def write(canvas: Any) -> None:
        canvas.drawString(70, 700, "Texto")

    return list(PdfReader(recogniser).read(pdf_of(draw_picture, write)))


def test_a_page_without_text_is_recognised_with_its_places(tmp_path: Path) -> None:
    table = "\n".join([HEAD, *ROWS]) + "\n"
    png = "assert sys.stdin.buffer.read(8) == b'\\x89PNG\\r\\n\\x1a\\n'; sys.stdin.buffer.read()"
    recogniser = program(tmp_path, f"{png}\nsys.stdout.buffer.write({table!r}.encode())")

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
    [("sys.exit(1)", Message.OCR_FAILED), ("time.sleep(30)", Message.OCR_TIMEOUT)],
)
def test_a_page_that_cannot_be_recognised_fails_alone(
    tmp_path: Path, code: str, message: str
) -> None:
    scanned, written = read(program(tmp_path, code))

    assert isinstance(scanned, PageFailure)
    assert scanned.code == message.code  # type: ignore[attr-defined]
    assert isinstance(written, Page)


def test_another_recogniser_makes_pages_stale(tmp_path: Path) -> None:
    recogniser = program(tmp_path, "")
    hashes = {
        PdfReader().reader_hash,
        PdfReader(recogniser).reader_hash,
        PdfReader(Tesseract(recogniser.program, "spa+cat")).reader_hash,
    }

    assert len(hashes) == 3


def test_pages_recognised_by_another_version_are_stale(tmp_path: Path) -> None:
    assert program(tmp_path, "").identity == "tesseract 5.3.0 spa"
    assert Tesseract(str(tmp_path / "nothing")).identity == "tesseract spa"
