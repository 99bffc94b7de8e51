"""Lines of a benchmark's report, with its verdict on each target."""

import sys


def report(text: str, *, met: bool | None = None) -> None:
    """Print a line, and whether its target was met if it has one."""
    verdict = {None: "", True: "  [met]", False: "  [MISSED]"}[met]
    sys.stdout.write(f"{text}{verdict}\n")
    sys.stdout.flush()
