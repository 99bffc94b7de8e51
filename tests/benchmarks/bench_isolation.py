"""Isolation: what row-level security costs a question, asked as the owner and as a reader by turns.

    python -m tests.benchmarks.bench_isolation [--chunks N] [--home FOLDER]

The index is synthetic and has one tenant; the embedder is a look-up. Compare the ratios of one run,
not the times. A folder given as home keeps the index for the next run.
"""

import argparse
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from rag_resources.core.configuration import RetrievalConfig, Strategy
from rag_resources.core.evaluation import percentiles
from rag_resources.database.migrations import migrate
from rag_resources.database.pool import Access, Database
from rag_resources.retrieval.pipeline import RetrievalPipeline
from tests.benchmarks.bench_retrieval import QUESTIONS, interleaved
from tests.benchmarks.corpus import MODEL, Corpus, StoredEmbedder
from tests.benchmarks.homes import running_server
from tests.benchmarks.targets import report


def asked(
    database: Database, corpus: Corpus, config: RetrievalConfig, questions: Sequence[str]
) -> list[Callable[[], object]]:
    """Return calls that each ask one question of a pipeline of their own, without caches."""
    embedder = StoredEmbedder(corpus)
    pipeline = RetrievalPipeline(
        database, embedder=lambda _: embedder, tenant="default", note_model=MODEL.name, caches=None
    )
    return [partial(pipeline.retrieve, question, config) for question in questions]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chunks", type=int, nargs="+", default=[2_000, 100_000])
    parser.add_argument("--home", type=Path, help="keeps the index for the next run")
    arguments = parser.parse_args()
    corpus = Corpus()
    with running_server(arguments.home) as server:
        for chunks in arguments.chunks:
            name = f"bench_{chunks}"
            server.ensure_database(name)
            migrate(server.dsn(name))
            with ExitStack() as stack:
                # A pool each, so that neither's prepared statements are planned for the other.
                owner, other = (stack.enter_context(Database(server.dsn(name))) for _ in range(2))
                reader = other.as_(Access.READER)
                corpus.load(owner, chunks)
                for stream, strategy in enumerate((Strategy.FULLTEXT, Strategy.HYBRID)):
                    config = RetrievalConfig(model=MODEL.name, strategy=strategy)
                    questions = corpus.questions(QUESTIONS, stream=stream)
                    taken = interleaved(
                        asked(owner, corpus, config, questions),
                        asked(reader, corpus, config, questions),
                    )
                    as_owner, as_reader = (percentiles(times).p50_ms for times in taken)
                    report(
                        f"{chunks:,} chunks, {strategy.value}: owner p50 {as_owner:.2f} ms, "
                        f"reader {as_reader:.2f} ms, {as_reader / as_owner:.2f} times"
                    )


if __name__ == "__main__":
    main()
