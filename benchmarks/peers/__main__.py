"""Quality beside LlamaIndex, Haystack and LangChain, and what reruns and kills leave.

    python -m benchmarks.peers FILE [--paragraphs 1 5] [--passages 2000 100000]
        [--peers NAME …] [--questions N] [--python PATH] [--home FOLDER] [--markdown FILE]

Quality is measured on FILE, in the format of SQuAD; reruns and kills on the generated corpus (kills
at its first size, defaults at small ones only). All have the same server, passages and vectors;
each runs in a process and a database of its own, one after the other. PATH is an interpreter with
`requirements.txt` of this folder: `make bench-peers DATA=FILE`. Speed is measured by `turns`.
"""

import argparse
import hashlib
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from benchmarks.peers.contender import CONTENDERS, OUR_OWN, OURS
from benchmarks.peers.running import KILLED_AT, REPOSITORY, Bench, Killed
from benchmarks.peers.workload import load
from benchmarks.peers.workloads import save_dataset, save_generated
from benchmarks.tables import (
    COMPARED_WORDS,
    RANKED,
    Table,
    differences,
    length_title,
    markdown,
    show,
)
from rag_resources.cli.output import note
from rag_resources.core.comparison import QueryMetrics, compare_pairs
from rag_resources.core.evaluation import percentiles
from rag_resources.core.metrics import JudgedRanking, per_query_metrics
from rag_resources.database.server import EmbeddedServer
from rag_resources.evaluation.bench import VECTORS, mean, with_interval
from rag_resources.evaluation.question_sets import read_question_set
from rag_resources.providers.cache import MemoryCache
from rag_resources.providers.cached_embedder import CachedEmbedder
from rag_resources.providers.registry import build_embedder

MODEL = "e5_small"
INTERPRETER = REPOSITORY / ".venv-peers" / "bin" / "python"
DEFAULTS_UP_TO = 10_000
"""Passages; over more the defaults take an hour."""


@dataclass(frozen=True, slots=True)
class Quality:
    """Every contender over notes of one length; failures and milliseconds of each question."""

    title: str
    measured: Mapping[str, QueryMetrics]
    failures: Mapping[str, Mapping[str, int]]
    latencies_ms: Mapping[str, Sequence[float]]


@dataclass(slots=True)
class Results:
    """All that a run measured; reruns and kills by contender and passages."""

    facts: dict[str, str]
    qualities: list[Quality] = field(default_factory=list)
    reruns: dict[tuple[str, int], dict[str, Any]] = field(default_factory=dict)
    kills: dict[tuple[str, int], list[Killed]] = field(default_factory=dict)

    def tables(self) -> list[Table]:
        """Return what was measured."""
        tables = [Table("What was measured", ("", ""), list(self.facts.items()))]
        for quality in self.qualities:
            tables += [_quality(quality), _contrasts(quality)]
        return [*tables, *([_reruns(self)] if self.reruns else [])]


def measure_quality(bench: Bench, names: Sequence[str], folder: Path, paragraphs: int) -> Quality:
    """Index notes of one length with every contender and ask all questions."""
    workload = load(folder)
    results = {}
    for name in names:
        results[name] = bench.run(name, "measure_quality", folder)
        note(f"{length_title(paragraphs)}: {name}")
    size = f"{len(workload.notes):,} notes, {len(workload.passages):,} passages"
    judged = [frozenset(question.notes) for question in workload.questions]
    return Quality(
        f"{length_title(paragraphs)} ({size})",
        {name: _metrics(judged, result["found"]) for name, result in results.items()},
        {name: result["failures"] for name, result in results.items()},
        {name: result["latencies_ms"] for name, result in results.items()},
    )


def _metrics(
    judged: Sequence[frozenset[str]], found: Sequence[Sequence[str]]
) -> dict[UUID, dict[str, float]]:
    rankings = {
        str(UUID(int=number)): JudgedRanking(relevant, tuple(notes))
        for number, (relevant, notes) in enumerate(zip(judged, found, strict=True))
    }
    return {UUID(key): values for key, values in per_query_metrics(rankings).items()}


def _quality(quality: Quality) -> Table:
    rows = []
    for name in sorted(quality.measured, key=lambda name: -mean(quality.measured[name], "mrr")):
        own, spent = quality.measured[name], percentiles(quality.latencies_ms[name])
        failures = [f"{count} {error}" for error, count in quality.failures[name].items()]
        rows.append(
            (
                CONTENDERS[name].title,
                *(with_interval(own, metric) for metric in RANKED),
                *(f"{spent.p50_ms:.1f}", f"{spent.p95_ms:.1f}"),
                ", ".join(failures) or "0",
            )
        )
    return Table(
        f"Quality with {quality.title}",
        ("contender", *COMPARED_WORDS, "p50 ms", "p95 ms", "failed"),
        rows,
        "Ranks over distinct notes. Intervals of 95 %: Wilson's for hits, BCa bootstrap for means. "
        "p50 and p95 of one client that wants 50 passages.",
    )


