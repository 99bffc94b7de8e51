"""The console output of the main job, to a file and to a terminal."""

from pathlib import Path

from rich.console import Console

from rag_assets.main_job_console import tell_phase
from rag_resources.core.messages import Message


def test_a_log_has_a_line_when_a_phase_begins(tmp_path: Path) -> None:
    """At once, not when the buffer is full; a terminal shows progress instead."""
    path = tmp_path / "run.log"
    with path.open("w", encoding="utf-8") as log:
        tell_phase(Console(file=log), Message.PROGRESS_INDEXING)
        assert path.read_text("utf-8") == f"{Message.PROGRESS_INDEXING}\n"
        tell_phase(Console(file=log, force_terminal=True), Message.PROGRESS_INDEXING)
        assert path.read_text("utf-8") == f"{Message.PROGRESS_INDEXING}\n"
