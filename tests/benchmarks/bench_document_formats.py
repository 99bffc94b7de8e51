"""What becomes of all files: `python -m tests.benchmarks.bench_document_formats FOLDER…`.

Prints a table in Markdown: pages, words, blocks by kind, or why the file was refused. It says if
text is lost between pages and sections. Word documents are compared with the words of their XML.
"""

import sys
import time
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

from rag_resources.core.documents import DocumentReader, Page, PageFailure, unaccounted
from rag_resources.core.errors import InvalidSourceError
from rag_resources.core.sections import sections_of
from rag_resources.documents.csv_table import CsvReader
from rag_resources.documents.docx import DocxReader
from rag_resources.documents.html import HtmlReader
from rag_resources.documents.text import MarkdownReader, TextReader
from rag_resources.documents.workbook import WorkbookReader

READERS: dict[str, type[DocumentReader]] = {
    ".docx": DocxReader,
    **dict.fromkeys((".xlsx", ".xlsm", ".xls", ".ods"), WorkbookReader),
    **dict.fromkeys((".html", ".htm"), HtmlReader),
    **dict.fromkeys((".csv", ".tsv"), CsvReader),
    ".md": MarkdownReader,
    ".txt": TextReader,
}
_NOT_SHOWN = {"Fallback", "del", "instrText"}
_SEPARATE = {"p", "tab", "br", "oMath", "tc"}


def main(folders: list[str]) -> None:
    """Print the table."""
    sys.stdout.write("| file | result | ms |\n|---|---|---|\n")
    outcomes: Counter[str] = Counter()
    for folder in folders:
        for path in sorted(Path(folder).iterdir()):
            if path.suffix.lower() not in READERS:
                continue
            start = time.process_time()
            outcome, told = result(path)
            outcomes[outcome] += 1
            took = 1000 * (time.process_time() - start)
            sys.stdout.write(f"| {path.name} | {told} | {took:.0f} |\n")
    sys.stdout.write(f"\n{dict(outcomes)}\n")


def result(path: Path) -> tuple[str, str]:
    """Read a file; return a word for what happened, and the details."""
    reader = READERS[path.suffix.lower()]()
    try:
        with path.open("rb") as file:
            read = list(reader.read(file))
    except InvalidSourceError as error:
        return "refused", f"refused: {error.message}"
    pages = [item for item in read if isinstance(item, Page)]
    failed = [item.number for item in read if isinstance(item, PageFailure)]
    sections = list(sections_of(pages))
    kinds = Counter(block.kind.value for page in pages for block in page.blocks)
    told = [
        f"{len(pages)} pages, {sum(page.word_count for page in pages)} words",
        ", ".join(f"{count} {kind}" for kind, count in kinds.most_common()),
    ]
    if any(unaccounted(page, sections) for page in pages):
        return "lost", "text is lost between pages and sections"
    if path.suffix.lower() == ".docx":
        found = Counter(word for section in sections for word in section.text.split())
        wanted = Counter("".join(_words_of(path)).split())
        if wanted:
            told.append(f"recall {(found & wanted).total() / wanted.total():.3f}")
    if failed:
        told.append(f"failed pages: {failed}")
    return ("partial" if failed else "read"), "; ".join(filter(None, told))


def _words_of(path: Path) -> Iterator[str]:
    """The text of a Word document's body and notes, from its XML."""
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if name.startswith(("word/document", "word/footnotes", "word/endnotes")):
                yield from _shown(ElementTree.fromstring(archive.read(name)))


def _shown(element: ElementTree.Element) -> Iterator[str]:
    tag = element.tag.rpartition("}")[2]
    if tag in _NOT_SHOWN:
        return
    if tag == "t":
        yield element.text or ""
    if tag in _SEPARATE:
        yield " "
    for child in element:
        yield from _shown(child)
    if tag in _SEPARATE:
        yield " "


if __name__ == "__main__":
    main(sys.argv[1:])
