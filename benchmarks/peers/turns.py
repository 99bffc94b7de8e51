"""Speed with questions that people ask: contenders take turns, question by question.

    python -m benchmarks.peers.turns FILE [--passages 2000 100000] [--peers NAME …]
        [--ours NAME …] [--questions N] [--home FOLDER] [--python PATH]
        [--markdown FILE]

The corpus is that of `shuffled`, the questions are those of FILE, in the format of SQuAD. All
contenders run at once, each in a process and a database of its own, and are asked one after
another, each question in another order: a busy moment hits all of them. Processor time is counted
on both sides. A home keeps the databases, so that the next run begins with the questions.
"""

import argparse
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import psutil

from benchmarks.homes import home_folder
from benchmarks.peers.contender import ALIKE, CONTENDERS, OUR_OWN, WINDOWED
from benchmarks.peers.running import REPOSITORY
from benchmarks.peers.shuffled import save_shuffled
from benchmarks.peers.turns_targets import Measured, targets_table
from benchmarks.peers.worker import CLIENTS, Request
from benchmarks.tables import Table, markdown, show
from rag_resources.cli.output import note
from rag_resources.core.evaluation import percentiles
from rag_resources.database.server import EmbeddedServer
from rag_resources.evaluation.question_sets import read_question_set
from rag_resources.providers.registry import build_embedder

MODEL = "e5_small"
WARM_UP = 60
QUESTIONS = 400
ROUNDS = 2
"""Of the eight clients."""
INTERPRETER = REPOSITORY / ".venv-peers" / "bin" / "python"
CAREFUL = [name for name, entry in CONTENDERS.items() if entry.careful and name not in OUR_OWN]


@dataclass
class Costs:
    """What one contender took; milliseconds a question, without those of the warm-up."""

    wall_ms: list[float] = field(default_factory=list)
    client_ms: list[float] = field(default_factory=list)
    server_ms: list[float] = field(default_factory=list)
    ingest_s: float | None = None
    rate: float = 0.0
    rate_cpu_ms: float = 0.0
    failures: int = 0

    @property
    def figures(self) -> Measured:
        """What targets are about."""
        return Measured(percentiles(self.wall_ms).p95_ms, self.rate, self.ingest_s)


