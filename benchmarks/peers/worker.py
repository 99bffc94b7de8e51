"""One contender in a process of its own: it reads a request and leaves a result.

    python -m benchmarks.peers.worker REQUEST RESULT

The peers' interpreter runs this for them, ours for the product, so that each has the versions it
asks for and its memory is its own. The other side is `running`.
"""

import json
import os
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psycopg

from benchmarks.peers.contender import (
    CONTENDERS,
    Contender,
    Search,
    Setup,
    open_contender,
)
from benchmarks.peers.workload import load

READY = "ready"
CLIENTS = 8
WARM_UP = 30
NOTES = 10
QUALITY_RESULTS = 50
"""Passages asked for, so that there are ten different notes among them."""
SPEED_RESULTS = 10


@dataclass(frozen=True, slots=True)
class Request:
    """What a worker is asked to do.

    Attributes:
        task: A name in `TASKS`.
        workload: Folder of `workload.save`.
        folder: For the contender's own files.
        questions: How many to ask at most.
    """

    contender: str
    task: str
    dsn: str
    workload: str
    folder: str

    @property
    def setup(self) -> Setup:
        """What the contender is opened with."""
        return Setup(
            self.dsn,
            Path(self.folder),
            load(Path(self.workload)),
            CONTENDERS[self.contender].careful,
            self.contender,
        )


def measure_quality(request: Request) -> dict[str, Any]:
    """Index and ask everything: the first ten different notes of every question."""
    setup = request.setup
    contender = open_contender(request.contender, setup)
    contender.ingest()
    _tidy(request.dsn)
    asked = Asked(contender.client(), QUALITY_RESULTS)
    for question in setup.workload.questions:
        asked.ask(question.text)
    return {
        "found": [list(dict.fromkeys(notes))[:NOTES] for notes in asked.found],
        "failures": asked.failures,
        "latencies_ms": asked.latencies_ms,
    }


def ingest_twice(request: Request) -> dict[str, Any]:
    """Index, and index again what has not changed."""
    setup = request.setup
    contender = open_contender(request.contender, setup)
    started = time.perf_counter()
    contender.ingest()
    ingest_s = time.perf_counter() - started
    contender.close()
    again = open_contender(request.contender, setup)
    again_s, error = attempted(again.ingest)
    return {
        "passages": len(setup.workload.passages),
        "ingest_s": ingest_s,
        "again_s": again_s,
        "again_error": error,
        "after_again": compared(again, setup),
    }


def ingest(request: Request) -> dict[str, Any]:
    """Announce the start, then index; the process is killed meanwhile."""
    contender = open_contender(request.contender, request.setup)
    sys.stdout.write(f"{READY}\n")
    sys.stdout.flush()
    contender.ingest()
    return {}


def recover(request: Request) -> dict[str, Any]:
    """Check what a killed run left, and index again."""
    setup = request.setup
    contender = open_contender(request.contender, setup)
    left = compared(contender, setup)
    _, error = attempted(contender.ingest)
    return {"left": left, "error": error, "after": compared(contender, setup)}


def serve(request: Request) -> dict[str, Any]:
    """Do what each line of standard input says, and answer in a line, until the input ends."""
    answers, sys.stdout = sys.stdout, sys.stderr  # Whatever a contender prints is no answer.
    setup = request.setup
    contender = open_contender(request.contender, setup)
    questions = [question.text for question in setup.workload.questions]
    search: Search | None = None
    for line in sys.stdin:
        command = json.loads(line)
        if command["do"] == "ingest":
            seconds, error = attempted(contender.ingest)
            _tidy(request.dsn)
            answer: dict[str, Any] = {"seconds": seconds, "error": error}
        elif command["do"] == "describe":
            answer = {"questions": len(questions), "passages": len(setup.workload.passages)}
        elif command["do"] == "ask":
            search = search or contender.client()
            answer = _asked(search, questions[command["value"]])
        else:
            answer = _by_clients(contender, [questions[number] for number in command["value"]])
        answers.write(f"{json.dumps(answer)}\n")
        answers.flush()
    contender.close()
    return {}


