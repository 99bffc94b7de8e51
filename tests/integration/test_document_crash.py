"""A run over documents is killed with SIGKILL at any moment: nothing is lost or doubled."""

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from rag_resources.core.extraction_config import ExtractionConfig
from rag_resources.database.migrations import migrate
from rag_resources.database.pool import Database
from rag_resources.documents.applying import apply_window
from rag_resources.documents.arrival import arrive
from rag_resources.documents.extracting import extract_window
from rag_resources.documents.folder import folder_files
from rag_resources.files import LocalFiles
from tests.corpus import ALWAYS
from tests.pdf_files import PROSE, draw_lines, pdf_of, wrapped

KILLS = 4
ROUNDS = int(os.environ.get("DOCUMENT_KILLS", "4")) // KILLS
"""Databases, of `KILLS` each; `make crash` sets more."""
LIMITS = ExtractionConfig(pages=4)
RUN = """
import sys
from pathlib import Path
from rag_resources.database.pool import Database
from tests.integration.test_document_crash import run
with Database(sys.argv[1]) as database:
    print("ready", flush=True)
    run(database, Path(sys.argv[2]))
"""
CONTENT = {
    "documents": "SELECT title, page_count, text_sha256, file_sha256, status FROM documents",
    "addresses": "SELECT address, file_sha256 FROM document_addresses",
    "pages": "SELECT title, page_number, text, blocks::text FROM document_pages AS p "
    "INNER JOIN documents AS d ON d.id = p.document_id",
    "failures": "SELECT title, page_number, code FROM document_failures AS f "
    "INNER JOIN documents AS d ON d.id = f.document_id",
    "notes": "SELECT external_id, title, content, section_index, heading_path FROM notes",
    "spans": "SELECT n.external_id, s.start_char, s.end_char, s.page_number, s.page_start "
    "FROM note_spans AS s INNER JOIN notes AS n ON n.id = s.note_id",
    "readings": "SELECT title, state FROM document_extractions AS e "
    "INNER JOIN documents AS d ON d.id = e.document_id",
    "waiting": "SELECT extraction_id FROM extracted_pages",
}


def run(database: Database, folder: Path) -> None:
    """All that a run does with documents."""
    files = LocalFiles(folder.parent / "files")
    found = folder_files(folder)
    arrive(database, files, found, tenant="ana", source="docs", config=LIMITS)
    extract_window(database, files, ALWAYS, LIMITS, tenant="ana")
    apply_window(database, ALWAYS, tenant="ana")


def content(database: Database) -> dict[str, list[str]]:
    """What the database holds of documents, without ids and times."""
    with database.transaction() as connection:
        return {
            name: sorted(str(tuple(row)) for row in connection.execute(query))
            for name, query in CONTENT.items()
        }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Documents of each kind: good, cut off at a limit, damaged, and the same text twice."""
    made = tmp_path / "docs"
    made.mkdir()
    for number in range(1):
        lines = wrapped(f"Plan número {number}. {PROSE}", 70)
        pages: list[Callable[[Any], Any]] = [
            lambda canvas, lines=lines: draw_lines(canvas, lines, 60, 80)
        ] * 2
        (made / f"plan_{number}.pdf").write_bytes(pdf_of(*pages).getvalue())
    (made / "largo.txt").write_text("\f".join(f"Página {n}." for n in range(9)), "utf-8")
    (made / "roto.pdf").write_bytes(b"%PDF-1.7\nnada")
    (made / "una.txt").write_text("El mismo texto.", "utf-8")
    (made / "otra.md").write_text("El mismo texto.\n", "utf-8")
    return made


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_killed_runs_leave_every_document_whole_and_once(
    database: Database, create_database: Callable[..., str], folder: Path, seed: int
) -> None:
    """In the end the database is that of a run that nobody killed."""
    unharmed_url = create_database()
    migrate(unharmed_url)
    with Database(unharmed_url) as unharmed:
        started = time.monotonic()
        run(unharmed, folder)
        duration_s = time.monotonic() - started
        expected = content(unharmed)
    assert len(expected["documents"]) == 4
    chance = random.Random(20 + seed)
    url = database._dsn
    for kill in range(KILLS):
        with subprocess.Popen(
            [sys.executable, "-c", RUN, url, str(folder)], stdout=subprocess.PIPE
        ) as process:
            assert process.stdout
            assert process.stdout.readline() == b"ready\n"
            try:
                process.wait(duration_s * (kill + chance.random()) / KILLS)
            except subprocess.TimeoutExpired:
                children = psutil.Process(process.pid).children()
                process.kill()
                psutil.wait_procs(children, timeout=10)
                assert not [child for child in children if child.is_running()]
        found = content(database)
        for name in ("notes", "pages", "spans"):
            assert set(found[name]) <= set(expected[name]), name
            assert len(set(found[name])) == len(found[name]), name
    run(database, folder)
    assert content(database) == expected
    run(database, folder)
    assert content(database) == expected