class Player:
    """A contender in a process that waits for commands.

    Args:
        name: In `CONTENDERS`.
        request: What its process is given.
        python: Its interpreter.
    """

    def __init__(self, name: str, request: Request, python: Path) -> None:
        folder = Path(request.folder)
        path = folder / "request.json"
        path.write_text(json.dumps(asdict(request)), encoding="utf-8")
        self.name = name
        self.costs = Costs()
        self._process = subprocess.Popen(
            [
                *(str(python), "-m", "benchmarks.peers.worker"),
                *(str(path), str(folder / "result.json")),
            ],
            env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def do(self, task: str, value: object = None) -> dict[str, Any]:
        """Have it do one thing, and return what it says of it."""
        if self._process.stdin is None or self._process.stdout is None:
            raise SystemExit(f"{self.name}: no pipes")
        self._process.stdin.write(json.dumps({"do": task, "value": value}) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise SystemExit(f"{self.name} ended")
        done: dict[str, Any] = json.loads(answer)
        return done

    def end(self) -> None:
        """End its process."""
        if self._process.stdin:
            self._process.stdin.close()
        self._process.wait(60)


class ServerTime:
    """The processor time of a server's processes."""

    def __init__(self, server: EmbeddedServer) -> None:
        pid = server.status().pid
        if pid is None:
            raise ValueError("the server does not run")
        self._postmaster = psutil.Process(pid)

    def ms(self) -> dict[int, float]:
        """Return the milliseconds of each process so far, by its id."""
        return {child.pid: _run_ms(child.pid) for child in self._postmaster.children()}

    def since(self, before: dict[int, float]) -> float:
        """Return the milliseconds of all processes since an earlier reading."""
        return sum(value - before.get(pid, 0.0) for pid, value in self.ms().items())


def _run_ms(pid: int) -> float:
    """Milliseconds that a process ran; `cpu_times` counts hundredths of a second."""
    try:
        told = Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii")
    except OSError:
        return 0.0
    return int(told.split()[0]) / 1e6


def measure(server: EmbeddedServer, players: Sequence[Player], questions: Sequence[int]) -> None:
    """Ask every player every question, in turns; then by eight clients, in turns too."""
    busy = ServerTime(server)
    for number, question in enumerate(questions):
        offset = number % len(players)
        for player in (*players[offset:], *players[:offset]):
            before = busy.ms()
            told = player.do("ask", question)
            if number < WARM_UP:
                continue
            player.costs.server_ms.append(busy.since(before))
            player.costs.wall_ms.append(told["wall_ms"])
            player.costs.client_ms.append(told["client_ms"])
            player.costs.failures += bool(told["error"])
    for _ in range(ROUNDS):
        for player in players:
            before = busy.ms()
            told = player.do("clients", list(questions))
            player.costs.rate += told["rate"] / ROUNDS
            spent = busy.since(before) + told["client_ms"]
            player.costs.rate_cpu_ms += spent / len(questions) / ROUNDS
            player.costs.failures += told["failures"]


def table_of(title: str, players: Sequence[Player]) -> Table:
    """One row a contender."""
    rows = []
    for player in players:
        costs = player.costs
        wall = percentiles(costs.wall_ms)
        asked = len(costs.wall_ms)
        rows.append(
            (
                CONTENDERS[player.name].title,
                f"{wall.p50_ms:.1f}",
                f"{wall.p95_ms:.1f}",
                f"{sum(costs.client_ms) / asked:.1f}",
                f"{sum(costs.server_ms) / asked:.1f}",
                f"{costs.rate:.0f}",
                f"{costs.rate_cpu_ms:.1f}",
                "" if costs.ingest_s is None else f"{costs.ingest_s:.1f}",
                str(costs.failures),
            )
        )
    columns = (
        "contender",
        "p50 ms",
        "p95 ms",
        "client ms of processor",
        "server ms of processor",
        f"questions/s of {CLIENTS} clients",
        "ms of processor a question there",
        "ingestion s",
        "failures",
    )
    return Table(title, columns, tuple(rows))


@contextmanager
def playing(
    asked: argparse.Namespace, server: EmbeddedServer, home: Path, workload: Path
) -> Iterator[list[Player]]:
    """Start the contenders on one workload, indexed unless they are."""
    with ExitStack() as stack:
        players = []
        for name in asked.contenders:
            database = f"{workload.name}_{name}"
            server.ensure_database(database)
            folder = home / database
            folder.mkdir(exist_ok=True)
            request = Request(name, "serve", server.dsn(database), str(workload), str(folder))
            python = Path(sys.executable) if name in OUR_OWN else asked.python.absolute()
            player = Player(name, request, python)
            stack.callback(player.end)
            done = folder / "indexed"
            if not done.exists():
                seconds = player.do("ingest")["seconds"]
                done.write_text(str(seconds), encoding="ascii")
                note(f"{database}: {seconds:.1f} s")
            told = done.read_text(encoding="ascii")
            player.costs.ingest_s = float(told) if told else None
            players.append(player)
        yield players


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers.turns", description=__doc__)
    parser.add_argument("data", type=Path, metavar="FILE", help="in the format of SQuAD")
    parser.add_argument("--passages", type=int, nargs="*", default=[2_000, 100_000])
    parser.add_argument("--peers", nargs="*", choices=CAREFUL, default=CAREFUL)
    parser.add_argument("--ours", nargs="+", choices=OUR_OWN, default=[ALIKE, WINDOWED])
    parser.add_argument("--questions", type=int, default=QUESTIONS, help="besides the warm-up")
    parser.add_argument("--home", type=Path, help="folder that keeps the databases")
    parser.add_argument("--python", type=Path, default=INTERPRETER, help="the peers' interpreter")
    parser.add_argument("--markdown", type=Path, help="file for the tables")
    asked = parser.parse_args(argv)
    if asked.peers and not asked.python.exists():
        parser.error(f"{asked.python} does not exist: make bench-peers makes it")
    asked.contenders = [*asked.ours, *asked.peers]
    return asked


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print."""
    asked = arguments(argv)
    tables = []
    with home_folder(asked.home) as home:
        server = EmbeddedServer(home)
        server.up()
        try:
            for passages in asked.passages:
                workload = home / f"shuffled_{passages}"
                if not workload.exists():
                    dataset = read_question_set(asked.data, paragraphs_per_note=1)
                    save_shuffled(workload, passages, dataset, build_embedder(MODEL))
                with playing(asked, server, home, workload) as players:
                    count = players[0].do("describe")
                    order = random.Random(passages).sample(
                        range(count["questions"]), WARM_UP + asked.questions
                    )
                    measure(server, players, order)
                    title = f"{count['passages']:,} passages of real sentences, real questions"
                    tables.append(table_of(title, players))
                    figures = {player.name: player.costs.figures for player in players}
                    tables.append(targets_table(title, count["passages"], figures))
        finally:
            server.down()
    show(tables)
    if asked.markdown:
        asked.markdown.write_text(markdown(tables), encoding="utf-8")


if __name__ == "__main__":
    main()
