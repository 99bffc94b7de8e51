"""The cost of evaluating 1,000 questions, compared with that of their retrievals alone.

    python -m benchmarks.bench_evaluation [--questions N] [--chunks N] [--home FOLDER]

No judge is used. The index is synthetic and the embedder a look-up, so that retrieval is as fast as
possible and the share of evaluation is largest. Compare the ratio, not the times.
"""

import argparse
from contextlib import ExitStack
from pathlib import Path
from uuid import UUID

from benchmarks.bench_retrieval import HYBRID, Index, opened, report, timed
from benchmarks.corpus import Corpus
from benchmarks.homes import running_server
from rag_resources.core.golden import GoldenEntry
from rag_resources.core.metrics import DEPTH
from rag_resources.evaluation.runner import evaluate
from rag_resources.store.golden import write_golden

ROUNDS = 3


def ask(index: Index, entries: list[GoldenEntry]) -> None:
    """Retrieve as an evaluation does, and nothing else."""
    for entry in entries:
        index.pipeline.retrieve(entry.query, HYBRID, distinct_notes=DEPTH, cached=False)


def measure(index: Index, questions: list[str]) -> None:
    """Measure both in turns, so that a busy moment affects both."""
    entries = [GoldenEntry(question, (UUID(int=1),), "r", "factual", 1) for question in questions]
    with index.database.transaction() as connection:
        write_golden(connection, entries, replace=True)
    seconds = {"retrieval": 0.0, "evaluation": 0.0}
    ask(index, entries)
    for _ in range(ROUNDS):
        seconds["retrieval"] += timed(lambda: ask(index, entries))
        seconds["evaluation"] += timed(
            lambda: evaluate(index.database, index.pipeline, "bench", HYBRID)
        )
    ratio = seconds["evaluation"] / seconds["retrieval"]
    report(
        f"{len(questions):,} questions: retrieval {seconds['retrieval'] / ROUNDS:.1f} s, "
        f"evaluation {seconds['evaluation'] / ROUNDS:.1f} s"
    )
    report(f"evaluation / its retrievals: {ratio:.2f} (at most 1.2)", met=ratio <= 1.2)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=1_000)
    parser.add_argument("--chunks", type=int, default=10_000)
    parser.add_argument("--home", type=Path, help="keeps the index for the next run")
    asked = parser.parse_args()
    corpus = Corpus()
    with ExitStack() as stack:
        server = stack.enter_context(running_server(asked.home))
        index = stack.enter_context(opened(server, corpus, asked.chunks))
        questions = list(dict.fromkeys(corpus.questions(2 * asked.questions, stream=6)))
        measure(index, questions[: asked.questions])


if __name__ == "__main__":
    main()
