"""Kills indexing and its server at random moments, and checks the final index.

One corpus is indexed again and again, each time by runs that are killed until two at once get to
the end. `process` does the killing, `observer` watches meanwhile, `content` is the final index.
"""

import random
import time
from bisect import bisect
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import accumulate
from uuid import UUID

import psycopg
from psycopg import sql

from rag_resources.core.chunking_version import chunking_hash
from rag_resources.database.migrations import migrate
from rag_resources.database.pool import Database
from rag_resources.database.server import EmbeddedServer
from tests.crash.content import Content, content, differences, temporary_tables
from tests.crash.corpus import NEW, Expected, prepare
from tests.crash.observer import Observer
from tests.crash.process import WorkerProcess, kill_server
from tests.crash.worker import STAGES, Lost, Work

KILLS_A_CORPUS = 8
KILLS_A_SERVER_KILL = 5

_PREPARED, _UNDISTURBED, _CRASHED = "prepared", "undisturbed", "crashed"
_GOLDEN = (5**0.5 - 1) / 2
_WRITTEN = """
    WITH migrated AS (
        SELECT id FROM notes WHERE chunked_at IS NOT NULL AND chunking_hash = %s)
    SELECT (SELECT count(*) FROM migrated)
        + (SELECT count(*) FROM vectors WHERE kind = 'note')
        + (SELECT count(*) FROM vectors e JOIN chunks c ON c.id = e.chunk_id
            JOIN migrated n ON n.id = c.note_id WHERE e.kind = 'chunk')"""
"""What only grows as a run goes on."""


@dataclass(frozen=True)
class Kill:
    """A moment of a run.

    Attributes:
        stage: Where in `STAGES`.
        share: How much of that stage is over, in [0, 1).
        server: Whether PostgreSQL is killed instead of the run.
    """

    stage: int
    share: float
    server: bool


@dataclass
class CrashReport:
    """What was killed, and what was wrong.

    Attributes:
        problems: Violations; empty if all is well.
        kills: Of runs, by the stage they were in.
        server_kills: Of PostgreSQL, likewise.
        corpora: How often the corpus was indexed from the start.
        observations: How often everything was looked at.
        lossy_kills: Server kills that took with them what had been committed.
        lost_rows: Those rows.
        seconds: All of it.
    """

    problems: list[str] = field(default_factory=list)
    kills: Counter[str] = field(default_factory=Counter)
    server_kills: Counter[str] = field(default_factory=Counter)
    corpora: int = 0
    observations: int = 0
    lossy_kills: int = 0
    lost_rows: int = 0
    seconds: float = 0.0

    @property
    def crashes(self) -> int:
        """All kills."""
        return self.kills.total() + self.server_kills.total()


def crash(server: EmbeddedServer, *, crashes: int, seed: int) -> CrashReport:
    """Kill indexing that many times, every fifth time by killing the server; stop at a problem.

    Args:
        server: Runs, and is nobody else's: it is killed with all its processes.
        crashes: Kills in all.
        seed: Of the corpus and of the moments.
    """
    chance, started, report = random.Random(seed), time.monotonic(), CrashReport()
    _create_database(server, _PREPARED)
    migrate(server.dsn(_PREPARED))
    with Database(server.dsn(_PREPARED)) as database:
        expected = prepare(database, seed)
    durations_s, wanted = _index_undisturbed(server)
    while report.crashes < crashes and not report.problems:
        count = min(KILLS_A_CORPUS, crashes - report.crashes)
        kills = choose_kills(chance, durations_s, count=count, before=report.crashes)
        _Corpus(server, report, durations_s, expected).index(kills, wanted)
        report.corpora += 1
    report.seconds = time.monotonic() - started
    return report


