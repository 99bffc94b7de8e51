"""What is killed, and what the product does meanwhile: the list that `make crash` goes through."""

import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rag_assets.keys import CHUNKS, NOTE_EMBEDDINGS, NOTES, embeddings_key
from tests.crash.disk import fill
from tests.crash.process import kill_server
from tests.crash.product import MODEL, Product

CANDIDATE = "hybrid_weighted"
_FORGET_NOTES = ("DELETE FROM notes",)
_FORGET_CHUNKS = (
    "DELETE FROM chunks",
    "UPDATE notes SET chunked_at = NULL, chunking_hash = NULL",
    "DELETE FROM migration_batches",
)
_FORGET_EVALUATIONS = (
    "UPDATE promotions SET evaluation_id = NULL",
    "DELETE FROM evaluation_results",
)
_FORGET_PROMOTIONS = ("DELETE FROM promotions",)
_INDEXED = (CHUNKS, embeddings_key(MODEL))
_POLL_S = 0.5


@dataclass(frozen=True)
class Work:
    """Something that the product does, again and again.

    Attributes:
        undo: Statements after which it has everything to do again.
        start: Starts it in webserver and daemon; None: it is the main job, in its own process.
        automated: Whether what follows from it is started by itself, too. For one work only: else
            most of the time is theirs.
    """

    undo: Sequence[str]
    start: Callable[[Product], object] | None = None
    automated: bool = False


def _launch(job: str, config: dict[str, object] | None = None) -> Callable[[Product], object]:
    return lambda product: product.ui.launch_job(job, config)


def _touch_notes(product: Product) -> None:
    for path in (product.folder / "notes").rglob("*.md"):
        path.touch()


MAIN_JOB = Work((*_FORGET_NOTES, *_FORGET_CHUNKS, *_FORGET_EVALUATIONS))
WORKS = {
    "main job": MAIN_JOB,
    "run of a sensor": Work(_FORGET_NOTES, _touch_notes, automated=True),
    "backfill": Work(
        _FORGET_CHUNKS,
        lambda product: product.ui.launch_backfill(_INDEXED, product.months),
    ),
    "evaluation": Work(_FORGET_EVALUATIONS, _launch("evaluate")),
    "promotion": Work(
        _FORGET_PROMOTIONS,
        _launch("promote", {"ops": {"promoted_config": {"config": {"configuration": CANDIDATE}}}}),
    ),
}
REPEATED = {
    "run of a sensor": lambda product: product.ui.launch_backfill(
        (NOTES, NOTE_EMBEDDINGS), product.months
    )
}
"""How a person repeats what nothing starts twice: a sensor has seen the files."""


@dataclass(frozen=True)
class Victim:
    """What is killed.

    Attributes:
        strike: Kills it; false if there is nothing to kill any more.
        outage: Whether the database is gone afterwards.
    """

    strike: Callable[[Product, subprocess.Popen[bytes] | None], bool]
    outage: bool = False


def _kill_main_job(_: Product, process: subprocess.Popen[bytes] | None) -> bool:
    if process is None or process.poll() is not None:
        return False
    process.kill()
    return True


def _kill_run(product: Product, _: object) -> bool:
    """Kill a run of the daemon; one that is queued is waited for."""
    while not (processes := product.processes_of_runs()):
        if not product.runs():
            return False
        time.sleep(_POLL_S)
    for process in processes:
        process.kill()
    return True


def _kill_part(words: str) -> Callable[[Product, object], bool]:
    def kill(product: Product, _: object) -> bool:
        if not product.runs():
            return False
        product.kill_part(words)
        return True

    return kill


def _kill_postmaster(product: Product, process: subprocess.Popen[bytes] | None) -> bool:
    if process is not None and process.poll() is not None:
        return False
    if process is None and not product.runs():
        return False
    kill_server(product.server)
    return True


def _fill_disk(product: Product, process: subprocess.Popen[bytes] | None) -> bool:
    """Leave not a byte free where the database lies."""
    if process is not None and process.poll() is not None:
        return False
    fill(product.folder)
    return True


PROCESS, POSTMASTER = Victim(_kill_main_job), Victim(_kill_postmaster, outage=True)
RUN, DISK = Victim(_kill_run), Victim(_fill_disk, outage=True)


@dataclass(frozen=True)
class Kind:
    """A work and its victim.

    Attributes:
        name: For the table.
        work: A key of `WORKS`.
        victim: What is killed meanwhile.
        fills: Whether it needs a file system of its own.
    """

    name: str
    work: str
    victim: Victim
    fills: bool = False


KINDS = (
    Kind("main job", "main job", PROCESS),
    Kind("main job: postmaster", "main job", POSTMASTER),
    Kind("main job: disk full", "main job", DISK, fills=True),
    Kind("run of a sensor", "run of a sensor", RUN),
    Kind("backfill: run", "backfill", RUN),
    Kind("backfill: webserver", "backfill", Victim(_kill_part("dagster_webserver"))),
    Kind("backfill: daemon", "backfill", Victim(_kill_part("dagster._daemon"))),
    Kind("backfill: postmaster", "backfill", POSTMASTER),
    Kind("backfill: disk full", "backfill", DISK, fills=True),
    Kind("evaluation: run", "evaluation", RUN),
    Kind("promotion: run", "promotion", RUN),
)
