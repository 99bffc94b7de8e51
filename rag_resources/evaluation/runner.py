"""Runs the golden dataset through the pipeline. The metrics are computed in `core.evaluation`."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

from rag_resources.core.configuration import RetrievalConfig
from rag_resources.core.errors import InvalidGoldenDatasetError, ModelMissingError, RagError
from rag_resources.core.evaluation import QueryOutcome, Summary, summarize
from rag_resources.core.filters import RetrievalFilters
from rag_resources.core.gate import GateConfig
from rag_resources.core.golden import GoldenEntry
from rag_resources.core.golden_places import LocatedPlace
from rag_resources.core.measurement import Versions
from rag_resources.core.messages import Message
from rag_resources.core.metrics import DEPTH
from rag_resources.core.passage_metrics import NoteRange
from rag_resources.database.pool import Database
from rag_resources.evaluation.judging import Judging, judge_outcomes
from rag_resources.retrieval.pipeline import RetrievalPipeline
from rag_resources.retrieval.profile import Profile, ProfileSummary
from rag_resources.store.evaluations import EvaluationContext, insert_evaluation
from rag_resources.store.golden import list_golden, locate_places
from rag_resources.store.models import fetch_model
from rag_resources.store.versions import read_present


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A finished evaluation; `evaluation_id` is None if it was not stored."""

    evaluation_id: UUID | None
    summary: Summary
    outcomes: tuple[QueryOutcome, ...]
    profile: ProfileSummary
    versions: Versions


def evaluate(
    database: Database,
    pipeline: RetrievalPipeline,
    configuration: str,
    config: RetrievalConfig,
    *,
    judging: Judging | None = None,
    gate: GateConfig | None = None,
    run_id: str | None = None,
    store: bool = True,
    progress: Callable[[int], None] = lambda _: None,
) -> Evaluation:
    """Run every golden question, one after another, and store the metrics.

    A question that fails counts as a miss and is stored with its error. For clean latencies each
    question runs alone and uncached; answers are generated and judged after all of them.

    Args:
        database: Open.
        pipeline: Over that database.
        configuration: The name under which the evaluation is stored.
        config: The configuration to evaluate.
        judging: Who answers and judges; None evaluates retrieval only.
        gate: The criteria of the verdict; None uses the defaults.
        run_id: Dagster's run, if any.
        store: Whether to write `evaluation_results`.
        progress: Called with 1 after each question, and again after its answer is judged.

    Raises:
        InvalidGoldenDatasetError: There are no golden questions.
        ModelMissingError: Nothing is indexed with the configuration's model.
        DatabaseUnavailableError: The database was lost outside a retrieval.
    """
    with database.transaction() as connection:
        entries = list_golden(connection)
        places = locate_places(connection, entries)
        versions = read_present(connection, entries).versions(config)
        model = fetch_model(connection, config.model)
    if not entries:
        raise InvalidGoldenDatasetError(Message.GOLDEN_EMPTY, [])
    if model is None and config.uses_vectors:
        raise ModelMissingError(
            Message.MODEL_NOT_INDEXED.format(model=config.model), model=config.model
        )
    # Keep model loading, connecting and planning out of the first question's latency.
    pipeline.warm_up(config)
    _ask(pipeline, entries[0], config)
    outcomes = []
    profile = Profile()
    for entry in entries:
        outcome = _ask(pipeline, entry, config, places.get(str(entry.golden_id), ()))
        profile.record(outcome.latency_ms, outcome.stages, degraded=outcome.degraded, cached=False)
        outcomes.append(outcome)
        progress(1)
    judgements = judge_outcomes(judging, outcomes, progress) if judging else None
    summary = summarize(outcomes, judgements, gate=gate)
    if not store:
        return Evaluation(None, summary, tuple(outcomes), profile.summary(), versions)
    context = EvaluationContext(
        configuration=configuration,
        config=config,
        golden_hash=versions.golden_hash,
        model_digest=versions.model_digest,
        index_version=versions.index_version,
        chunking_hashes=versions.chunking_hashes,
        run_id=run_id,
    )
    with database.transaction() as connection:
        evaluation_id = insert_evaluation(connection, context, summary, outcomes)
    return Evaluation(evaluation_id, summary, tuple(outcomes), profile.summary(), versions)


def find_hits(
    pipeline: RetrievalPipeline,
    config: RetrievalConfig,
    entries: Sequence[GoldenEntry],
    filters: RetrievalFilters,
) -> dict[UUID, bool]:
    """Return whether each golden question finds a relevant note among the first ten, by id."""
    pipeline.warm_up(config)
    _ask(pipeline, entries[0], config, filters=filters)
    return {
        entry.golden_id: _ask(pipeline, entry, config, filters=filters).judged.first_relevant_rank
        is not None
        for entry in entries
        if entry.golden_id
    }


def _ask(
    pipeline: RetrievalPipeline,
    entry: GoldenEntry,
    config: RetrievalConfig,
    places: tuple[LocatedPlace, ...] = (),
    filters: RetrievalFilters | None = None,
) -> QueryOutcome:
    started = time.perf_counter()
    try:
        response = pipeline.retrieve(
            entry.query, config, distinct_notes=DEPTH, filters=filters, cached=False
        )
    except RagError as error:
        elapsed_ms = (time.perf_counter() - started) * 1000
        return QueryOutcome(entry, (), elapsed_ms, {}, error=error.message, places=places)
    return QueryOutcome(
        golden=entry,
        retrieved_note_ids=tuple(result.note_id for result in response.results),
        latency_ms=response.latency_ms,
        stages=response.stages,
        degraded=response.degraded,
        error=response.error,
        # The ranking begins with what a user gets.
        context=response.results[: config.top_k.final],
        retrieved_passages=tuple(
            NoteRange(result.note_id, result.start_char, result.end_char)
            for result in response.results
        ),
        places=places,
    )
