"""A run over documents is killed with SIGKILL at any moment: nothing is lost or doubled.

`make crash` kills more.
"""

from collections.abc import Callable
from pathlib import Path

from tests.crash.documents import kill_documents, write_folder

KILLS = 4


def test_killed_runs_leave_every_document_whole_and_once(
    create_database: Callable[..., str], tmp_path: Path
) -> None:
    """In the end the database is that of a run that nobody killed."""
    write_folder(tmp_path / "docs")
    killed = kill_documents(create_database, tmp_path / "docs", kills=KILLS, seed=20)
    assert killed.problems == []
    assert killed.kills == KILLS
