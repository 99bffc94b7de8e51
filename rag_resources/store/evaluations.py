"""Rows of `evaluation_results` and `evaluation_queries`."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any
from uuid import UUID, uuid4

from psycopg.types.json import Jsonb

from rag_resources.core.answer_metrics import AnswerSummary, figures_from_json
from rag_resources.core.configuration import RetrievalConfig
from rag_resources.core.evaluation import (
    QueryOutcome,
    StoredEvaluation,
    Summary,
)
from rag_resources.core.evidence import Contents
from rag_resources.core.golden import GoldenEntry, golden_hash
from rag_resources.core.golden_places import LocatedPlace, NoteRange
from rag_resources.core.judging import JudgeSummary
from rag_resources.core.metrics import SERVED
from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries
from rag_resources.languages.messages import to_stored
from rag_resources.store.golden import asked_golden

_COLUMNS = tuple(column.name for column in fields(StoredEvaluation))
_SUMMARY_METRICS = (
    "hit_rate_at_1",
    "hit_rate_at_3",
    "hit_rate_at_5",
    "hit_rate_at_10",
    "mrr",
    "precision_at_10",
    "recall_at_10",
    "ndcg_at_10",
)


@dataclass(frozen=True, slots=True)
class Present:
    """The current versions in a database, independent of a configuration.

    Attributes:
        model_digests: Digests by model, of the registered models that are not retired; empty if
            unknown.
        chunking_hashes: Hashes of all chunking settings in use.
        index_version: Changes with every change to searched data.
    """

    golden_hash: str
    model_digests: Mapping[str, str]
    chunking_hashes: tuple[str, ...]
    index_version: int


@dataclass(frozen=True, slots=True)
class EvaluationContext:
    """The data and settings that an evaluation was run on, besides its configuration.

    Attributes:
        model_digest: Of the model's weights; empty if it is unknown or retired.
        contents: Fingerprints of what the configuration searched.
        measured_at: When it began, by the database's clock.
    """

    configuration: str
    config: RetrievalConfig
    golden_hash: str
    model_digest: str
    chunking_hashes: tuple[str, ...]
    contents: Contents
    measured_at: datetime
    run_id: str | None = None


def insert_evaluation(
    connection: Connection,
    context: EvaluationContext,
    summary: Summary,
    outcomes: Sequence[QueryOutcome],
) -> UUID:
    """Store an evaluation with its questions, in the caller's transaction. Property 29."""
    evaluation_id = uuid4()
    figures = _figures(summary)
    answers = summary.answers.figures.model_dump(mode="json") if summary.answers else None
    evaluation = {
        "id": evaluation_id,
        "configuration": context.configuration,
        "config": context.config.model_dump(mode="json"),
        "config_hash": context.config.config_hash,
        "golden_hash": context.golden_hash,
        "model": context.config.model,
        "model_digest": context.model_digest,
        "chunking_hashes": context.chunking_hashes,
        "run_id": context.run_id,
        "stage_latencies": {name: asdict(values) for name, values in summary.stages.items()},
        "breakdown": dict(summary.breakdown),
        "contents": context.contents,
        "measured_at": context.measured_at,
        **_judge_columns(summary.judgements),
        **figures | {"answers": answers},
    }
    queries().insert_evaluation(connection, evaluation=_row(evaluation))
    questions = [_query_row(evaluation_id, summary, outcome) for outcome in outcomes]
    queries().insert_evaluation_queries(connection, questions=_row(questions))
    return evaluation_id


def _row(columns: Any) -> Jsonb:
    """Return columns as JSON; ids and times as texts."""
    return Jsonb(columns, dumps=partial(json.dumps, default=str))


