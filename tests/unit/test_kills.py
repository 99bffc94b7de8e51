"""What `make crash` records and reports of its kills."""

import signal
import subprocess
import sys
from pathlib import Path

from tests.crash.disk import remove_left_disks
from tests.crash.kinds import KINDS
from tests.crash.tallies import Kill, KillLog, table

NAMES = [kind.name for kind in KINDS]


def test_what_was_skipped_and_what_was_wrong_is_seen(tmp_path: Path) -> None:
    """A skipped kind does not look like one without problems."""
    well, skipped, wrong = NAMES[:3]
    log = KillLog(tmp_path / "kills")
    for kill in (
        Kill(well, 1.0, freed_s=0.2),
        Kill(well, 2.0, missed=1, freed_s=4.4),
        Kill(wrong, 3.0, problems=["the queue stands still", "a note is missing"]),
    ):
        log.add([kill])
    _, *lines = table(log, [well, skipped, wrong], [skipped]).splitlines()
    assert lines[0].split()[-6:] == ["2", "1", "4", "at", "most", "0"]
    assert lines[1].endswith("SKIPPED: this user may not mount a file system")
    assert lines[2].split()[-1] == "1"
    assert lines[3:] == [
        f"PROBLEM: {wrong}, after 3.0 s: the queue stands still",
        f"PROBLEM: {wrong}, after 3.0 s: a note is missing",
    ]


def test_kills_go_on_after_those_in_the_log(tmp_path: Path) -> None:
    """Each kind as often as the others, the first ones first."""
    first = KillLog(tmp_path / "new" / "kills")
    kill = Kill(NAMES[0], 1.5, missed=1, freed_s=None, problems=["ñ"], seconds=9)
    first.add([kill])
    again = KillLog(tmp_path / "new" / "kills")
    assert again.kills == [kill]
    order = []
    for _ in range(len(NAMES) + 1):
        order.append(again.next_kind(NAMES))
        again.add([Kill(order[-1], 0.0)])
    assert order == [*NAMES[1:], NAMES[0], NAMES[1]]


STOPPED = """
import signal
import sys
import time
from tests.crash.disk import end_orderly_when_stopped, small_disk
signal.signal(signal.SIGTERM, signal.SIG_DFL)  # Whoever runs the tests may ignore it.
end_orderly_when_stopped()
with small_disk(1) as disk:
    print(disk.folder, flush=True)
    try:
        while True:  # A read could miss a signal that comes just before it.
            time.sleep(0.01)
    finally:
        print(flush=True)
        sys.stdin.readline()
"""


def test_a_harness_that_is_stopped_removes_its_disk() -> None:
    """Also if it is told twice; one that is killed leaves it to the next."""
    command, pipe = [sys.executable, "-c", STOPPED], subprocess.PIPE
    root = Path(__file__).parents[2]
    for stop in (signal.SIGTERM, signal.SIGKILL):
        with subprocess.Popen(command, cwd=root, stdin=pipe, stdout=pipe, text=True) as process:
            assert process.stdout is not None
            folder = Path(process.stdout.readline().strip())
            assert folder.is_dir()
            process.send_signal(stop)
            process.stdout.readline()
            process.send_signal(stop)
        assert folder.exists() is (stop is signal.SIGKILL)
    assert folder in remove_left_disks()
    assert not folder.exists()
