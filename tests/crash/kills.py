"""Kills each part of the product at random moments, and checks both databases afterwards.

For every kind of `kinds.KINDS`, the work is first done undisturbed: that gives the end state and
the time it takes. Then it is done again and again, from one copy of the database. Something is
killed at a moment of that time, and what died is started again: a minute later no dead run may be
in progress or hold up the queue. The work is begun again as a person would, and killed again, up to
`SERIES` times; then it may come to its end, which must be the undisturbed one.
"""

import random
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from rag_resources.database.locate import APPLICATION_DATABASE, DAGSTER_DATABASE
from tests.crash.content import Content, differences
from tests.crash.disk import ballast, small_disk
from tests.crash.kinds import KINDS, MAIN_JOB, REPEATED, WORKS, Kind, Work
from tests.crash.product import Product
from tests.crash.tallies import Kill, KillLog, table

DISK_MB = 1_500
FREED_S = 60.0
ENDED_S = 300.0
STARTED_S = 240.0
TRIES = 5
SERIES = 3
"""Kills before a work may come to its end: most of the time goes into the work itself."""
_DONE, _DAGSTER_DONE = "done", "dagster_done"
_POLL_S = 0.2


def kill_product(*, kills: int, seed: int, log: Path, only: Sequence[str] = ()) -> tuple[str, bool]:
    """Kill until there were so many kills in all, those in the log included.

    Args:
        kills: In all, each kind as often as the others.
        seed: Of the moments.
        log: Of the kills so far; gets a line for each.
        only: Names of kinds; empty: all.

    Returns:
        The table of all kills, and whether all was well.
    """
    done = KillLog(log)
    kinds = {kind.name: kind for kind in KINDS if not only or kind.name in only}
    skipped: list[str] = []
    if len(done.kills) < kills:
        with small_disk(DISK_MB) as disk, Product(disk.folder) as product:
            skipped = [name for name, kind in kinds.items() if kind.fills and not disk.is_small]
            tried = [kind for name, kind in kinds.items() if name not in skipped]
            _Killing(product, done, seed).go(tried, kills)
    return table(done, list(kinds), skipped), not done.problems()


