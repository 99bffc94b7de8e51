"""A migration's status as sentences and tables, for the command line and Dagster.

Its data is read by `store.migration_status`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from rag_resources.configurations import load_configurations
from rag_resources.core.chunking_version import chunking_hash
from rag_resources.core.durations import duration, months_in_words
from rag_resources.core.messages import Message
from rag_resources.core.migration_status import Quality
from rag_resources.core.tables import ReportTable
from rag_resources.database.pool import Database
from rag_resources.evaluation.evidence import count_and_read_evidence
from rag_resources.evaluation.summary import EVIDENCE_WORDS
from rag_resources.languages.formats import number
from rag_resources.languages.messages import operators
from rag_resources.settings import Settings
from rag_resources.store.migration import StoredBatch
from rag_resources.store.migration_status import MigrationStatus, read_migration_status

MODEL_STATES = {
    None: Message.STATUS_NOT_REGISTERED,
    "serving": Message.STATUS_SERVING,
    "building": Message.STATUS_BUILDING,
    "retired": Message.STATUS_RETIRED,
}
STATE_NAMES = {
    None: None,
    "serving": "serving",
    "building": "available",
    "retired": "retired",
}
"""The states of models in JSON: what does not serve may be complete."""

_STAGES = {
    "chunk": Message.STAGE_CHUNK,
    "embed_note": Message.STAGE_EMBED_NOTE,
    "embed_chunk": Message.STAGE_EMBED_CHUNK,
}
_ABSENT = "–"
_YES = "sí"


def read_status(database: Database, settings: Settings) -> MigrationStatus:
    """Return the progress of every month and model, with quality, errors and pace."""
    with database.snapshot() as connection:
        status = read_migration_status(
            connection,
            settings.embedding_models,
            chunking_hash=chunking_hash(settings.chunking),
        )
    evaluation = status.evaluation
    if evaluation is None:
        return status
    with database.transaction() as connection:
        evidence = count_and_read_evidence(
            connection,
            [evaluation],
            load_configurations(settings.configuration_folders),
            gate=settings.gate,
            settings=settings.search,
        )
    return replace(status, evidence=evidence[evaluation.evaluation_id])


def summary(status: MigrationStatus, *, first_month: str) -> list[str]:
    """Return sentences on the migration's progress, blocks, speed, and what to do next.

    Args:
        status: As read from the database.
        first_month: First monthly partition, `YYYY-MM`.
    """
    held = [status.hold.explanation] if status.hold else []
    total = status.total
    if not status.months:
        return [*held, Message.MIGRATION_NO_NOTES]
    said = [
        *held,
        *(
            Message.MIGRATION_CLOSED.format(
                model=batch.model,
                finished_at=batch.finished_at.astimezone(UTC),
                reason=batch.reason,
            )
            for batch in status.closed
        ),
        Message.MIGRATION_TOTAL.format(
            migrated=total.migrated,
            notes=total.notes,
            percent=number(total.percent_migrated, 2, operators()),
            remaining=total.remaining,
        ),
    ]
    for count, message in (
        (total.chunked - total.migrated, Message.MIGRATION_OUTDATED),
        (total.failed, Message.MIGRATION_FAILED_NOTES),
    ):
        if count:
            said.append(message.format(count=count))
    left = [month.month for month in status.months if month.remaining]
    current = f"{status.read_at.astimezone(UTC):%Y-%m}"
    said.extend(_outside(left, first_month, current))
    said.append(_serving(status))
    pace = [
        Message.MIGRATION_PACE_VECTORS.format(rate=rate, model=model)
        for model, rate in status.vectors_per_minute.items()
    ]
    if pace:
        said.append(Message.MIGRATION_PACE.format(pace=", ".join(pace)))
    if not left or any(first_month <= month <= current for month in left):
        said.extend(_prospect(status))
    return said


def tables(status: MigrationStatus) -> list[ReportTable]:
    """Return the tables of the status, leaving out empty ones."""
    found = (
        _months_table(status),
        _models_table(status),
        _quality_table(status),
        _batches_table(status),
        _errors_table(status),
    )
    return [table for table in found if table.rows]


def _outside(left: Sequence[str], first: str, current: str) -> Iterator[str]:
    """Name the months with remaining notes that no partition covers."""
    before = [month for month in left if month < first]
    if before:
        yield Message.INGEST_BEFORE_FIRST.format(first=first, month=before[0])
    after = [month for month in left if month > current]
    if after:
        yield Message.INGEST_AFTER_LAST.format(months=", ".join(after))


def _serving(status: MigrationStatus) -> str:
    if not (status.serving and status.serving_since):
        return Message.MIGRATION_SERVES_NOTHING
    return Message.STATUS_SERVES.format(
        configuration=status.serving.configuration,
        model=status.serving.model,
        since=f"{_utc(status.serving_since)} UTC",
    )


def _prospect(status: MigrationStatus) -> Iterator[str]:
    """Say when the migration will be done, or what blocks it."""
    if status.is_complete:
        yield Message.MIGRATION_COMPLETE
    elif status.ready_at and status.minutes_left is not None:
        yield Message.MIGRATION_READY_AT.format(
            duration=duration(60 * status.minutes_left),
            ready_at=status.ready_at.astimezone(UTC),
        )
    elif not status.hold and not status.closed:
        yield Message.MIGRATION_NO_ETA if status.is_working else Message.MIGRATION_IDLE


def _months_table(status: MigrationStatus) -> ReportTable:
    models = [model.name for model in status.models]
    rows = (*status.months, status.total) if status.months else ()
    return ReportTable(
        Message.PLOT_PROGRESS,
        (
            Message.COLUMN_MONTH,
            Message.COLUMN_NOTES,
            Message.COLUMN_MIGRATED,
            "%",
            *(Message.COLUMN_PENDING_OF.format(model=model) for model in models),
            Message.COLUMN_FAILURES,
        ),
        tuple(
            (
                month.month if month in status.months else Message.COLUMN_TOTAL,
                str(month.notes),
                str(month.migrated),
                f"{month.percent_migrated:.2f}",
                *(str(month.pending[model]) for model in models),
                str(month.failed),
            )
            for month in rows
        ),
    )


def _models_table(status: MigrationStatus) -> ReportTable:
    return ReportTable(
        Message.MIGRATION_MODELS,
        (
            Message.COLUMN_MODEL,
            Message.COLUMN_STATE,
            Message.COLUMN_SERVES,
            Message.COLUMN_CHUNK_VECTORS,
            "%",
            Message.COLUMN_PENDING,
        ),
        tuple(
            (
                model.name,
                MODEL_STATES[model.state],
                _YES if model.serves else _ABSENT,
                f"{model.current_chunks} / {model.chunks}",
                f"{model.percent:.2f}",
                str(model.pending_notes),
            )
            for model in status.models
        ),
    )


def _quality_table(status: MigrationStatus) -> ReportTable:
    quality = status.quality
    return ReportTable(
        Message.MIGRATION_QUALITY,
        (
            Message.COLUMN_OF,
            "Hit_Rate@10",
            "MRR",
            "p95 ms",
            Message.COLUMN_QUERIES,
            Message.COLUMN_MEASURED,
        ),
        (_quality_row(quality),) if quality else (),
    )


def _quality_row(quality: Quality) -> tuple[str, ...]:
    measured = quality.configuration or Message.MIGRATION_AFTER_BATCH.format(model=quality.model)
    if quality.is_disturbed:
        measured = Message.MIGRATION_DISTURBED.format(measured=measured)
    if quality.evidence and not quality.evidence.is_current:
        measured = f"{measured} ({EVIDENCE_WORDS[quality.evidence.state]})"
    return (
        measured,
        f"{quality.hit_rate_at_10:.3f}",
        f"{quality.mrr:.3f}",
        f"{quality.latency_p95_ms:.0f}",
        str(quality.total_queries),
        _utc(quality.measured_at),
    )


def _batches_table(status: MigrationStatus) -> ReportTable:
    return ReportTable(
        Message.MIGRATION_BATCHES,
        (
            Message.COLUMN_MODEL,
            Message.COLUMN_MEASURED,
            Message.COLUMN_MONTHS,
            Message.COLUMN_GATE,
            Message.COLUMN_REASON,
        ),
        tuple(
            (
                batch.model,
                _utc(batch.finished_at),
                months_in_words(batch.months) or Message.MIGRATION_MEASURED_AGAIN,
                gate_words(batch),
                batch.reason,
            )
            for batch in status.batches
        ),
        is_prose=True,
    )


def gate_words(batch: StoredBatch) -> str:
    """Say whether a batch's gate is open or closed, or which run has overridden it."""
    if batch.gate == "open":
        return Message.MIGRATION_GATE_OPEN
    if batch.overridden_at:
        return Message.MIGRATION_GATE_OVERRIDDEN.format(reason=batch.override_reason)
    return Message.MIGRATION_GATE_CLOSED


def _errors_table(status: MigrationStatus) -> ReportTable:
    return ReportTable(
        Message.MIGRATION_ERRORS,
        (
            Message.COLUMN_KIND,
            Message.COLUMN_MODEL,
            Message.COLUMN_COUNT,
            Message.COLUMN_EXAMPLES,
        ),
        tuple(
            (
                _STAGES[kind.stage],
                kind.model or _ABSENT,
                str(kind.count),
                "; ".join(f"{example.external_id}: {example.reason}" for example in kind.examples),
            )
            for kind in status.errors
        ),
        is_prose=True,
    )


def _utc(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M}"
