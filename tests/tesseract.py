"""A program in the place of tesseract, which answers as it does."""

import sys
from pathlib import Path

from rag_resources.documents.ocr import Tesseract

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


ANSWER = "\n".join([HEAD, *ROWS]) + "\n"
PRINTS_ANSWER = f"sys.stdin.buffer.read(); sys.stdout.buffer.write({ANSWER!r}.encode())"


def program(folder: Path, code: str) -> Tesseract:
    """A program in the place of tesseract."""
    path = folder / "tesseract"
    version = "if '--version' in sys.argv: sys.exit(print('tesseract 5.3.0\\n leptonica'))"
    path.write_text(f"#!{sys.executable}\nimport sys, time\n{version}\n{code}\n", "utf-8")
    path.chmod(0o755)
    return Tesseract(str(path), timeout_s=2.0)
