"""`rag status` tells which of the product's programs run, whatever became of earlier ones."""

import os
import signal
from pathlib import Path

import pytest

from rag_resources.programs import FOLDER, running_programs
from tests.announced_program import running
from tests.command_line import call_rag, isolate


def test_status_tells_what_runs_and_forgets_it_when_it_ends(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    isolate(monkeypatch, tmp_path)
    home = tmp_path / "home"
    home.mkdir()
    assert call_rag(monkeypatch, capsys, "status", "--json").json["programs"] == []
    with running(home) as process:
        told = call_rag(monkeypatch, capsys, "status").out
        assert f"«rag serve» (proceso {process.pid})" in told
        assert "http://127.0.0.1:8000" in told
        [program] = call_rag(monkeypatch, capsys, "status", "--json").json["programs"]
        assert (program["command"], program["pid"]) == ("rag serve", process.pid)
        assert [path.stat().st_mode & 0o077 for path in (home / FOLDER).iterdir()] == [0]
    assert running_programs(home) == []
    assert list((home / FOLDER).iterdir()) == []


def test_what_was_killed_does_not_run_and_the_next_one_cleans_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Until then, the status names it."""
    isolate(monkeypatch, tmp_path.parent)
    monkeypatch.setenv("RAG_HOME", str(tmp_path))
    with running(tmp_path) as process:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert len(list((tmp_path / FOLDER).iterdir())) == 1
        assert running_programs(tmp_path) == []
        assert f"«rag serve» (proceso {process.pid})" in call_rag(monkeypatch, capsys, "status").err
    with running(tmp_path) as process:
        assert [program.pid for program in running_programs(tmp_path)] == [process.pid]
        assert len(list((tmp_path / FOLDER).iterdir())) == 1
