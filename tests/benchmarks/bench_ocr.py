"""Recognition of scanned pages: `python -m tests.benchmarks.bench_ocr FILE… [--pages N]`.

Pages of PDF files that have text are drawn as pictures, and read again by the installed
`tesseract`. Their own text is the truth. Prints a row of a Markdown table for each file.
"""

import argparse
import re
import sys
import time
from collections import Counter
from io import BytesIO
from pathlib import Path

import pypdfium2 as pdfium

from rag_resources.core.documents import Page
from rag_resources.documents.ocr import Tesseract
from rag_resources.documents.pdf import PdfReader
from tests.benchmarks.targets import report

SCAN_DPI = 200
LEAST_WORDS = 100
"""Pages with fewer words are not taken: a title page says little."""


def main() -> int:
    """Print the table; 1 if `tesseract` is not installed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--pages", type=int, default=20, help="of each file, spread evenly (20)")
    parser.add_argument("--languages", default="spa")
    asked = parser.parse_args()
    recogniser = Tesseract.installed(asked.languages)
    if recogniser is None:
        sys.stderr.write("tesseract is not installed\n")
        return 1
    report("| file | pages | words | recall | precision | quality | s a page |")
    report("| --- | --- | --- | --- | --- | --- | --- |")
    for path in asked.files:
        report(measure(path, asked.pages, recogniser))
    return 0


def measure(path: Path, count: int, recogniser: Tesseract) -> str:
    """Recognise pages of a file; return the row of the table."""
    with path.open("rb") as file:
        pages = [page for page in PdfReader().read(file) if isinstance(page, Page)]
    long = [page for page in pages if page.word_count >= LEAST_WORDS]
    chosen = [long[at * len(long) // count] for at in range(min(count, len(long)))]
    scanned = scan(path, [page.number for page in chosen])
    started = time.perf_counter()
    read = [page for page in PdfReader(recogniser).read(scanned) if isinstance(page, Page)]
    seconds = (time.perf_counter() - started) / len(read)
    truth = Counter(word for page in chosen for word in words(page))
    found = Counter(word for page in read for word in words(page))
    both = (truth & found).total()
    quality = sum(page.quality or 0.0 for page in read) / len(read)
    return (
        f"| {path.name} | {len(read)} | {truth.total():,} | {both / truth.total():.3f} "
        f"| {both / found.total():.3f} | {quality:.2f} | {seconds:.1f} |"
    )


def scan(path: Path, numbers: list[int]) -> BytesIO:
    """Return a PDF of pictures of some pages, as a scanner makes it."""
    file = BytesIO()
    with pdfium.PdfDocument(path) as document:
        pictures = [
            document[number - 1].render(scale=SCAN_DPI / 72).to_pil().convert("L")
            for number in numbers
        ]
    pictures[0].save(file, "PDF", resolution=SCAN_DPI, save_all=True, append_images=pictures[1:])
    file.seek(0)
    return file


def words(page: Page) -> list[str]:
    """All words of a page, running heads included, in lower case."""
    return re.findall(r"\w+", page.text.casefold())


if __name__ == "__main__":
    sys.exit(main())