def unstored_evaluation(context: EvaluationContext, summary: Summary) -> StoredEvaluation:
    """Return an unstored evaluation in the form of a stored one; its id belongs to no row."""
    figures = {name: value for name, value in _figures(summary).items() if name in _COLUMNS}
    return StoredEvaluation(
        evaluation_id=uuid4(),
        configuration=context.configuration,
        config=context.config.model_dump(mode="json"),
        config_hash=context.config.config_hash,
        golden_hash=context.golden_hash,
        model=context.config.model,
        model_digest=context.model_digest,
        chunking_hashes=context.chunking_hashes,
        created_at=datetime.now(UTC),
        breakdown=summary.breakdown,
        contents=context.contents,
        measured_at=context.measured_at,
        **figures,
        **_judge_columns(summary.judgements),
    )


def latest_evaluation(connection: Connection, configuration: str) -> StoredEvaluation | None:
    """Return the newest evaluation of a configuration."""
    return next(iter(history_of(connection, [configuration], limit=1)), None)


def fetch_evaluation(connection: Connection, evaluation_id: UUID) -> StoredEvaluation | None:
    """Return an evaluation by its id."""
    row = queries().fetch_evaluation(connection, evaluation_id=evaluation_id)
    return stored_evaluation(row) if row else None


def latest_evaluations(connection: Connection) -> list[StoredEvaluation]:
    """Return the newest evaluation of every configuration, by name."""
    return [stored_evaluation(row) for row in queries().latest_evaluations(connection)]


def list_evaluations(
    connection: Connection, *, config_hash: str | None, limit: int
) -> list[StoredEvaluation]:
    """Return the newest evaluations, of one configuration hash if it is given."""
    rows = queries().list_evaluations(
        connection, configurations=None, config_hash=config_hash, row_limit=limit
    )
    return [stored_evaluation(row) for row in rows]


def history_of(
    connection: Connection, configurations: Collection[str] | None, *, limit: int
) -> list[StoredEvaluation]:
    """Return the newest evaluations of the given configurations, or of all, oldest first."""
    named = None if configurations is None else list(configurations)
    rows = queries().list_evaluations(
        connection, configurations=named, config_hash=None, row_limit=limit
    )
    return [stored_evaluation(row) for row in rows][::-1]


def evaluations_outside_runs(
    connection: Connection, after: tuple[datetime, UUID], *, until: datetime, limit: int
) -> list[StoredEvaluation]:
    """Return the evaluations that no Dagster run made, oldest first, ties by id.

    Args:
        connection: Open.
        after: Time and id of the last one that is known already.
        until: As `store.promotions.settled_until` returns it.
        limit: How many at most.
    """
    after_at, after_id = after
    rows = queries().evaluations_outside_runs(
        connection, after_at=after_at, after_id=after_id, until=until, row_limit=limit
    )
    return [stored_evaluation(row) for row in rows]


def stored_evaluation(row: Any) -> StoredEvaluation:
    """Return a row of `evaluation_results` as a core object."""
    found = StoredEvaluation(row.id, *(getattr(row, name) for name in _COLUMNS[1:]))
    return replace(
        found,
        chunking_hashes=tuple(found.chunking_hashes),
        answers=figures_from_json(row.answers),
    )


def _figures(summary: Summary) -> dict[str, Any]:
    """The columns that hold the measured metrics."""
    return {
        "total_queries": summary.total_queries,
        "failed_queries": summary.failed_queries,
        "degraded_queries": summary.degraded_queries,
        "hit_rate_at_10_low": summary.verdict.interval.low,
        "hit_rate_at_10_high": summary.verdict.interval.high,
        "latency_p50_ms": summary.latency.p50_ms,
        "latency_p95_ms": summary.latency.p95_ms,
        "latency_p99_ms": summary.latency.p99_ms,
        "latency_p95_low_ms": summary.latency_p95_interval[0],
        "latency_p95_high_ms": summary.latency_p95_interval[1],
        "latency_queries": summary.latency_queries,
        "late_queries": summary.late_queries,
        "served_hit_rate": summary.metrics[SERVED],
        "gate": summary.verdict.state.value,
        **{name: summary.metrics[name] for name in _SUMMARY_METRICS},
        "answers": summary.answers.figures if summary.answers else None,
    }


