"""A fleet: webserver and daemon, Celery's Redis, and workers that are killed at random moments.

`python -m tests.crash.fleet --kills 20` kills workers in backfills and compares the end state. With
`--notes 10000 --workers 4` generated notes of two years come to the sample's few.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from benchmarks.corpus import Corpus
from rag_assets.keys import CHUNKS, embeddings_key
from rag_resources.core.types import TimeWindow
from rag_resources.database.locate import APPLICATION_DATABASE, DAGSTER_DATABASE
from tests.crash.content import Content, differences
from tests.crash.product import ROOT, Product
from tests.dagster.dagster_ui import eventually, members
from tests.redis_server import RedisServer

MODEL = "use_multilingual"
CANDIDATES = "e5_small"
ASSETS = (CHUNKS, embeddings_key(MODEL))
RECOVERED_S = 60.0
_BEFORE = "before_backfill"
_FORGET = (
    "DELETE FROM chunks",
    "UPDATE notes SET chunked_at = NULL, chunking_hash = NULL",
    "DELETE FROM migration_batches",
)
_POLL_S = 0.2


class Fleet(Product):
    """A product whose runs are executed by Celery workers, each with a home of its own.

    Args:
        folder: For everything.
        notes: How many to generate, over two years; 0: there is only the sample of two months.
    """

    def __init__(self, folder: Path, *, notes: int = 0) -> None:
        super().__init__(folder, months=24 if notes else 2)
        self.notes = notes
        self.redis = RedisServer(folder)
        self.workers: list[subprocess.Popen[bytes]] = []

    def _generate(self, notes: int) -> None:
        """Ingest notes after the main job, whose model is slow, from where no sensor looks."""
        generated = self.folder / "generated.jsonl"
        first, last = (datetime.fromisoformat(f"{self.months[end]}T00:00Z") for end in (0, -1))
        records = Corpus().records(notes, TimeWindow(first, last), stream=1)
        with generated.open("w") as lines:
            for record in records:
                written = {
                    "id": record.external_id,
                    "title": record.title,
                    "content": record.content,
                    "createdAt": record.created_at.isoformat() if record.created_at else None,
                }
                lines.write(json.dumps(written) + "\n")
        ingest = [sys.executable, "-m", "rag_resources.cli", "ingest", str(generated)]
        with self.log.open("a") as log:
            subprocess.run(ingest, env=self.environment, stdout=log, stderr=log, check=True)

    def start(self, workers: int) -> None:
        """Start the databases, Redis, workers, webserver and daemon, in this order."""
        self.server.up()
        for name in (APPLICATION_DATABASE, DAGSTER_DATABASE):
            self.server.ensure_database(name)
        self.redis.start()
        dagster = self.server.dsn(DAGSTER_DATABASE).partition("://")[2]
        self.environment |= {
            "DATABASE_URL": self.server.dsn(APPLICATION_DATABASE),
            "DAGSTER_PG_URL": f"postgresql://{dagster}",
            "CELERY_BROKER_URL": self.redis.url,
            "FILES_URL": (self.folder / "files").as_uri(),
            # The candidates for promotion are of the other one.
            "EMBEDDING_MODELS": f"{CANDIDATES},{MODEL}",
            "NOTE_EMBEDDING_MODEL": MODEL,
        }
        self._instance_file(self.home)
        with self.log.open("a") as log:
            assert self.command("run", log).wait() == 0, self.log.read_text()[-3000:]
        if self.notes:
            self._generate(self.notes)
        for _ in range(workers):
            self.start_worker()
        self.start_ui()

    def start_worker(self) -> subprocess.Popen[bytes]:
        """Start one more worker."""
        home = self.folder / f"worker_{len(self.workers)}"
        self._instance_file(home)
        with self.log.open("a") as log:
            worker = subprocess.Popen(
                [sys.executable, "-m", "rag_assets", "worker"],
                env={**self.environment, "RAG_HOME": str(home)},
                cwd=home,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._sessions.append(worker.pid)
        self.workers.append(worker)
        return worker

    def kill_worker(self, worker: subprocess.Popen[bytes]) -> None:
        """Kill a worker with the runs that it executes."""
        for process in members(worker.pid):
            process.kill()
        worker.wait()

    def runs_begun(self) -> set[str]:
        """Return the runs that a worker executes, or should."""
        return {run_id for run_id, status, *_ in self.runs() if status in ("STARTING", "STARTED")}

    def stop(self) -> None:
        """End all."""
        self.stop_ui()
        self._kill_sessions()
        self.redis.kill()

    @staticmethod
    def _instance_file(home: Path) -> None:
        folder = home / "dagster"
        folder.mkdir(parents=True)
        shutil.copy(ROOT / "deploy" / "celery" / "dagster.yaml", folder / "dagster.yaml")


@dataclass
class Kill:
    """A worker that was killed.

    Attributes:
        moment_s: After the backfill began.
        executed: Whether a run was in progress then.
        recovered_s: Until the runs that were in progress had ended.
        problems: What was wrong in the end.
    """

    moment_s: float
    executed: bool
    recovered_s: float
    problems: list[str] = field(default_factory=list)


def backfill(fleet: Fleet) -> None:
    """Do the work of all months again, from the UI, and wait until it begins.

    Generated notes are only chunked: embedding ten thousand takes two cores half an hour each time.
    """
    fleet.ui.launch_backfill(ASSETS[:1] if fleet.notes else ASSETS, fleet.months)
    eventually(fleet.runs_begun)


def undisturbed(fleet: Fleet) -> tuple[Content, float]:
    """Do the work once and keep the state before it; return the end state and its seconds."""
    fleet.automate(False)
    assert fleet.wait_until_idle() == []
    fleet.change(_FORGET)
    fleet.save(APPLICATION_DATABASE, _BEFORE)
    backfill(fleet)
    started = time.monotonic()
    while fleet.runs_begun():
        time.sleep(_POLL_S)
    seconds = time.monotonic() - started
    assert fleet.wait_until_idle() == []
    return settled(fleet), seconds


def settled(fleet: Fleet) -> Content:
    """Return all that the fleet made; the statistics of many chunks may lag by a hundredth."""
    fleet.change(())
    return fleet.content()


def kill_during(fleet: Fleet, moment_s: float, wanted: Content) -> Kill:
    """Kill the worker that executes a run at a moment of the backfill, and see what becomes."""
    fleet.wait_until_idle()
    fleet.restore(APPLICATION_DATABASE, _BEFORE)
    backfill(fleet)
    time.sleep(moment_s)
    alive = [worker for worker in fleet.workers if worker.poll() is None]
    victim = max(alive, key=lambda worker: len(members(worker.pid)))
    begun = fleet.runs_begun()
    fleet.kill_worker(victim)
    killed = time.monotonic()
    fleet.start_worker()
    # The other workers' runs end meanwhile, too; there is one run for six months.
    while begun & fleet.runs_begun() and time.monotonic() - killed < 2 * RECOVERED_S:
        time.sleep(_POLL_S)
    recovered_s = time.monotonic() - killed
    problems = [f"still there: {left}" for left in fleet.wait_until_idle()]
    if recovered_s > RECOVERED_S:
        problems.append(f"recovered after {recovered_s:.0f} s")
    problems += differences(settled(fleet), wanted)
    return Kill(moment_s, bool(begun), recovered_s, problems)


def main() -> int:
    """Kill workers; 1 if anything was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.crash.fleet", description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--notes", type=int, default=0, help="generated ones besides")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    os.umask(0o022)
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="rag-fleet-") as folder:
        Path(folder).chmod(0o755)
        with Fleet(Path(folder), notes=arguments.notes) as fleet:
            try:
                fleet.start(arguments.workers)
                wanted, seconds = undisturbed(fleet)
                sys.stdout.write(f"undisturbed: {seconds:.0f} s\n")
                chance = random.Random(arguments.seed)
                for number in range(1, arguments.kills + 1):
                    kill = kill_during(fleet, chance.random() * seconds, wanted)
                    sys.stdout.write(f"{number}. {kill}\n")
                    sys.stdout.flush()
                    wrong += bool(kill.problems)
            finally:
                sys.stdout.write(
                    fleet.log.read_text("utf-8", errors="replace")[-3000:] * bool(wrong)
                )
                fleet.stop()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
