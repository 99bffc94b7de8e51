"""Kill indexing many times and report the kills and the problems: `make crash CRASHES=50`."""

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path

from rag_resources.database.server import EmbeddedServer
from tests.crash.harness import CrashReport, crash
from tests.crash.worker import STAGES


def main() -> int:
    """Run with the numbers given on the command line; 1 if anything was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("--crashes", type=int, default=50, help="kills in all (50)")
    parser.add_argument("--seed", type=int, default=1, help="of the corpus and the moments (1)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rag-crash-") as home:
        # Where the user that runs the server can enter.
        Path(home).chmod(0o755)
        server = EmbeddedServer(Path(home))
        server.up()
        try:
            report = crash(server, crashes=arguments.crashes, seed=arguments.seed)
        finally:
            server.down()
    sys.stdout.write(describe(report))
    return 1 if report.problems else 0


def describe(report: CrashReport) -> str:
    """Say it in lines for a person."""
    lines = [
        f"{report.crashes} kills in {report.seconds:.0f} s, {report.corpora} corpora, "
        f"{report.observations} observations",
        f"runs killed: {_by_stage(report.kills)}",
        f"servers killed: {_by_stage(report.server_kills)}",
        f"of these lost commits: {report.lossy_kills} ({report.lost_rows} rows, done again)",
    ]
    lines += [f"PROBLEM: {problem}" for problem in report.problems]
    return "\n".join([*lines, ""])


def _by_stage(kills: Counter[str]) -> str:
    hit = [f"{stage} {kills[stage]}" for stage in STAGES if kills[stage]]
    return f"{kills.total()} ({', '.join(hit) or 'none'})"


if __name__ == "__main__":
    sys.exit(main())
