"""Kills runs over documents at random moments: `python -m tests.crash.documents --kills 50`.

In the end the database is that of a run that nobody killed. Kills of indexing are in `harness`.
"""

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from rag_resources.core.extraction_config import ExtractionConfig
from rag_resources.core.types import TimeWindow
from rag_resources.database.migrations import migrate
from rag_resources.database.pool import Database
from rag_resources.database.server import EmbeddedServer
from rag_resources.documents.applying import apply_window
from rag_resources.documents.arrival import arrive
from rag_resources.documents.extracting import extract_window
from rag_resources.documents.folder import folder_files
from rag_resources.files import LocalFiles
from tests.corpus import ALWAYS
from tests.pdf_files import PROSE, draw_lines, pdf_of, wrapped

KILLS_A_DATABASE = 10
LIMITS = ExtractionConfig(pages=4)
WINDOW: TimeWindow = ALWAYS
DOCUMENTS = 4
"""How many documents `write_folder` makes: two of its files have the same text."""

_RUN = """
import sys
from pathlib import Path
from rag_resources.database.pool import Database
from tests.crash.documents import run
with Database(sys.argv[1]) as database:
    print("ready", flush=True)
    run(database, Path(sys.argv[2]))
"""
_CONTENT = {
    "documents": "SELECT title, page_count, text_sha256, file_sha256, status FROM documents",
    "addresses": "SELECT address, file_sha256 FROM document_addresses",
    "pages": "SELECT title, page_number, text, blocks::text FROM document_pages AS p "
    "INNER JOIN documents AS d ON d.id = p.document_id",
    "failures": "SELECT title, page_number, reason::text FROM document_failures AS f "
    "INNER JOIN documents AS d ON d.id = f.document_id",
    "notes": "SELECT external_id, title, content, section_index, heading_path FROM notes",
    "spans": "SELECT n.external_id, s.start_char, s.end_char, s.page_number, s.page_start "
    "FROM note_spans AS s INNER JOIN notes AS n ON n.id = s.note_id",
    "readings": "SELECT title, state FROM document_extractions AS e "
    "INNER JOIN documents AS d ON d.id = e.document_id",
    "waiting": "SELECT extraction_id FROM extracted_pages",
}
_NEVER_DOUBLED = ("notes", "pages", "spans")


@dataclass
class Killed:
    """What became of the killed runs.

    Attributes:
        ended: Runs that had ended before their kill.
        problems: What was lost or doubled, or lived on; empty if all is well.
    """

    kills: int = 0
    ended: int = 0
    problems: list[str] = field(default_factory=list)


def run(database: Database, folder: Path) -> None:
    """Do all that a run does with documents."""
    files = LocalFiles(folder.parent / "files")
    found = folder_files(folder)
    arrive(database, files, found, tenant="ana", source="docs", config=LIMITS)
    extract_window(database, files, WINDOW, LIMITS, tenant="ana")
    apply_window(database, WINDOW, tenant="ana")


def content(database: Database) -> dict[str, list[str]]:
    """Return what the database holds of documents, without ids and times."""
    with database.transaction() as connection:
        return {
            name: sorted(str(tuple(row)) for row in connection.execute(query))
            for name, query in _CONTENT.items()
        }


def write_folder(folder: Path) -> None:
    """Write documents of each kind: good, cut off at a limit, damaged, the same text twice."""
    folder.mkdir()
    lines = wrapped(f"Plan número 0. {PROSE}", 70)

    def page(canvas: Any) -> None:
        draw_lines(canvas, lines, 60, 80)

    (folder / "plan_0.pdf").write_bytes(pdf_of(page, page).getvalue())
    (folder / "largo.txt").write_text("\f".join(f"Página {n}." for n in range(9)), "utf-8")
    (folder / "roto.pdf").write_bytes(b"%PDF-1.7\nnada")
    (folder / "una.txt").write_text("El mismo texto.", "utf-8")
    (folder / "otra.md").write_text("El mismo texto.\n", "utf-8")


def kill_documents(
    create_database: Callable[[], str], folder: Path, *, kills: int, seed: int
) -> Killed:
    """Kill runs over a folder, and compare with a run that nobody killed.

    Args:
        create_database: Creates an empty database and returns its URL.
        folder: Of `write_folder`; its parent gets the copies of the files.
        kills: How many; every tenth begins with an empty database.
        seed: Of the moments, which are spread over the time that a run takes.
    """
    killed, chance = Killed(), random.Random(seed)
    with _migrated(create_database) as unharmed:
        started = time.monotonic()
        run(unharmed, folder)
        duration_s = time.monotonic() - started
        expected = content(unharmed)
    if len(expected["documents"]) != DOCUMENTS:
        killed.problems.append(f"the run without kills: {expected['documents']}")
    while killed.kills < kills and not killed.problems:
        count = min(KILLS_A_DATABASE, kills - killed.kills)
        with _migrated(create_database) as database:
            for kill in range(count):
                _kill(database, folder, duration_s * (kill + chance.random()) / count, killed)
                _compare(content(database), expected, killed)
            for _ in range(2):
                run(database, folder)
                if content(database) != expected:
                    killed.problems.append("the run after the kills gives something else")
    return killed


def _migrated(create_database: Callable[[], str]) -> Database:
    url = create_database()
    migrate(url)
    return Database(url)


def _kill(database: Database, folder: Path, after_s: float, killed: Killed) -> None:
    """Start a run and kill it; its children must be gone soon."""
    command = [sys.executable, "-c", _RUN, database._dsn, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        if process.stdout is None or process.stdout.readline() != b"ready\n":
            killed.problems.append("a run did not start")
        killed.kills += 1
        try:
            process.wait(after_s)
            killed.ended += 1
        except subprocess.TimeoutExpired:
            children = psutil.Process(process.pid).children()
            process.kill()
            psutil.wait_procs(children, timeout=10)
            if any(child.is_running() for child in children):
                killed.problems.append("a reader outlived its run")


def _compare(found: dict[str, list[str]], expected: dict[str, list[str]], killed: Killed) -> None:
    for name in _NEVER_DOUBLED:
        if not set(found[name]) <= set(expected[name]):
            killed.problems.append(f"{name}: some are not as they should be")
        if len(set(found[name])) != len(found[name]):
            killed.problems.append(f"{name}: some are doubled")


def main() -> int:
    """Kill with a server of its own; 1 if anything was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.crash.documents", description=__doc__)
    parser.add_argument("--kills", type=int, default=50, help="kills in all (50)")
    parser.add_argument("--seed", type=int, default=20, help="of the moments (20)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rag-crash-") as home:
        # Where the user that runs the server can enter.
        Path(home).chmod(0o755)
        write_folder(Path(home, "docs"))
        server = EmbeddedServer(Path(home, "server"))
        server.up()
        try:
            killed = kill_documents(
                _creator(server), Path(home, "docs"), kills=arguments.kills, seed=arguments.seed
            )
        finally:
            server.down()
    lines = [f"{killed.kills} kills of runs over documents, {killed.ended} after their end"]
    sys.stdout.write("\n".join([*lines, *(f"PROBLEM: {each}" for each in killed.problems), ""]))
    return 1 if killed.problems else 0


def _creator(server: EmbeddedServer) -> Callable[[], str]:
    import psycopg

    names: list[str] = []

    def created() -> str:
        names.append(f"documents_{len(names)}")
        with psycopg.connect(server.dsn("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {names[-1]}")  # type: ignore[call-overload]
        return server.dsn(names[-1])

    return created


if __name__ == "__main__":
    sys.exit(main())
