"""Clients ask continuously while months are re-indexed and configurations evaluated.

    python -m benchmarks.soak [--minutes 10] [--clients 8]

In a RAG_HOME of its own: the sample with the embedded models, and the main job in a process of its
own, over and over. Every round changes how notes are cut, so that all chunks and vectors
are made anew under the clients. Half of their questions are golden ones, which the cache of answers
knows after a while; the others are pieces of notes, never the same. Latency is told apart by that.
"""

import argparse
import itertools
import json
import logging
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import structlog

from benchmarks.targets import report
from rag_resources.application import Application, open_application
from rag_resources.core.metrics import percentile
from rag_resources.settings import SAMPLE, load_settings

MAX_TOKENS = ("192", "256")
SAMPLE_S = 5.0
SETTLED_S = 120.0
"""Memory grows until caches and pools are full; what comes later counts."""

MOST_P95_MS = 2000
MOST_GROWTH = 1.05


@dataclass
class Clients:
    """Ask from several threads until told to stop, and keep the results."""

    application: Application
    golden: Sequence[str]
    sentences: Sequence[str]
    count: int
    latencies_ms: dict[bool, list[float]] = field(default_factory=lambda: {True: [], False: []})
    outcomes: Counter[str] = field(default_factory=Counter)
    stopped: threading.Event = field(default_factory=threading.Event)

    def run(self) -> list[threading.Thread]:
        """Start the threads."""
        threads = [threading.Thread(target=self._ask, args=(n,)) for n in range(self.count)]
        for thread in threads:
            thread.start()
        return threads

    def _ask(self, seed: int) -> None:
        for question in self._questions(seed):
            if self.stopped.is_set():
                return
            started = time.perf_counter()
            try:
                response = self.application.retrieve(question).response
            except Exception as error:  # noqa: BLE001 -- whatever it is, it is what this looks for
                self.outcomes[f"raised {type(error).__name__}"] += 1
                continue
            elapsed_ms = 1000 * (time.perf_counter() - started)
            self.latencies_ms[response.cached].append(elapsed_ms)
            if response.error:
                self.outcomes["errors"] += 1
            if not response.results:
                self.outcomes["empty"] += 1
            if response.degraded:
                self.outcomes["degraded"] += 1

    def _questions(self, seed: int) -> Iterator[str]:
        chosen = random.Random(seed)
        for number in itertools.count():
            if number % 2:
                yield chosen.choice(self.golden)
            else:
                yield f"{chosen.choice(self.sentences)} {chosen.choice(self.sentences)}"


@dataclass(frozen=True)
class Reading:
    """The resources in use at one moment."""

    elapsed_s: float
    memory_mb: float
    lent: int
    connections: int


def sentences() -> list[str]:
    """Return pieces of the sample's notes, of some words each."""
    words = " ".join(path.read_text("utf-8") for path in sorted((SAMPLE / "notes").rglob("*.md")))
    parts = words.split()
    return [" ".join(parts[start : start + 6]) for start in range(0, len(parts) - 6, 6)]


def read(application: Application, elapsed_s: float) -> Reading:
    """Look at this process and at the server."""
    with application.database.transaction() as connection:
        row = connection.execute(
            "SELECT count(*) AS open FROM pg_stat_activity WHERE backend_type = 'client backend'"
        ).fetchone()
    return Reading(
        elapsed_s,
        psutil.Process().memory_info().rss / 2**20,
        application.database.statistics().in_use,
        row.open,
    )


def main_job(max_tokens: str = "256") -> int:
    """Do the main job on the sample and return its exit code; another cut renews all chunks."""
    command = [sys.executable, "-m", "rag_assets", "run", "--sample", "--quiet"]
    environment = {**os.environ, "CHUNKING_MAX_TOKENS": max_tokens}
    return subprocess.run(command, env=environment, check=False, stdout=sys.stderr).returncode


def work(stopped: threading.Event, done: Counter[str]) -> None:
    """Index everything again and evaluate, round after round."""
    for max_tokens in itertools.cycle(MAX_TOKENS):
        if stopped.is_set():
            return
        code = main_job(max_tokens)
        done["main job" if code == 0 else f"main job that ended with {code}"] += 1


def soak(home: Path, *, minutes: float, count: int) -> None:
    """Prepare an index, run clients and work concurrently, and print the results."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    os.environ |= {"RAG_HOME": str(home), "DATABASE_URL": "", "EMBEDDING_MODELS": "e5_small"}
    if main_job():
        raise SystemExit("the main job failed")
    entries = json.loads((SAMPLE / "golden.json").read_text("utf-8"))["entries"]
    done: Counter[str] = Counter()
    readings: list[Reading] = []
    with open_application(load_settings()) as application:
        golden = [entry["query"] for entry in entries]
        clients = Clients(application, golden, sentences(), count)
        worker = threading.Thread(target=work, args=(clients.stopped, done))
        application.retrieve(golden[0])  # loads the model
        threads = [*clients.run(), worker]
        worker.start()
        started = time.perf_counter()
        try:
            while (elapsed_s := time.perf_counter() - started) < 60 * minutes:
                readings.append(read(application, elapsed_s))
                clients.stopped.wait(SAMPLE_S)
        finally:
            clients.stopped.set()
            for thread in threads:
                thread.join()
        readings.append(read(application, time.perf_counter() - started))
    report_all(clients, readings, done)


def report_all(clients: Clients, readings: Sequence[Reading], done: Counter[str]) -> None:
    """Print the figures and which targets were met."""
    asked = sum(map(len, clients.latencies_ms.values()))
    report(f"{clients.count} clients, {readings[-2].elapsed_s / 60:.0f} min, {asked} questions")
    report(f"meanwhile: {', '.join(f'{count} x {job}' for job, count in done.items())}")
    bad = {name: count for name, count in clients.outcomes.items() if name != "degraded"}
    report(f"errors and empty answers: {bad or 0}", met=not bad)
    report(f"degraded: {clients.outcomes['degraded']}")
    for cached, latencies_ms in clients.latencies_ms.items():
        if latencies_ms:
            p50, p95 = (percentile(latencies_ms, share) for share in (0.5, 0.95))
            kind = "cached" if cached else "searched"
            text = f"{kind}: {len(latencies_ms)}, p50 {p50:.0f} ms, p95 {p95:.0f} ms"
            report(f"{text}, longest {max(latencies_ms):.0f} ms", met=p95 < MOST_P95_MS)
    settled = [reading.memory_mb for reading in readings if reading.elapsed_s >= SETTLED_S]
    if len(settled) > 2:
        middle = len(settled) // 2
        growth = max(settled[middle:]) / max(settled[:middle])
        text = f"memory: {settled[0]:.0f} MB after two minutes, {settled[-1]:.0f} at the end, "
        report(
            f"{text}; peak of the second half by the first's {growth:.3f}",
            met=growth <= MOST_GROWTH,
        )
    last = readings[-1]
    most = max(reading.connections for reading in readings)
    report(
        f"connections: {readings[0].connections} at the start, at most {most}, "
        f"{last.connections} at the end; lent by the pool at the end {last.lent}",
        met=last.connections <= readings[0].connections + clients.count and last.lent == 0,
    )


def main() -> None:
    """Measure in a temporary home."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--clients", type=int, default=8)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rag-soak-") as folder:
        home = Path(folder)
        home.chmod(0o755)
        try:
            soak(home, minutes=asked.minutes, count=asked.clients)
        finally:
            # Before its data goes.
            subprocess.run([Path(sys.executable).with_name("rag"), "down"], check=False)


if __name__ == "__main__":
    main()