def _asked(search: Search, question: str) -> dict[str, Any]:
    client = Asked(search, SPEED_RESULTS)
    before_s = time.process_time()
    client.ask(question)
    spent_s = time.process_time() - before_s
    return {
        "wall_ms": 1000 * client.seconds[0],
        "client_ms": 1000 * spent_s,
        "error": next(iter(client.failures), ""),
    }


def _by_clients(contender: Contender, questions: Sequence[str]) -> dict[str, Any]:
    before_s = time.process_time()
    seconds, lost = ask_by_clients(contender, questions)
    return {
        "rate": (len(questions) - lost.total()) / seconds,
        "client_ms": 1000 * (time.process_time() - before_s),
        "failures": lost.total(),
    }


TASKS = {task.__name__: task for task in (measure_quality, ingest_twice, ingest, recover, serve)}


class Asked:
    """What one client asks, and how it went.

    Attributes:
        seconds: Of each question.
        found: The notes of each question; none if it failed.
    """

    def __init__(self, search: Search, results: int) -> None:
        self._search = search
        self._results = results
        self.seconds: list[float] = []
        self.found: list[list[str]] = []
        self.failures: Counter[str] = Counter()

    @property
    def latencies_ms(self) -> list[float]:
        """How long each took, without those of the warm-up."""
        return [1000 * seconds for seconds in self.seconds[WARM_UP:]]

    def ask(self, question: str) -> None:
        """Ask; a failure is counted by its name."""
        found: list[str] = []
        seconds, error = attempted(lambda: found.extend(self._search(question, self._results)))
        self.seconds.append(seconds)
        self.found.append(found)
        if error:
            self.failures[error] += 1


def attempted(call: Callable[[], object]) -> tuple[float, str]:
    """Call foreign code that may fail in any way; a failure is a result.

    Returns:
        Seconds, and the name of what it failed with; empty if it did not.
    """
    started = time.perf_counter()
    error = ""
    try:
        call()
    except Exception as failure:  # noqa: BLE001 the caller reports it by name
        error = type(failure).__name__
    return time.perf_counter() - started, error


def _tidy(dsn: str) -> None:
    """Do for every contender what autovacuum would do a minute later."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")


def ask_by_clients(contender: Contender, questions: Sequence[str]) -> tuple[float, Counter[str]]:
    """Ask each question once, by several threads that begin together.

    Returns:
        Seconds, and failures by name.
    """
    gate = threading.Barrier(CLIENTS + 1)
    # Not in the threads: one that failed before the gate would leave the others waiting there.
    searches = [contender.client() for _ in range(CLIENTS)]

    def ask(number: int) -> Counter[str]:
        search = searches[number]
        warm, client = Asked(search, SPEED_RESULTS), Asked(search, SPEED_RESULTS)
        for question in questions[:CLIENTS]:
            warm.ask(question)
        gate.wait()
        for question in questions[number::CLIENTS]:
            client.ask(question)
        return client.failures

    with ThreadPoolExecutor(CLIENTS) as threads:
        clients = [threads.submit(ask, number) for number in range(CLIENTS)]
        gate.wait()
        started = time.perf_counter()
        failures = sum((client.result() for client in clients), start=Counter())
        return time.perf_counter() - started, failures


def compared(contender: Contender, setup: Setup) -> dict[str, int]:
    """Count what is stored, what of the workload is missing, and what is there too often."""
    stored = contender.stored()
    wanted = Counter(passage.text for passage in setup.workload.passages)
    return {
        "stored": stored.total(),
        "missing": (wanted - stored).total(),
        "surplus": (stored - wanted).total(),
    }


def main(request_path: Path, result_path: Path) -> None:
    """Do what is requested."""
    warnings.simplefilter("ignore")
    # Some would report home, or look for newer versions.
    os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"
    os.environ["LANGCHAIN_TRACING_V2"] = "false"
    request = Request(**json.loads(request_path.read_text(encoding="utf-8")))
    packages = CONTENDERS[request.contender].packages
    result = TASKS[request.task](request) | {"versions": {name: version(name) for name in packages}}
    result_path.write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
