"""What `make` tells a person who waits for it."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_setup_says_how_long_it_takes_before_it_installs(tmp_path: Path) -> None:
    """And pip shows its progress meanwhile."""
    command = ["make", "--dry-run", "setup", f"VENV={tmp_path / 'new'}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    said, installed = (done.stdout.index(text) for text in ("1,7 GB", "pip install"))
    assert said < installed
    assert "--quiet" not in done.stdout
