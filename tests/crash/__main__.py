"""Kill indexing and the product many times: `make crash CRASHES=50 KILLS=100`."""

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path

from rag_resources.database.server import EmbeddedServer
from tests.crash.disk import end_orderly_when_stopped
from tests.crash.harness import CrashReport, crash
from tests.crash.kills import kill_product
from tests.crash.worker import STAGES


def main() -> int:
    """Run with the numbers given on the command line; 1 if anything was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("--crashes", type=int, default=50, help="kills in all (50)")
    parser.add_argument("--kills", type=int, default=100, help="kills of the product (100)")
    parser.add_argument("--only", action="append", default=[], help="kinds of these kills (all)")
    log = Path("build", "kills.jsonl")
    parser.add_argument("--log", type=Path, default=log, help="goes on after the kills in it")
    parser.add_argument("--seed", type=int, default=1, help="of the corpus and the moments (1)")
    arguments = parser.parse_args()
    end_orderly_when_stopped()
    wrong = False
    if arguments.crashes:
        report = _crash(arguments.crashes, arguments.seed)
        sys.stdout.write(describe(report))
        wrong = bool(report.problems)
    if arguments.kills:
        said, is_well = kill_product(
            kills=arguments.kills, seed=arguments.seed, log=arguments.log, only=arguments.only
        )
        sys.stdout.write(said)
        wrong |= not is_well
    return 1 if wrong else 0


def _crash(crashes: int, seed: int) -> CrashReport:
    """Kill indexing and a server of its own."""
    with tempfile.TemporaryDirectory(prefix="rag-crash-") as home:
        # Where the user that runs the server can enter.
        Path(home).chmod(0o755)
        server = EmbeddedServer(Path(home))
        server.up()
        try:
            return crash(server, crashes=crashes, seed=seed)
        finally:
            server.down()


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
