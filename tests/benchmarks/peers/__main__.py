"""Brain Sync RAG beside LlamaIndex, Haystack and LangChain: same server, data and vectors.

    python -m tests.benchmarks.peers FILE [--paragraphs 1 5] [--passages 2000 100000]
        [--peers NAME …] [--questions N] [--python PATH] [--home FOLDER] [--markdown FILE]

Quality is measured on FILE, in the format of SQuAD; speed, reruns and kills on the generated corpus
(kills at its first size, defaults at small ones only). Each contender runs in a process and a
database of its own, one after the other. PATH is an interpreter with `requirements.txt` of this
folder: `make bench-peers DATA=FILE`.
"""

import argparse
import hashlib
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from rag_resources.cli.output import note
from rag_resources.core.metrics import JudgedRanking, per_query_metrics
from rag_resources.database.server import EmbeddedServer
from rag_resources.ingestion.squad import read_squad
from rag_resources.providers.cache import MemoryCache
from rag_resources.providers.cached_embedder import CachedEmbedder
from rag_resources.providers.registry import build_embedder
from tests.benchmarks.bench_quality import VECTORS
from tests.benchmarks.peers.contender import CONTENDERS, OUR_OWN, OURS
from tests.benchmarks.peers.peer_tables import Quality, Results, Speed, peer_tables
from tests.benchmarks.peers.running import REPOSITORY, Bench
from tests.benchmarks.peers.worker import WARM_UP
from tests.benchmarks.peers.workload import Workload, load
from tests.benchmarks.peers.workloads import save_dataset, save_generated
from tests.benchmarks.quality_study import length_title
from tests.benchmarks.quality_tables import markdown, show

MODEL = "e5_small"
INTERPRETER = REPOSITORY / ".venv-peers" / "bin" / "python"
SPEED_QUESTIONS = 400
DEFAULTS_UP_TO = 10_000
"""Passages. No default has an index: over 100,000 a question takes .6 s, all of them minutes."""


def measure_quality(bench: Bench, names: Sequence[str], folder: Path, paragraphs: int) -> Quality:
    """Index notes of one length with every contender and ask all questions."""
    workload = load(folder)
    measured, failures, latencies_ms = {}, {}, {}
    for name in names:
        result = bench.run(name, "measure_quality", folder)
        measured[name] = _metrics(workload, result["found"])
        failures[name] = result["failures"]
        latencies_ms[name] = result["latencies_ms"]
        note(f"{length_title([paragraphs])}: {name}")
    title = (
        f"{length_title([paragraphs])} ({len(workload.notes):,} notes, "
        f"{len(workload.passages):,} passages)"
    )
    return Quality(title, len(workload.questions), measured, failures, latencies_ms)


def _metrics(workload: Workload, found: Sequence[Sequence[str]]) -> dict[UUID, dict[str, float]]:
    rankings = {
        str(UUID(int=number)): JudgedRanking(frozenset(question.notes), tuple(notes))
        for number, (question, notes) in enumerate(zip(workload.questions, found, strict=True))
    }
    return {UUID(key): values for key, values in per_query_metrics(rankings).items()}


def measure_speed(bench: Bench, names: Sequence[str], folder: Path, found: list[Speed]) -> None:
    """Index, ask and index again with every contender; results are kept if one fails."""
    measured: dict[str, dict[str, Any]] = {}
    for name in names:
        measured[name] = bench.run(name, "measure_speed", folder)
        passages = int(measured[name]["passages"])
        if len(measured) == 1:
            found.append(Speed(passages, measured))
        note(f"{passages:,} passages: {name}")


def facts_of(path: Path) -> dict[str, str]:
    """Describe what was measured."""
    info = build_embedder(MODEL).info
    return {
        "data": f"{path.name}, SHA-256 {hashlib.sha256(path.read_bytes()).hexdigest()[:12]}…",
        "model": f"{info.name} ({info.digest[:12]}), its vectors made beforehand",
        "speed": f"generated corpus, {SPEED_QUESTIONS} questions, {WARM_UP} of them to warm up",
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
    }


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.peers", description=__doc__)
    parser.add_argument("data", type=Path, metavar="FILE", help="in the format of SQuAD")
    parser.add_argument("--paragraphs", type=int, nargs="*", default=[1, 5])
    parser.add_argument("--passages", type=int, nargs="*", default=[2_000, 100_000])
    peers = [name for name in CONTENDERS if name not in OUR_OWN]
    parser.add_argument("--peers", nargs="+", choices=peers)
    parser.add_argument("--questions", type=int, help="of FILE; all by default")
    parser.add_argument("--python", type=Path, default=INTERPRETER, help="the peers' interpreter")
    parser.add_argument("--home", type=Path, help="folder for the data; a temporary one by default")
    parser.add_argument("--markdown", type=Path, help="file for the tables")
    asked = parser.parse_args(argv)
    if not asked.python.exists():
        parser.error(f"{asked.python} does not exist: make bench-peers makes it")
    return asked


def measure(
    asked: argparse.Namespace, names: Sequence[str], bench: Bench, home: Path, found: Results
) -> None:
    """Measure everything that was requested, and add it to the results."""
    # The questions are the same for every length of notes.
    embedder = CachedEmbedder(build_embedder(MODEL), MemoryCache(VECTORS))
    for paragraphs in asked.paragraphs:
        folder = home / f"paragraphs_{paragraphs}"
        dataset = read_squad(asked.data, paragraphs_per_note=paragraphs, questions=None, seed=0)
        save_dataset(folder, dataset, embedder, questions=asked.questions)
        found.qualities.append(measure_quality(bench, names, folder, paragraphs))
    for passages in asked.passages:
        folder = home / f"passages_{passages}"
        save_generated(folder, passages, questions=SPEED_QUESTIONS)
        asked_here = [
            name for name in names if passages <= DEFAULTS_UP_TO or CONTENDERS[name].careful
        ]
        measure_speed(bench, asked_here, folder, found.speeds)
        if len(found.speeds) == 1:
            for name in asked_here:
                ingest_s = float(found.speeds[0].measured[name]["ingest_s"])
                found.kills[name] = bench.kill(name, folder, ingest_s)
                note(f"killed: {name}")


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print; if a contender fails, print what was measured before."""
    asked = arguments(argv)
    peers = asked.peers or [name for name in CONTENDERS if name not in OUR_OWN]
    names = [name for name in CONTENDERS if name == OURS or name in peers]
    facts, found = facts_of(asked.data), Results([], [], {})
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=asked.home)))
        home.chmod(0o755)  # or a root's server keeps its data elsewhere
        server = EmbeddedServer(home)
        server.up()
        stack.callback(server.down)
        bench = Bench(home, server, asked.python.absolute())
        stack.callback(report, facts, bench.versions, found, asked.markdown)
        measure(asked, names, bench, home, found)


def report(
    facts: Mapping[str, str], versions: Mapping[str, str], found: Results, path: Path | None
) -> None:
    """Print all tables, and write them to a file if there is one."""
    peers = ", ".join(f"{package} {number}" for package, number in versions.items())
    tables = peer_tables({**facts, "peers": peers}, found)
    show(tables)
    if path:
        path.write_text(markdown(tables), encoding="utf-8")


if __name__ == "__main__":
    main()
