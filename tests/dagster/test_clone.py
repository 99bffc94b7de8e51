"""Dagster's own commands in a fresh clone: the embedded database, and no preparation."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
import pytest
from dagster_ui import Ui, eventually, members

from rag_resources.database.ports import choose_port
from rag_resources.database.server import EmbeddedServer
from tests.databases import server_folder

ROOT = Path(__file__).parents[2]
PARTS = ("dagster.yaml", "workspace.yaml", "pyproject.toml", "rag_assets", "rag_resources")
OF_HOME = ("RAG_HOME", "DATABASE_URL", "DAGSTER_HOME", "DAGSTER_PG_URL", "NOTES_SOURCE")
DG = ("-c", "from dagster_dg_cli.cli import main; main()")
DAGSTER = ("-m", "dagster")


def started(clone: Path, arguments: Sequence[str]) -> subprocess.Popen[str]:
    """Start a command in the clone, in a session of its own."""
    return subprocess.Popen(
        [sys.executable, *arguments],
        cwd=clone,
        env={name: value for name, value in os.environ.items() if name not in OF_HOME},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


@pytest.fixture(scope="module")
def clone() -> Iterator[Path]:
    """A folder with what a clone has, and no state."""
    with TemporaryDirectory(prefix="rag-clone-", dir=server_folder()) as name:
        folder = Path(name)
        folder.chmod(0o755)
        for part in PARTS:
            (folder / part).symlink_to(ROOT / part)
        yield folder
        EmbeddedServer(folder / ".rag").down()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((*DAGSTER, "definitions", "validate", "-w", "workspace.yaml"), "passed validation"),
        ((*DG, "check", "defs"), "All definitions loaded successfully."),
        ((*DG, "list", "defs", "--assets", "notes"), "notes"),
        ((*DG, "launch", "--assets", "notes", "--partition", "2025-04-01"), "2025-04"),
    ],
    ids=["dagster definitions validate", "dg check defs", "dg list defs", "dg launch"],
)
def test_a_command_works_at_once(clone: Path, arguments: Sequence[str], said: str) -> None:
    """None needs a variable, a prepared instance or a migration."""
    process = started(clone, arguments)
    out, __ = process.communicate(timeout=300)
    assert process.returncode == 0, out
    assert said in out


@pytest.mark.parametrize(
    "arguments", [(*DAGSTER, "dev", "-w", "workspace.yaml"), (*DG, "dev")], ids=["dagster", "dg"]
)
def test_the_ui_of_dagster_itself_opens(clone: Path, arguments: Sequence[str]) -> None:
    port = choose_port(None)
    process = started(clone, (*arguments, "--port", str(port)))
    try:
        keys = [
            asset["assetKey"]["path"]
            for repository in eventually(Ui(f"http://127.0.0.1:{port}").repositories)
            for asset in repository["assetNodes"]
        ]
        assert ["notes"] in keys
        assert httpx.get(f"http://127.0.0.1:{port}/").status_code == 200
    finally:
        ended = members(process.pid)
        for member in ended:  # All at once: none tells that another one is gone.
            member.suspend()
        for member in ended:
            member.kill()
        out, __ = process.communicate()
    assert "Traceback" not in out
