"""Kills each part of the product at random moments, and checks both databases afterwards.

For every kind of `kinds.KINDS`, the work is first done undisturbed: that gives the end state and
the time it takes. Then it is done again and again; something is killed at a moment of that time;
what died is started again; and the work is repeated as a person would. The end state must be the
same, and a minute after the restart no dead run may be in progress or hold up the queue.
"""

import random
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.crash.content import Content, differences
from tests.crash.kinds import KINDS, MAIN_JOB, REPEATED, WORKS, Kind, Work, ballast, small_disk
from tests.crash.product import Product

DISK_MB = 1_500
FREED_S = 60.0
ENDED_S = 300.0
STARTED_S = 120.0
TRIES = 3
_POLL_S = 0.2


@dataclass
class Tally:
    """What came of the kills of one kind.

    Attributes:
        kind: Which.
        kills: How many hit something.
        missed: How often the work had ended before.
        freed_s: After each restart, until no dead run was in progress.
        problems: Violations; empty if all is well.
        skipped: Why nothing was killed; empty if something was.
    """

    kind: Kind
    kills: int = 0
    missed: int = 0
    freed_s: list[float] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    skipped: str = ""


def kill_product(*, kills: int, seed: int, only: Sequence[str] = ()) -> list[Tally]:
    """Kill that many times in all, each kind as often as the others.

    Args:
        kills: In all.
        seed: Of the moments.
        only: Names of kinds; empty: all.
    """
    tallies = [Tally(kind) for kind in KINDS if not only or kind.name in only]
    with tempfile.TemporaryDirectory(prefix="rag-kills-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        with small_disk(folder, DISK_MB) as is_small, Product(folder) as product:
            if not is_small:
                for tally in tallies:
                    tally.skipped = "this user may not mount a file system" * tally.kind.fills
            _Killing(product, random.Random(seed)).go([t for t in tallies if not t.skipped], kills)
    return tallies


class _Killing:
    def __init__(self, product: Product, chance: random.Random) -> None:
        self._product = product
        self._chance = chance
        self._wanted: dict[str, Content] = {}
        self._seconds: dict[str, float] = {}

    def go(self, tallies: Sequence[Tally], kills: int) -> None:
        """Go through the kinds in turn until there were so many kills."""
        self._product.server.up()
        _require(self._finish_main_job())
        self._product.start_ui()
        for number in range(kills):
            tally = tallies[number % len(tallies)]
            for _ in range(TRIES):
                if self._kill(tally):
                    break
                tally.missed += 1
            _say(f"{number + 1}. {tally.kind.name}")

    def _kill(self, tally: Tally) -> bool:
        kind, product = tally.kind, self._product
        work = WORKS[kind.work]
        if kind.work not in self._wanted:
            self._do_undisturbed(kind.work)
        product.start_ui()
        self._prepare(work)
        moment_s = self._chance.random() * self._seconds[kind.work]
        with self._at_work(work) as process:
            time.sleep(moment_s)
            if not kind.victim.strike(product, process):
                self._repeat(kind.work)
                return False
            tally.kills += 1
            where = f"{kind.name}, after {moment_s:.1f} s"
            if process:
                self._note(tally, where, self._ending(process))
        ballast(product).unlink(missing_ok=True)
        product.server.up()
        product.start_ui()
        problems = self._freed(tally)
        problems += product.wait_until_idle()
        problems += self._repeat(kind.work)
        problems += product.wait_until_idle()
        problems += differences(product.content(), self._wanted[kind.work])
        self._note(tally, where, problems)
        return True

    def _note(self, tally: Tally, where: str, problems: Sequence[str]) -> None:
        for problem in problems:
            tally.problems.append(f"{where}: {problem}")
            _say(f"PROBLEM: {tally.problems[-1]}")

    def _prepare(self, work: Work) -> None:
        self._product.wait_until_idle()
        self._product.change(work.undo)

    @contextmanager
    def _at_work(self, work: Work) -> Iterator[subprocess.Popen[bytes] | None]:
        """Start a work; yields the main job's process if it is that, once it has begun a run."""
        last = self._product.last_run()
        if work.start:
            work.start(self._product)
            self._wait_for_run_after(last)
            yield None
            return
        with self._output.open("w") as log:
            process = self._product.command("run", log)
        try:
            self._wait_for_run_after(last)
            yield process
        finally:
            process.kill()
            process.wait()

    @property
    def _output(self) -> Path:
        return self._product.folder / "main_job.log"

    def _wait_for_run_after(self, last: str | None) -> None:
        deadline = time.monotonic() + STARTED_S
        while self._product.last_run() == last:
            if time.monotonic() > deadline:
                msg = "nothing began to run"
                raise TimeoutError(msg)
            time.sleep(_POLL_S)

    def _do_undisturbed(self, name: str) -> None:
        work = WORKS[name]
        self._prepare(work)
        with self._at_work(work) as process:
            started = time.monotonic()
            if process:
                process.wait()
            _require(self._product.wait_until_idle())
            self._seconds[name] = time.monotonic() - started
        self._wanted[name] = self._product.content()
        _say(f"{name}: {self._seconds[name]:.0f} s undisturbed")

    def _ending(self, process: subprocess.Popen[bytes]) -> list[str]:
        """How the main job ended whose database went: by itself, and in words for its reader."""
        try:
            process.wait(ENDED_S)
        except subprocess.TimeoutExpired:
            return ["the main job goes on without a database"]
        return [f"the main job says: {line}" for line in self._product.said(self._output)]

    def _freed(self, tally: Tally) -> list[str]:
        """Wait until no dead run is in progress; return those that are after `FREED_S`."""
        started = time.monotonic()
        while dead := self._product.dead_runs():
            if time.monotonic() - started > FREED_S:
                return [f"after {FREED_S:.0f} s {run}" for run in dead]
            time.sleep(_POLL_S)
        tally.freed_s.append(time.monotonic() - started)
        return []

    def _repeat(self, name: str) -> list[str]:
        """Do a work again, as a person would who saw it fail."""
        product, work = self._product, WORKS[name]
        if work is MAIN_JOB:
            return self._finish_main_job()
        last = product.last_run()
        REPEATED.get(name, work.start)(product)
        self._wait_for_run_after(last)
        return []

    def _finish_main_job(self) -> list[str]:
        with self._output.open("w") as log:
            code = self._product.command("run", log).wait()
        said = self._output.read_text("utf-8", errors="replace")
        return [f"a main job after it ended with {code}: {said}"] if code else []


def table(tallies: Sequence[Tally]) -> str:
    """Say it in lines for a person."""
    lines = [f"{'what was killed':24} kills  too late  freed after s  problems"]
    for tally in tallies:
        freed = f"{max(tally.freed_s):.0f} at most" if tally.freed_s else "–"
        lines.append(
            f"{tally.kind.name:24} {tally.kills:5}  {tally.missed:8}  {freed:>13}  "
            f"{(tally.skipped and 'SKIPPED: ' + tally.skipped) or len(tally.problems)}"
        )
    lines += [f"PROBLEM: {problem}" for tally in tallies for problem in tally.problems]
    return "\n".join([*lines, ""])


def _require(problems: Sequence[str]) -> None:
    """Raise if what nobody disturbed has problems."""
    if problems:
        raise RuntimeError("\n".join(problems))


def _say(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - a command that takes hours says how far it is