def _query_row(evaluation_id: UUID, summary: Summary, outcome: QueryOutcome) -> dict[str, Any]:
    judged = outcome.judged
    return {
        "evaluation_id": evaluation_id,
        "golden_id": outcome.golden.golden_id,
        "query": outcome.golden.query,
        "category": outcome.golden.category,
        "difficulty": outcome.golden.difficulty,
        "relevant_note_ids": list(outcome.golden.relevant_note_ids),
        "retrieved_note_ids": list(judged.distinct),
        "first_relevant_rank": judged.first_relevant_rank,
        "metrics": dict(summary.per_query[outcome.key]),
        "latency_ms": outcome.latency_ms,
        "stage_latencies": dict(outcome.stages),
        "degraded": list(outcome.degraded),
        "error": to_stored(outcome.error) if outcome.error else None,
        "places": [_place_row(place) for place in outcome.places],
        **_answer_columns(summary.judgements, outcome),
        **_citation_columns(summary.answers, outcome),
    }


def _json_of(metrics: Mapping[str, float] | None) -> dict[str, float] | None:
    return dict(metrics) if metrics else None


def _place_row(place: LocatedPlace) -> dict[str, Any]:
    """A place as JSON, without its text: notes may be purged."""
    return {
        "note": str(place.stated.note_id),
        "start": place.stated.start,
        "end": place.stated.end,
        "similarity": place.similarity,
    }


def _citation_columns(answers: AnswerSummary | None, outcome: QueryOutcome) -> dict[str, Any]:
    """The columns of an answer's citations: ranges of notes, without their text."""
    own = answers.answers.get(outcome.key) if answers else None
    cited = own.citations if own else None
    return {
        "citations": None if cited is None else [list(map(_range, each)) for each in cited],
        "answer_metrics": _json_of(own.metrics) if own else None,
    }


def _range(cited: NoteRange) -> dict[str, Any]:
    return {"note": str(cited.note_id), "start": cited.start, "end": cited.end}


def _judge_columns(judgements: JudgeSummary | None) -> dict[str, Any]:
    info = judgements.info if judgements else None
    return {
        "faithfulness": judgements.faithfulness if judgements else None,
        "answer_relevance": judgements.answer_relevance if judgements else None,
        "judge": info.name if info else None,
        "judge_model": info.model if info else None,
        "judge_version": info.version if info else None,
        "answerer": info.answerer if info else None,
        "judged_queries": judgements.judged if judgements else None,
        "judge_failures": judgements.failures if judgements else None,
    }


def _answer_columns(judgements: JudgeSummary | None, outcome: QueryOutcome) -> dict[str, Any]:
    judged = judgements.answers.get(outcome.key) if judgements else None
    answer = judged.answer if judged else None
    judgement = judged.judgement if judged else None
    cited = [outcome.context[rank - 1].note_id for rank in answer.ranks] if answer else []
    return {
        "answer": answer.text if answer and answer.found else None,
        "answer_note_ids": list(dict.fromkeys(cited)) if answer else None,
        "faithfulness": judgement.faithfulness if judgement else None,
        "answer_relevance": judgement.answer_relevance if judgement else None,
        "unsupported_claims": list(judgement.unsupported) if judgement else None,
        "judge_error": to_stored(judged.failure) if judged and judged.failure else None,
    }


def read_present(connection: Connection, entries: Sequence[GoldenEntry] | None = None) -> Present:
    """Return the versions of everything except configurations.

    Args:
        connection: Any.
        entries: The golden dataset, if the caller has already read it.
    """
    row = queries().read_versions(connection)
    return Present(
        golden_hash=golden_hash(asked_golden(connection) if entries is None else entries),
        model_digests=row.model_digests,
        chunking_hashes=tuple(row.chunking_hashes),
        index_version=row.index_version,
    )
