"""PDF extraction against truths: `python -m benchmarks.bench_documents FOLDER`.

FOLDER has `manuals/*.pdf` with `*.truth.json`, and `icdar-2013-us/*.pdf` with `*-str.xml`. With
`--peers PYTHON`, an interpreter with `document_peers.txt` installed, other readers are measured in
the same run.
"""

import argparse
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from io import BytesIO
from pathlib import Path
from typing import Any

from benchmarks.document_scores import (
    Relation,
    TextScores,
    f1,
    found_relations,
    score_text,
    true_relations,
)
from benchmarks.targets import report
from rag_resources.core.documents import Page
from rag_resources.documents.pdf import PdfReader
from rag_resources.documents.pdf_places import PdfFile, is_same_text

WORKER = Path(__file__).parent / "document_worker.py"
PEERS = ("pdftext", "pdfplumber")
TARGETS = TextScores(recall=0.995, precision=0.0, order=0.92, paragraphs=0.78, table_rows=0.96)
PAGES_PER_CPU_S = 30
PEAK_MB = 150
ADJACENCY_F1 = 0.55
VERIFIED = 0.998
TIMEOUT_S = 600


def extract(python: str, reader: str, files: Sequence[Path]) -> dict[str, Any]:
    """Extract files in a process of its own."""
    command = [python, str(WORKER), reader, *map(str, files)]
    done = subprocess.run(command, capture_output=True, check=True, timeout=TIMEOUT_S)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def measure_manuals(python: str, reader: str, folder: Path) -> None:
    """Print the scores of a reader on the manuals; ours are judged by the targets."""
    files = sorted(folder.glob("*.pdf"))
    result = extract(python, reader, files)
    scores = []
    for file, extracted in zip(files, result["files"], strict=True):
        truth = json.loads(file.with_suffix(".truth.json").read_text("utf-8"))
        texts = ("\n\n".join(extracted[name]) for name in ("pages", "whole"))
        scores.append(score_text(truth, *texts))
    pages = sum(len(extracted["pages"]) for extracted in result["files"])
    for name in TextScores.__slots__:
        values = [getattr(score, name) for score in scores]
        mean, target = sum(values) / len(values), getattr(TARGETS, name)
        each = " ".join(f"{value:.4f}" for value in values)
        met = mean >= target if reader == "ours" and target else None
        report(f"{reader} {name}: {mean:.4f} ({each})", met=met)
    speed = pages / result["cpu_s"]
    ours = reader == "ours"
    report(f"{reader} pages/CPU-s: {speed:.0f}", met=speed >= PAGES_PER_CPU_S if ours else None)
    peak = result["peak_mb"]
    report(f"{reader} peak MB: {peak:.0f}", met=peak <= PEAK_MB if ours else None)


def measure_tables(python: str, reader: str, folder: Path) -> None:
    """Print precision, recall and F1 of the neighbours of cells in all tables together."""
    truths: dict[Path, Counter[Relation]] = {}
    for xml in sorted(folder.glob("*-str.xml")):
        pdf = xml.with_name(xml.name.replace("-str.xml", ".pdf"))
        # us-011b is another opinion about us-011a.
        if pdf.exists():
            truths[pdf] = true_relations(xml.read_text("utf-8"))
    result = extract(python, reader, list(truths))
    expected, found = Counter[Relation](), Counter[Relation]()
    scores = []
    for number, (file, true) in enumerate(truths.items()):
        tables = [table for page in result["files"][number]["tables"] for table in page]
        relations = found_relations(tables)
        scores.append((file.stem, *f1(true, relations)))
        for name_, counts in ((expected, true), (found, relations)):
            name_.update({(f"{number} {a}", b, d): n for (a, b, d), n in counts.items()})
    precision, recall, score = f1(expected, found)
    mean = sum(one[-1] for one in scores) / len(scores)
    report(
        f"{reader} tables: adjacency F1 {score:.3f} (precision {precision:.3f}, recall"
        f" {recall:.3f}); mean of the documents' F1 {mean:.3f}",
        met=score >= ADJACENCY_F1 if reader == "ours" else None,
    )


def measure_places(folder: Path, target: float | None = None) -> None:
    """Print the shares of lines, and of whole blocks, that the file still says at their places."""
    lines, blocks = [], []
    for path in sorted(folder.glob("*.pdf")):
        with path.open("rb") as file, closing(PdfFile(file)) as opened:
            for page in PdfReader().read(BytesIO(path.read_bytes())):
                for block in page.blocks if isinstance(page, Page) else ():
                    same = [
                        run.box is not None
                        and is_same_text(
                            page.text[run.start : run.end], opened.text_in(page.number, run.box)
                        )
                        for run in block.runs
                    ]
                    lines += same
                    blocks.append(all(same))
    share = sum(blocks) / len(blocks)
    report(
        f"places of {folder.name} verified: {share:.4f} of {len(blocks)} blocks,"
        f" {sum(lines) / len(lines):.4f} of {len(lines)} lines and cells",
        met=share >= target if target else None,
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--peers", metavar="PYTHON", help="interpreter with the peers installed")
    arguments = parser.parse_args()
    contenders = [("ours", sys.executable)]
    contenders += [(name, arguments.peers) for name in PEERS if arguments.peers]
    for reader, python in contenders:
        measure_manuals(python, reader, arguments.folder / "manuals")
    measure_places(arguments.folder / "manuals", VERIFIED)
    measure_places(arguments.folder / "icdar-2013-us")
    for reader, python in contenders:
        if reader in ("ours", "pdfplumber"):
            measure_tables(python, reader, arguments.folder / "icdar-2013-us")


if __name__ == "__main__":
    main()