def choose_kills(
    chance: random.Random, durations_s: Mapping[str, float], *, count: int, before: int
) -> list[Kill]:
    """Choose moments that are spread over a run, in its order.

    Each stage gets its part half for being one, half for the time it takes.

    Args:
        chance: For the moments.
        durations_s: Of all stages.
        count: How many moments.
        before: How many were chosen before: every fifth is the server's, which goes through the
            places by the golden section, as evenly as can be.
    """
    whole = sum(durations_s.values())
    widths = [(1 / len(STAGES) + durations_s[stage] / whole) / 2 for stage in STAGES]
    ends = list(accumulate(widths))
    numbers = range(before + 1, before + count + 1)
    servers = {
        int(number // KILLS_A_SERVER_KILL * _GOLDEN % 1 * count)
        for number in numbers
        if number % KILLS_A_SERVER_KILL == 0
    }
    kills = []
    for place in range(count):
        position = (place + chance.random()) / count * ends[-1]
        stage = min(bisect(ends, position), len(STAGES) - 1)
        share = 1 - (ends[stage] - position) / widths[stage]
        kills.append(Kill(stage, share, server=place in servers))
    return kills


def _create_database(server: EmbeddedServer, name: str, *, template: str = "template0") -> None:
    with psycopg.connect(server.dsn("postgres"), autocommit=True) as connection:
        drop = "DROP DATABASE IF EXISTS {} WITH (FORCE)"
        # By the default strategy PostgreSQL 18 forgets in a crash what a sequence of the copy gave,
        # if the original had begun a batch of 32 numbers: it takes them for logged already.
        create = "CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy"
        names = sql.Identifier(name), sql.Identifier(template)
        connection.execute(sql.SQL(drop).format(names[0]))
        connection.execute(sql.SQL(create).format(*names))


def _index_undisturbed(server: EmbeddedServer) -> tuple[dict[str, float], Content]:
    """Index once without a kill; return the seconds of each stage and the final content."""
    _create_database(server, _UNDISTURBED, template=_PREPARED)
    url, durations_s = server.dsn(_UNDISTURBED), dict.fromkeys(STAGES, 0.0)
    with WorkerProcess(url) as run:
        before, moment = "", 0.0
        for stage in (*run.stages(), ""):
            now = time.monotonic()
            if before:
                durations_s[before] = now - moment
            before, moment = stage, now
    with Database(url) as database:
        return durations_s, content(database)


class _Corpus:
    """The notes, from where they are prepared until they are indexed."""

    def __init__(
        self,
        server: EmbeddedServer,
        report: CrashReport,
        durations_s: Mapping[str, float],
        expected: Mapping[UUID, Expected],
    ) -> None:
        _create_database(server, _CRASHED, template=_PREPARED)
        self._server = server
        self._url = server.dsn(_CRASHED)
        self._report = report
        self._durations_s = durations_s
        self._observer = Observer(self._url, expected)

    def index(self, kills: list[Kill], wanted: Content) -> None:
        """Run and kill, then run to the end, then run again, which must find nothing to do."""
        problems = self._report.problems
        with self._observer:
            before = Kill(0, 0.0, server=False)
            for kill in kills:
                self._strike(kill, before)
                before = kill
            # Two at once, beside what the last one that was killed may still be doing.
            self._finish(runs=2)
            if (again := self._finish(runs=1)) != [Work()]:
                problems.append(f"a run after the last one had something to do: {again}")
        problems.extend(self._observer.problems)
        self._report.observations += self._observer.observations
        with Database(self._url) as database:
            problems.extend(differences(content(database), wanted))
            # Those of a killed server go when PostgreSQL gets to it.
            if not any(kill.server for kill in kills):
                problems.extend(f"{name} is left" for name in temporary_tables(database))

    def _strike(self, kill: Kill, before: Kill) -> None:
        stage = STAGES[kill.stage]
        # What was done of the stage up to the kill before need not be done again.
        share = kill.share - before.share if kill.stage == before.stage else kill.share
        with WorkerProcess(self._url) as run:
            if not run.reach(stage, share * self._durations_s[stage]):
                return
            if kill.server:
                self._kill_server(run)
                self._report.server_kills[run.stage] += 1
            else:
                run.kill()
                self._report.kills[run.stage] += 1

    def _kill_server(self, run: WorkerProcess) -> None:
        with self._observer.looking_away():
            before = self._count_written()
            kill_server(self._server)
            if (result := run.end()) != Lost():
                self._report.problems.append(f"a run without a server came to {result}")
            self._server.up()
            lost = before - self._count_written()
        self._report.lossy_kills += lost > 0
        self._report.lost_rows += max(0, lost)

    def _count_written(self) -> int:
        with psycopg.connect(self._url) as connection:
            ((count,),) = connection.execute(_WRITTEN, (chunking_hash(NEW),)).fetchall()
        return int(count)

    def _finish(self, *, runs: int) -> list[Work | Lost]:
        """Start runs at once and wait for all of them."""
        with ExitStack() as stack:
            started = [stack.enter_context(WorkerProcess(self._url)) for _ in range(runs)]
            return [run.end() for run in started]