def _contrasts(quality: Quality) -> Table:
    others = [name for name in quality.measured if name != OURS]
    ours = quality.measured[OURS]
    compared = compare_pairs([(quality.measured[name], ours) for name in others])
    return Table(
        f"{CONTENDERS[OURS].title} against each with {quality.title}",
        ("minus", *COMPARED_WORDS),
        [
            (CONTENDERS[name].title, *differences(comparison))
            for name, comparison in zip(others, compared, strict=True)
        ],
        "Paired by question, BCa intervals of 95 %; p by McNemar's exact test for hits and by "
        "paired randomization for means, before and after Holm's adjustment.",
    )


def _reruns(results: Results) -> Table:
    rows = []
    for (name, passages), own in results.reruns.items():
        killed = results.kills.get((name, passages), [])
        rows.append(
            (
                CONTENDERS[name].title,
                f"{own['passages']:,}",
                f"{own['passages'] / own['ingest_s']:.0f}",
                f"{own['again_s']:.2f}",
                _state(own["again_error"], **own["after_again"]),
                ", ".join(f"{one.stored:,}" for one in killed) or "–",
                "; ".join({_state(one.error, one.missing, one.surplus): "" for one in killed}),
            )
        )
    shares = ", ".join(f"{share:.0%}" for share in KILLED_AT)
    return Table(
        "Ingesting twice, and after SIGKILL",
        (
            *("contender", "passages", "passages/s", "again, s", "after the second run"),
            *("left by a kill", "after the run that follows"),
        ),
        rows,
        f"Killed after {shares} of the time that ingestion took, each time in an empty database.",
    )


def _state(error: str, missing: int, surplus: int, stored: int = 0) -> str:
    problems = [error] if error else []
    problems += [f"{missing:,} missing"] if missing else []
    problems += [f"{surplus:,} twice"] if surplus else []
    return ", ".join(problems) or "right"


def measure(asked: argparse.Namespace, bench: Bench, home: Path, results: Results) -> None:
    """Measure everything that was requested, and add it to the results."""
    names = [name for name in CONTENDERS if name == OURS or name in asked.peers]
    # The questions are the same for every length of notes.
    embedder = CachedEmbedder(build_embedder(MODEL), MemoryCache(VECTORS))
    for paragraphs in asked.paragraphs:
        folder = home / f"paragraphs_{paragraphs}"
        dataset = read_question_set(asked.data, paragraphs_per_note=paragraphs)
        save_dataset(folder, dataset, embedder, questions=asked.questions)
        results.qualities.append(measure_quality(bench, names, folder, paragraphs))
    for passages in asked.passages:
        folder = home / f"passages_{passages}"
        save_generated(folder, passages)
        for name in names:
            if passages <= DEFAULTS_UP_TO or CONTENDERS[name].careful:
                done = bench.run(name, "ingest_twice", folder)
                results.reruns[name, passages] = done
                if passages == asked.passages[0]:
                    results.kills[name, passages] = bench.kill(name, folder, done["ingest_s"])
                note(f"{passages:,} passages: {name}")


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print; if a contender fails, print what was measured before."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("data", type=Path, metavar="FILE", help="in the format of SQuAD")
    parser.add_argument("--paragraphs", type=int, nargs="*", default=[1, 5])
    parser.add_argument("--passages", type=int, nargs="*", default=[2_000, 100_000])
    peers = [name for name in CONTENDERS if name not in OUR_OWN]
    parser.add_argument("--peers", nargs="+", choices=peers, default=peers)
    parser.add_argument("--questions", type=int, help="of FILE; all by default")
    parser.add_argument("--python", type=Path, default=INTERPRETER, help="the peers' interpreter")
    parser.add_argument("--home", type=Path, help="folder for the data; a temporary one by default")
    parser.add_argument("--markdown", type=Path, help="file for the tables")
    asked = parser.parse_args(argv)
    if not asked.python.exists():
        parser.error(f"{asked.python} does not exist: make bench-peers makes it")
    info = build_embedder(MODEL).info
    digest = hashlib.sha256(asked.data.read_bytes()).hexdigest()
    results = Results(
        {
            "data": f"{asked.data.name}, SHA-256 {digest[:12]}…",
            "model": f"{info.name} ({info.digest[:12]}), its vectors made beforehand",
            "date": f"{datetime.now(UTC):%Y-%m-%d}",
        }
    )
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=asked.home)))
        home.chmod(0o755)  # or a root's server keeps its data elsewhere
        server = EmbeddedServer(home)
        server.up()
        stack.callback(server.down)
        bench = Bench(home, server, asked.python.absolute())
        stack.callback(_report, bench, results, asked.markdown)
        measure(asked, bench, home, results)


def _report(bench: Bench, results: Results, path: Path | None) -> None:
    results.facts["peers"] = ", ".join(f"{name} {it}" for name, it in bench.versions.items())
    tables = results.tables()
    show(tables)
    if path:
        path.write_text(markdown(tables), encoding="utf-8")


if __name__ == "__main__":
    main()
