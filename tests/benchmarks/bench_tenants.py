"""Many tenants: questions of large and small ones of 1,000, against one that is alone.

    python -m tests.benchmarks.bench_tenants [--chunks N] [--tenants N] [--home FOLDER]

The sizes follow Zipf's law: of 1,000 tenants the first has an eighth of the chunks. Those whose
vectors are too many to compare all get indexes of their own, as by the job `promote_tenant`. Both
databases have as many chunks, are synthetic, and are asked in the role of a reader by turns; the
embedder is a look-up. Compare the ratios of one run, not the times. A folder given as home keeps
the databases for the next run.
"""

import argparse
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from rag_resources.core.configuration import RetrievalConfig, Strategy
from rag_resources.core.evaluation import percentiles
from rag_resources.core.retrievers import RankedList
from rag_resources.database.migrations import migrate
from rag_resources.database.pool import Access, Database
from rag_resources.database.server import EmbeddedServer
from rag_resources.retrieval.pipeline import RetrievalPipeline
from rag_resources.store.ranked_lists import EmbeddedQuery, ListRequest
from rag_resources.store.search import EXACT_VECTORS, SearchScope, plan_search, search
from rag_resources.store.vector_indexes import give_own_indexes
from tests.benchmarks.bench_retrieval import QUESTIONS, interleaved
from tests.benchmarks.corpus import CHUNKS_PER_NOTE, MODEL, Corpus, StoredEmbedder
from tests.benchmarks.homes import running_server
from tests.benchmarks.targets import report

RANKS = (1, 2, 4, 10, 100, 1_000)
"""Which tenants are asked, the largest being the first."""

ALONE = "default"
CONFIG = RetrievalConfig(model=MODEL.name, strategy=Strategy.HYBRID)
NEAREST = 20
CANDIDATES = CONFIG.top_k.retrieval
RECALL_QUESTIONS = 100


@dataclass(frozen=True)
class Index:
    """A database with a synthetic index."""

    owner: Database
    corpus: Corpus

    @property
    def reader(self) -> Database:
        """As whom questions are asked."""
        return self.owner.as_(Access.READER)

    def calls(
        self, tenant: str, config: RetrievalConfig, questions: Sequence[str]
    ) -> list[Callable[[], object]]:
        """Return calls that each ask a question of a pipeline of their own, without caches."""
        embedder = StoredEmbedder(self.corpus)
        pipeline = RetrievalPipeline(
            self.reader,
            embedder=lambda _: embedder,
            tenant=tenant,
            note_model=MODEL.name,
            caches=None,
        )
        return [partial(pipeline.retrieve, question, config) for question in questions]

    def recall(self, tenant: str) -> float:
        """Return the share of a tenant's exact nearest chunks that its searches find."""
        found = wanted = 0
        with self.reader.snapshot() as connection:
            connection.execute("SELECT set_config('rag.tenant', %s, TRUE)", [tenant])
            scope = SearchScope(tenant, chunk_model=MODEL.name)
            scope = scope.under(plan_search(connection, scope, models=[MODEL.name]))
            for vector in self.corpus.question_vectors[:RECALL_QUESTIONS]:
                lists = [
                    ListRequest(RankedList.SEMANTIC, embedded=EmbeddedQuery(MODEL, vector, -1))
                ]
                ours, exact = (
                    {candidate.chunk_id for candidate in ranking.candidates[:NEAREST]}
                    for each in (scope, replace(scope, selective=True))
                    for ranking in search(connection, lists, each, pool=CANDIDATES)
                )
                found += len(ours & exact)
                wanted += len(exact)
        return found / wanted


def tenants_by_note(notes: int, tenants: int) -> list[str]:
    """Draw whose each note is; the numbers of tenants are their ranks by size."""
    shares = 1 / np.arange(1, tenants + 1)
    drawn = np.random.default_rng(11).choice(tenants, size=notes, p=shares / shares.sum())
    return [f"tenant{1 + number}" for number in drawn]


@contextmanager
def opened(server: EmbeddedServer, name: str, corpus: Corpus, chunks: int) -> Iterator[Index]:
    """Open an index, made unless it is there."""
    server.ensure_database(name)
    migrate(server.dsn(name))
    with Database(server.dsn(name)) as database:
        corpus.load(database, chunks)
        yield Index(database, corpus)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--tenants", type=int, default=1_000)
    parser.add_argument("--home", type=Path, help="keeps the databases for the next run")
    asked = parser.parse_args()
    owners = tenants_by_note(asked.chunks // CHUNKS_PER_NOTE, asked.tenants)
    sizes = Counter(owners)
    with ExitStack() as stack:
        server = stack.enter_context(running_server(asked.home))
        alone, shared = (
            stack.enter_context(opened(server, name, corpus, asked.chunks))
            for name, corpus in (
                (f"alone_{asked.chunks}", Corpus()),
                (f"shared_{asked.chunks}", Corpus(tenant_of=lambda number: owners[number])),
            )
        )
        for rank in (rank for rank in RANKS if rank <= asked.tenants):
            tenant = f"tenant{rank}"
            if CHUNKS_PER_NOTE * sizes[tenant] > EXACT_VECTORS:
                built = give_own_indexes(shared.owner, tenant, min_rows=1)
                report(f"tenant {rank:,} has its own indexes, {len(built)} built now")
            questions = alone.corpus.questions(QUESTIONS, stream=rank)
            taken = interleaved(
                alone.calls(ALONE, CONFIG, questions), shared.calls(tenant, CONFIG, questions)
            )
            one, of_many = (percentiles(times) for times in taken)
            ratio, recall = of_many.p95_ms / one.p95_ms, shared.recall(tenant)
            report(
                f"tenant {rank:,} with {CHUNKS_PER_NOTE * sizes[tenant]:,} of {asked.chunks:,} "
                f"chunks: p50 {of_many.p50_ms:.1f}, p95 {of_many.p95_ms:.1f} ms; alone "
                f"{one.p50_ms:.1f}, {one.p95_ms:.1f}; p95 {ratio:.2f} times (at most 2), "
                f"recall {recall:.3f} (at least .98)",
                met=ratio <= 2 and recall >= 0.98,
            )


if __name__ == "__main__":
    main()
