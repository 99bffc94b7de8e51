"""What `make crash` reports of its kills."""

from tests.crash.kills import Tally, table
from tests.crash.kinds import KINDS, WORKS


def test_every_kind_has_a_work_and_a_name_of_its_own() -> None:
    assert {kind.work for kind in KINDS} == set(WORKS)
    assert len({kind.name for kind in KINDS}) == len(KINDS)


def test_what_was_skipped_and_what_was_wrong_is_seen() -> None:
    """A skipped kind does not look like one without problems."""
    well, skipped, wrong = (Tally(kind) for kind in KINDS[:3])
    well.kills, well.freed_s = 3, [0.2, 4.4]
    skipped.skipped = "no file system"
    wrong.kills, wrong.problems = 2, ["the queue stands still"]
    _, first, second, third, problem = table([well, skipped, wrong]).splitlines()
    assert first.split()[-6:] == ["3", "0", "4", "at", "most", "0"]
    assert second.endswith("SKIPPED: no file system")
    assert third.split()[-1] == "1"
    assert problem == "PROBLEM: the queue stands still"
