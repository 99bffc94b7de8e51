"""Extracts PDF files with one reader, in a process of its own: `document_worker.py READER FILE...`.

Prints JSON: the pages' texts and tables of each file, processor seconds, and peak memory. It runs
with the Python of the product or with that of the peers, so it imports a reader only when asked.
"""

import json
import resource
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

Extract = Callable[[Path], tuple[list[str], list[Any], list[str]]]
"""The texts of the pages, their tables, and the texts before anything was removed."""


def ours(path: Path) -> tuple[list[str], list[Any], list[str]]:
    """The product's reader: the text without what was removed, and rows of cells."""
    from rag_resources.core.documents import BlockKind, Page
    from rag_resources.documents.pdf import PdfReader

    texts, tables, whole = [], [], []
    with path.open("rb") as file:
        for page in PdfReader().read(file):
            if not isinstance(page, Page):
                continue
            texts.append(_without(page.text, page.removed))
            hyphens = [removal for removal in page.removed if removal.reason == "hyphen"]
            whole.append(_without(page.text, hyphens))
            found: list[list[list[str]]] = []
            before = None
            for block in page.blocks:
                is_row = block.kind in (BlockKind.TABLE_HEADER, BlockKind.TABLE_ROW)
                if is_row:
                    if before is None or (
                        block.kind is BlockKind.TABLE_HEADER and before is BlockKind.TABLE_ROW
                    ):
                        found.append([])
                    row = page.text[block.start : block.end].split("|")
                    found[-1].append([cell.strip() for cell in row])
                before = block.kind if is_row else None
            tables.append(found)
    return texts, tables, whole


def _without(text: str, removed: Iterable[Any]) -> str:
    """A text without what was removed."""
    kept, last = "", 0
    for removal in sorted(removed, key=lambda removal: removal.start):
        kept += text[last : removal.start]
        last = max(last, removal.end)
    return kept + text[last:]


def pdftext(path: Path) -> tuple[list[str], list[Any], list[str]]:
    """Pdftext, with line-end hyphens joined."""
    from pdftext.extraction import paginated_plain_text_output

    texts = paginated_plain_text_output(str(path), hyphens=False)
    return texts, [], texts


def pdfplumber(path: Path) -> tuple[list[str], list[Any], list[str]]:
    """Pdfplumber, with its tables."""
    import pdfplumber as library

    texts, tables = [], []
    with library.open(path) as document:
        for page in document.pages:
            texts.append(page.extract_text())
            tables.append([[[c or "" for c in row] for row in t] for t in page.extract_tables()])
            page.close()
    return texts, tables, texts


READERS: dict[str, Extract] = {"ours": ours, "pdftext": pdftext, "pdfplumber": pdfplumber}


def main() -> None:
    """Extract and print."""
    extract = READERS[sys.argv[1]]
    files = []
    started = time.process_time()
    for name in sys.argv[2:]:
        texts, tables, whole = extract(Path(name))
        files.append({"pages": texts, "tables": tables, "whole": whole})
    result = {
        "files": files,
        "cpu_s": time.process_time() - started,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    sys.stdout.write(json.dumps(result))


if __name__ == "__main__":
    main()
