"""A test that is skipped for an unlisted reason fails."""

import re
import subprocess
import sys
from pathlib import Path

from tests.skips import ALLOWED

ROOT = Path(__file__).parents[2]
NAMED = """
import pytest

def test_a_name_that_is_not_utf8_is_rejected():
    pytest.skip({reason!r})

@pytest.mark.xfail
def test_that_fails():
    assert False
"""


def outcome(folder: Path, text: str) -> str:
    """Run a file of tests with the plugin, and return the last line that pytest writes."""
    (folder / "test_file.py").write_text(text, "utf-8")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "tests.skips", "-p", "no:valkey"),
            *("-c", "/dev/null", "--rootdir", str(folder), str(folder / "test_file.py")),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return re.sub(r" in .*", "", done.stdout.strip().splitlines()[-1])


def test_a_listed_test_may_be_skipped_for_its_reason_only(tmp_path: Path) -> None:
    """A test that is expected to fail is none that is skipped."""
    listed = NAMED.format(reason="the file system takes no such name")
    assert outcome(tmp_path, listed) == "1 skipped, 1 xfailed"
    assert outcome(tmp_path, NAMED.format(reason="another")) == "1 failed, 1 xfailed"


def test_what_is_listed_is_there() -> None:
    """A test that was deleted or renamed must leave the list."""
    tests = {
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"def (test_\w+)", path.read_text("utf-8"))
    }
    assert ALLOWED.keys() <= tests
