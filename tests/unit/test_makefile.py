"""What `make` tells a person who waits for it."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_setup_says_how_long_it_takes_before_it_installs(tmp_path: Path) -> None:
    """And what to do next at its end."""
    command = ["make", "--dry-run", "setup", f"VENV={tmp_path / 'new'}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    said, installed = (done.stdout.index(text) for text in ("1,7 GB", "pip install"))
    assert said < installed < done.stdout.index("make run")


def progress(pip_output: str) -> subprocess.CompletedProcess[str]:
    """Show what `make setup` shows while pip writes something."""
    show = 'show: ; @printf "%s" "$$SETUP_PROGRESS"'
    command = ["make", "--no-print-directory", "--eval", show, "show"]
    script = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return subprocess.run(
        [sys.executable, "-c", script],
        input=pip_output,
        capture_output=True,
        text=True,
        check=False,
    )


def test_setup_shows_a_few_lines_for_hundreds_of_pip() -> None:
    """So that nobody waits before a silent terminal, nor reads a wall of names."""
    downloads = "".join(f"Collecting p{n}\n  Downloading p{n}.whl\n" for n in range(60))
    done = progress(f"Obtaining file\n{downloads}Installing collected packages: p0, p1\nDone\n")
    assert done.returncode == 0
    first, second, last = done.stdout.splitlines()
    assert (first.strip(), second.strip()) == ("25…", "50…")
    assert last.strip().startswith("60. ")


def test_setup_fails_if_pip_does() -> None:
    assert progress("Collecting p\nFAILED\n").returncode == 1