class _Killing:
    def __init__(self, product: Product, log: KillLog, seed: int) -> None:
        self._product = product
        self._log = log
        self._seed = seed
        self._wanted: dict[str, Content] = {}
        self._seconds: dict[str, float] = {}

    def go(self, kinds: Sequence[Kind], kills: int) -> None:
        """Go through the kinds in turn until there were so many kills."""
        product, by_name = self._product, {kind.name: kind for kind in kinds}
        product.server.up()
        _require(self._finish_main_job())
        product.start_ui()
        product.automate(False)
        _require(product.wait_until_idle())
        product.save(APPLICATION_DATABASE, _DONE)
        product.save(DAGSTER_DATABASE, _DAGSTER_DONE)
        while len(self._log.kills) < kills:
            kind = by_name[self._log.next_kind(list(by_name))]
            most = min(SERIES, -(-kills // len(by_name)), kills - len(self._log.kills))
            series = self._series(kind, most)
            before = len(self._log.kills)
            self._log.add(series)
            for number, kill in enumerate(series, before + 1):
                _say(f"{number}. {kill}")
            if any(kill.problems for kill in series):
                self._start_over()

    def _start_over(self) -> None:
        """Forget what a problem left behind in Dagster's tables."""
        self._product.stop_ui()
        self._product.restore(DAGSTER_DATABASE, _DAGSTER_DONE)
        self._product.start_ui()

    def _series(self, kind: Kind, most: int) -> list[Kill]:
        """Kill up to so many times while a work is done; problems of its end are the last kill's.

        Returns:
            At least one; fewer than asked for if the work came to its end.
        """
        product, started = self._product, time.monotonic()
        work = WORKS[kind.work]
        product.start_ui()
        product.automate(work.automated)
        if kind.work not in self._wanted:
            self._do_undisturbed(kind.work)
        chance = random.Random(f"{self._seed} {kind.name} {self._log.count(kind.name)}")
        series: list[Kill] = []
        missed = 0
        while len(series) < most and missed < TRIES:
            if not series:
                self._prepare(kind.work)
            # What was killed before has done a part of it; a machine that was busy is faster now.
            moment_s = chance.random() * self._seconds[kind.work] / (1 + len(series)) / 2**missed
            problems = self._strike(kind, moment_s)
            if problems is None:
                missed += 1
                if series:
                    break
                continue
            freed_s, held = self._restart()
            found = [*problems, *held]
            seconds = round(time.monotonic() - started)
            series.append(Kill(kind.name, round(moment_s, 1), missed, freed_s, found, seconds))
            started, missed = time.monotonic(), 0
        if not series:
            return [Kill(kind.name, 0.0, TRIES, None, ["nothing was there to be killed"])]
        found = [*series[-1].problems, *self._finish(kind.work)]
        seconds = series[-1].seconds + round(time.monotonic() - started)
        return [*series[:-1], replace(series[-1], problems=found, seconds=seconds)]

    def _strike(self, kind: Kind, moment_s: float) -> list[str] | None:
        """Start the work and kill; return what was wrong at once, None if all had ended."""
        product, work = self._product, WORKS[kind.work]
        with self._at_work(work) as process:
            time.sleep(moment_s)
            if not kind.victim.strike(product, process):
                return None
            return self._ending(process) if process else []

    def _restart(self) -> tuple[float | None, list[str]]:
        """Start what died; return the seconds until no dead run is in progress, and problems."""
        product = self._product
        ballast(product.folder).unlink(missing_ok=True)
        product.server.up()
        product.start_ui()
        return self._freed()

    def _finish(self, name: str) -> list[str]:
        """Repeat a work to its end; return how that differs from the undisturbed one."""
        product = self._product
        problems = product.wait_until_idle()
        problems += self._repeat(name)
        problems += product.wait_until_idle()
        problems += differences(product.content(), self._wanted[name])
        return problems

    def _prepare(self, name: str) -> None:
        self._product.wait_until_idle()
        self._product.restore(APPLICATION_DATABASE, _before(name))

    @contextmanager
    def _at_work(self, work: Work) -> Iterator[subprocess.Popen[bytes] | None]:
        """Start a work; yields the main job's process if it is that, once it has begun a run."""
        last = self._product.last_run()
        if work.start:
            self._start(work.start)
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
        product, work = self._product, WORKS[name]
        product.wait_until_idle()
        product.restore(APPLICATION_DATABASE, _DONE)
        product.change(work.undo)
        product.save(APPLICATION_DATABASE, _before(name))
        before = product.content()
        with self._at_work(work) as process:
            started = time.monotonic()
            if process:
                process.wait()
            _require(product.wait_until_idle())
            self._seconds[name] = time.monotonic() - started
        self._wanted[name] = product.content()
        if not differences(before, self._wanted[name]):
            msg = f"{name}: nothing was done"
            raise RuntimeError(msg)
        _say(f"{name}: {self._seconds[name]:.0f} s undisturbed")

    def _ending(self, process: subprocess.Popen[bytes]) -> list[str]:
        """How the main job ended whose database went: by itself, and in words for its reader."""
        try:
            process.wait(ENDED_S)
        except subprocess.TimeoutExpired:
            return ["the main job goes on without a database"]
        return [f"the main job says: {line}" for line in self._product.said(self._output)]

    def _freed(self) -> tuple[float | None, list[str]]:
        """Wait until no run is dead or waits for nothing; return those that are after `FREED_S`."""
        started = time.monotonic()
        while held := self._product.dead_runs() or self._product.is_stuck():
            if time.monotonic() - started > FREED_S:
                return None, [f"after {FREED_S:.0f} s {run}" for run in held]
            time.sleep(_POLL_S)
        return round(time.monotonic() - started, 1), []

    def _repeat(self, name: str) -> list[str]:
        """Do a work again, as a person would who saw it fail."""
        product, work = self._product, WORKS[name]
        if work is MAIN_JOB:
            return self._finish_main_job()
        last = product.last_run()
        self._start(REPEATED.get(name, work.start))
        self._wait_for_run_after(last)
        return []

    def _start(self, start: Callable[[Product], object]) -> None:
        """Ask the webserver; as a person, again if it says that it lost its database."""
        for _ in range(TRIES):
            try:
                start(self._product)
            except (AssertionError, KeyError):
                continue
            return
        msg = "the webserver starts nothing"
        raise RuntimeError(msg)

    def _finish_main_job(self) -> list[str]:
        with self._output.open("w") as log:
            code = self._product.command("run", log).wait()
        said = self._output.read_text("utf-8", errors="replace")
        return [f"a main job after it ended with {code}: {said}"] if code else []


def _before(work: str) -> str:
    """Return the copy of the database in which a work has everything to do."""
    return f"before {work}"


def _require(problems: Sequence[str]) -> None:
    """Raise if what nobody disturbed has problems."""
    if problems:
        raise RuntimeError("\n".join(problems))


def _say(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - a command that takes hours says how far it is
