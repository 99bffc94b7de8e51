"""Whether a process lives, as others see it by its lock."""

import subprocess
import sys
from pathlib import Path

from rag_assets.runs.liveness import PROCESS_LOCK, lives, living

HOLDS = """
import sys
from pathlib import Path
from rag_assets.runs.liveness import PROCESS_LOCK, living
with living(Path(sys.argv[1])) as tags:
    print(tags[PROCESS_LOCK], flush=True)
    sys.stdin.read()
"""


def test_a_process_lives_until_it_ends_or_is_killed(tmp_path: Path) -> None:
    """Another one that lives beside it makes no difference; who ends by itself leaves nothing."""
    command = [sys.executable, "-c", HOLDS, str(tmp_path)]
    with (
        living(tmp_path) as own,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process,
    ):
        assert process.stdout is not None
        other = Path(process.stdout.readline().decode().strip())
        assert lives(other)
        process.kill()
        process.wait()
        assert not lives(other)
        assert not lives(other), "also when it is asked again"
        assert lives(Path(own[PROCESS_LOCK]))
    assert list(tmp_path.iterdir()) == [other]


def test_of_another_machine_nothing_is_known(tmp_path: Path) -> None:
    """Also if it has the same folders: its run may well be under way."""
    assert lives(tmp_path / "no-existe" / "process.lock")
    assert lives(tmp_path / "process.lock")
