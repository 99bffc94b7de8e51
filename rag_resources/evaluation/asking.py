"""Asks golden questions: in full to measure quality, and under users' deadline to measure latency.

The results are used in `evaluation.runner`.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from rag_resources.core.configuration import RetrievalConfig
from rag_resources.core.errors import InvalidInputError, RagError
from rag_resources.core.evaluation import QueryOutcome, Timing
from rag_resources.core.filters import RetrievalFilters
from rag_resources.core.golden import GoldenEntry
from rag_resources.core.golden_places import LocatedPlace
from rag_resources.core.metrics import DEPTH
from rag_resources.database.pool import Database
from rag_resources.retrieval.pipeline import DEADLINE_MS, RetrievalPipeline
from rag_resources.store.golden import list_golden

BOUND_MS = 30_000.0
"""Longest wait for one question; long, so that a busy machine does not change the quality."""
LATENCY_SAMPLE = 100
"""Most questions whose latency is measured; the 95 % interval of their p95 is ranks 91 to 100."""


def count_steps(questions: int, *, answers: bool = False) -> int:
    """Return how many times an evaluation reports progress, not counting judging.

    Args:
        questions: How many there are.
        answers: Whether they are answered, and so asked without their notes as well.
    """
    return questions * (2 if answers else 1) + min(questions, LATENCY_SAMPLE)


def golden_questions(database: Database, tag: str | None) -> list[GoldenEntry]:
    """Return the golden questions, or those with a tag."""
    with database.transaction() as connection:
        entries = list_golden(connection)
    return [entry for entry in entries if tag is None or tag in entry.tags]


def ask_in_full(
    pipeline: RetrievalPipeline,
    config: RetrievalConfig,
    entries: Sequence[GoldenEntry],
    *,
    places: Mapping[str, tuple[LocatedPlace, ...]] | None = None,
    filters: RetrievalFilters | None = None,
    hides_relevant: bool = False,
    progress: Callable[[int], None] = lambda _: None,
) -> list[QueryOutcome]:
    """Ask questions one after another, each for at most `BOUND_MS`.

    A question that lost a stage is asked once more, after all others. If it loses one again, its
    outcome says so in `degraded`.

    Args:
        pipeline: It answers uncached.
        config: How to search.
        entries: Stored questions.
        places: Their places, by golden id.
        filters: Conditions the notes must meet.
        hides_relevant: Whether each question is asked as if its relevant notes did not exist.
        progress: Called with 1 after each question.
    """
    pipeline.warm_up(config)
    found = places or {}

    def asked(entry: GoldenEntry) -> QueryOutcome:
        own = _hiding(entry, filters) if hides_relevant else filters
        outcome = _ask(pipeline, entry, config, filters=own, deadline_ms=BOUND_MS)
        return replace(outcome, places=found.get(str(entry.golden_id), ()))

    outcomes = []
    for entry in entries:
        outcomes.append(asked(entry))
        progress(1)
    if any(outcome.degraded for outcome in outcomes):
        # An open circuit breaker would refuse the second try because of the first.
        pipeline.close_breakers()
    return [asked(item.golden) if item.degraded else item for item in outcomes]


def _hiding(entry: GoldenEntry, filters: RetrievalFilters | None) -> RetrievalFilters:
    """Return filters that also leave out the relevant notes of a question."""
    others = filters or RetrievalFilters()
    hidden = (*others.excluded_note_ids, *entry.relevant_note_ids)
    return others.model_copy(update={"excluded_note_ids": hidden})


def time_questions(
    pipeline: RetrievalPipeline,
    config: RetrievalConfig,
    entries: Sequence[GoldenEntry],
    *,
    progress: Callable[[int], None] = lambda _: None,
) -> list[Timing]:
    """Ask questions as users do, and return how long each took.

    At most `LATENCY_SAMPLE` are asked, spread evenly. A question that was not answered in full
    counts with at least the deadline: its full answer takes longer.

    Args:
        pipeline: It has asked the same questions before, so models and connections are warm.
        config: How to search.
        entries: Stored questions.
        progress: Called with 1 after each question.
    """
    count = min(len(entries), LATENCY_SAMPLE)
    timings = []
    for at in range(count):
        asked = _ask(pipeline, entries[at * len(entries) // count], config)
        latency_ms = max(asked.latency_ms, DEADLINE_MS) if asked.degraded else asked.latency_ms
        timings.append(Timing(latency_ms, asked.stages, asked.degraded))
        progress(1)
    return timings


def _ask(
    pipeline: RetrievalPipeline,
    entry: GoldenEntry,
    config: RetrievalConfig,
    *,
    filters: RetrievalFilters | None = None,
    deadline_ms: float = DEADLINE_MS,
) -> QueryOutcome:
    started = time.perf_counter()
    try:
        response = pipeline.retrieve(
            entry.query,
            config,
            distinct_notes=DEPTH,
            filters=filters,
            deadline_ms=deadline_ms,
            cached=False,
        )
    except RagError as error:
        elapsed_ms = (time.perf_counter() - started) * 1000
        # A question that cannot be asked is a miss; any other error may be gone at the next try.
        degraded = () if isinstance(error, InvalidInputError) else ("retrieval",)
        return QueryOutcome(entry, (), elapsed_ms, {}, degraded=degraded, error=error.message)
    return QueryOutcome(
        golden=entry,
        retrieved_note_ids=tuple(result.note_id for result in response.results),
        latency_ms=response.latency_ms,
        stages=response.stages,
        degraded=response.degraded,
        error=response.error,
        # The ranking begins with the results that a user gets.
        context=response.results[: config.top_k.final],
    )
