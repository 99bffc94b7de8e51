"""A simulation of many workers that drain one queue of notes: where PostgreSQL becomes the limit.

    python -m tests.benchmarks.queue_simulation [--workers 1 10 100 1000] [--processors 2 8 32]

A worker claims a batch, embeds it and writes it, again and again (`indexing.embed`). Claiming and
writing take a processor of PostgreSQL, for which the workers queue; embedding takes none. A claim
passes over the notes that others hold. Now and then a worker dies: its batch is done again by
another, and it comes back after the time in which the launcher notices. The costs are those that
`bench_drainers` measures. What is not simulated: locks other than claims, the write-ahead log, the
network.
"""

import argparse
import heapq
import random
from collections import deque
from dataclasses import dataclass

from rag_resources.indexing.embed import BATCH_NOTES
from tests.benchmarks.targets import report

CLAIM_MS = 1.6
HELD_MS = 2.0
WRITE_MS = 9.8
EMBED_MS = 56.0


@dataclass(frozen=True)
class Costs:
    """What a worker's steps take.

    Attributes:
        claim_ms: Of a claim while nobody holds a note.
        held_ms: What a claim takes longer for every thousand notes that others hold.
        write_ms: Of reading and writing, processor time of PostgreSQL for a note.
        embed_ms: Of the model, for a note; it varies by `spread` of that.
        hours_between_deaths: Of a worker, on average.
        recovery_s: Until a worker that died is back.
    """

    claim_ms: float
    held_ms: float
    write_ms: float
    embed_ms: float
    spread: float = 0.3
    hours_between_deaths: float = 24.0
    recovery_s: float = 60.0


@dataclass(frozen=True)
class Outcome:
    """What the workers did in the time simulated.

    Attributes:
        busy: Share of the time of PostgreSQL's processors.
        wait_ms: Mean wait for one of these, a step.
        lost: Share of the embedded notes that had to be embedded again, because a worker died.
    """

    notes_a_second: float
    busy: float
    wait_ms: float
    lost: float


class Fleet:
    """Some workers and a PostgreSQL.

    Args:
        workers: How many.
        processors: Of PostgreSQL.
        costs: Of the steps.
        seed: Of the times that vary.
    """

    def __init__(self, workers: int, processors: int, costs: Costs, seed: int = 1) -> None:
        self._costs = costs
        self._random = random.Random(seed)
        self._free = processors
        self._processors = processors
        self._queue: deque[tuple[float, int, str]] = deque()
        self._events: list[tuple[float, int, int, str]] = []
        self._number = 0
        self._holding = 0
        self._written = self._lost = 0
        self._busy_s = self._waited_s = 0.0
        self._steps = 0
        for worker in range(workers):
            # Not all at the same moment.
            self._at(self._random.random() * self._embed_s(), worker, "claim")

    def run(self, seconds: float) -> Outcome:
        """Simulate; the first quarter, in which the workers spread out, does not count."""
        begun = seconds / 4
        counted = False
        while self._events[0][0] < seconds:
            now, _, worker, step = heapq.heappop(self._events)
            if not counted and now >= begun:
                counted = True
                self._written = self._lost = self._steps = 0
                self._busy_s = self._waited_s = 0.0
            self._do(now, worker, step)
        measured = seconds - begun
        return Outcome(
            self._written / measured,
            self._busy_s / measured / self._processors,
            1000 * self._waited_s / max(1, self._steps),
            self._lost / max(1, self._written + self._lost),
        )

    def _do(self, now: float, worker: int, step: str) -> None:
        match step:
            case "claim" | "write":
                self._queue.append((now, worker, step))
            case "claimed":
                self._free += 1
                self._holding += BATCH_NOTES
                self._embed(now, worker)
            case "written":
                self._free += 1
                self._holding -= BATCH_NOTES
                self._written += BATCH_NOTES
                self._at(now, worker, "claim")
            case "died":
                # PostgreSQL frees what the connection held.
                self._holding -= BATCH_NOTES
                self._lost += BATCH_NOTES
                self._at(now + self._costs.recovery_s, worker, "claim")
        self._serve(now)

    def _embed(self, now: float, worker: int) -> None:
        lasts = self._embed_s()
        dies = self._random.expovariate(1 / (3600 * self._costs.hours_between_deaths))
        if dies < lasts:
            self._at(now + dies, worker, "died")
        else:
            self._at(now + lasts, worker, "write")

    def _serve(self, now: float) -> None:
        """Give the free processors to those who have waited longest."""
        while self._free and self._queue:
            since, worker, step = self._queue.popleft()
            self._free -= 1
            self._steps += 1
            self._waited_s += now - since
            lasts = self._service_s(step)
            self._busy_s += lasts
            self._at(now + lasts, worker, "claimed" if step == "claim" else "written")

    def _service_s(self, step: str) -> float:
        costs = self._costs
        if step == "claim":
            return (costs.claim_ms + costs.held_ms * self._holding / 1000) / 1000
        return costs.write_ms * BATCH_NOTES / 1000

    def _embed_s(self) -> float:
        mean = self._costs.embed_ms * BATCH_NOTES / 1000
        return max(mean / 10, self._random.gauss(mean, self._costs.spread * mean))

    def _at(self, moment: float, worker: int, step: str) -> None:
        self._number += 1  # Events of one moment happen in the order in which they were planned.
        heapq.heappush(self._events, (moment, self._number, worker, step))


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 10, 100, 300, 1_000])
    parser.add_argument("--processors", type=int, nargs="+", default=[2, 8, 32])
    parser.add_argument("--claim-ms", type=float, default=CLAIM_MS)
    parser.add_argument("--held-ms", type=float, default=HELD_MS, help="a thousand notes held")
    parser.add_argument("--write-ms", type=float, default=WRITE_MS, help="a note")
    parser.add_argument("--embed-ms", type=float, default=EMBED_MS, help="a note")
    parser.add_argument("--hours", type=float, default=1.0, help="simulated (1)")
    given = parser.parse_args()
    costs = Costs(given.claim_ms, given.held_ms, given.write_ms, given.embed_ms)
    report("| processors | workers | notes/s | of what they could | busy | wait, ms | lost |")
    report("|---|---|---|---|---|---|---|")
    for processors in given.processors:
        for workers in given.workers:
            found = Fleet(workers, processors, costs).run(given.hours * 3600)
            # Alone, a worker waits for nobody.
            alone = 1000 / (costs.embed_ms + costs.write_ms + costs.claim_ms / BATCH_NOTES)
            report(
                f"| {processors} | {workers:,} | {found.notes_a_second:,.0f} "
                f"| {found.notes_a_second / (alone * workers):.0%} | {found.busy:.0%} "
                f"| {found.wait_ms:.1f} | {found.lost:.3%} |"
            )


if __name__ == "__main__":
    main()
