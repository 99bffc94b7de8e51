"""What reacts by itself: new note files, failed runs, the assets' automation conditions."""

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import structlog

# As the webserver does when a person cancels a backfill; Dagster, pinned exactly, exports neither.
from dagster._core.execution.backfill import (
    BulkActionsFilter,
    BulkActionStatus,
    PartitionBackfill,
)

from rag_assets.assets.indexing import chunks, describe_closed, embeddings_key
from rag_assets.failures import failure_reason
from rag_assets.jobs import index_job, ingest_job
from rag_assets.partitions import monthly
from rag_resources.application import open_application
from rag_resources.core.errors import InvalidSourceError
from rag_resources.core.messages import Message
from rag_resources.core.types import NoteRecord
from rag_resources.indexing.chunk import chunking_hash
from rag_resources.ingestion.sources import READERS, iter_source
from rag_resources.settings import load_settings
from rag_resources.store.migration import StoredBatch, closed_batches

log = structlog.get_logger()


@dg.sensor(
    job=ingest_job,
    minimum_interval_seconds=30,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description=Message.SENSOR_NEW_NOTES,
)
def new_notes(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
    """Ingest the months of the files that were written since the cursor.

    The cursor is the latest change time of a file, in nanoseconds; a change time cannot be set
    back, so a file moved in with an old date is seen too.
    """
    source = load_settings().notes_source
    if source is None:
        return dg.SkipReason(Message.SOURCE_NOT_SET)
    if not source.exists():
        return dg.SkipReason(Message.SOURCE_MISSING.format(path=source))
    seen = int(context.cursor or 0)
    changed = {path: at for path, at in _change_times(source) if at > seen}
    if not changed:
        return dg.SkipReason(Message.SOURCE_UNCHANGED.format(path=source))
    latest = max(changed.values())
    keys = _months(changed)
    if not keys:
        return dg.SensorResult(cursor=str(latest))
    request = dg.RunRequest(
        run_key=f"{latest}",
        tags={
            "dagster/asset_partition_range_start": min(keys),
            "dagster/asset_partition_range_end": max(keys),
        },
    )
    return dg.SensorResult(run_requests=[request], cursor=str(latest))


def _change_times(source: Path) -> Iterator[tuple[Path, int]]:
    paths = sorted(source.rglob("*")) if source.is_dir() else [source]
    for path in paths:
        hidden = any(part.startswith(".") for part in path.relative_to(source).parts)
        if hidden or path.suffix.lower() not in READERS:
            continue
        # A file that goes away while it is looked at is not there.
        with suppress(FileNotFoundError):
            if path.is_file():
                yield path, path.stat().st_ctime_ns


def _months(paths: dict[Path, int]) -> set[str]:
    """The partitions of the notes in some files.

    The last one stands for notes outside all of them, and for bad records: its run names them.
    """
    known = monthly.get_partition_keys()
    keys = set()
    for path in paths:
        for created_at in _dates(path):
            key = f"{created_at.astimezone(UTC):%Y-%m}-01" if created_at else ""
            keys.add(key if key in known else known[-1])
    return keys


def _dates(path: Path) -> Iterator[datetime | None]:
    """When the notes of a file were written; None for a bad record or file."""
    try:
        for record in iter_source(path):
            yield record.created_at if isinstance(record, NoteRecord) else None
    except InvalidSourceError:
        yield None


@dg.run_failure_sensor(
    name="failed_runs",
    default_status=dg.DefaultSensorStatus.RUNNING,
    description=Message.SENSOR_FAILED_RUNS,
)
def failed_runs(context: dg.RunFailureSensorContext) -> None:
    """Report every failed run in the daemon's log, one structured record each."""
    failures = context.get_step_failure_events()
    error = "\n".join(map(failure_reason, failures)) or context.failure_event.message or ""
    log.error(
        "run_failed",
        run_id=context.dagster_run.run_id,
        job=context.dagster_run.job_name,
        partition=context.partition_key,
        error=error,
    )
    context.log.error(
        Message.RUN_FAILED.format(
            run_id=context.dagster_run.run_id, job=context.dagster_run.job_name, error=error
        )
    )


@dg.sensor(
    minimum_interval_seconds=30,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description=Message.SENSOR_STOP_BACKFILLS,
)
def stop_backfills(context: dg.SensorEvaluationContext) -> dg.SkipReason:
    """Cancel the backfills whose next batches a closed gate would turn away one by one.

    Once for each closing: a backfill that is launched, or brings an override, knowing that the gate
    is closed is left alone.
    """
    running = context.instance.get_backfills(
        filters=BulkActionsFilter(statuses=[BulkActionStatus.REQUESTED])
    )
    running = [backfill for backfill in running if not _brings_override(backfill)]
    if not running:
        return dg.SkipReason(Message.BACKFILLS_NONE)
    settings = load_settings()
    with (
        open_application(settings) as application,
        application.database.transaction() as connection,
    ):
        closed = closed_batches(
            connection, settings.embedding_models, chunking_hash=chunking_hash(settings.chunking)
        )
    stopped = {
        backfill.backfill_id: backfill
        for backfill in running
        for batch in closed
        if _is_stopped_by(backfill, batch)
    }
    for backfill in stopped.values():
        context.instance.update_backfill(backfill._replace(status=BulkActionStatus.CANCELING))
    if not stopped:
        return dg.SkipReason(Message.BACKFILLS_GO_ON)
    log.warning("backfills_stopped", backfills=list(stopped), models=[b.model for b in closed])
    return dg.SkipReason(
        Message.BACKFILLS_STOPPED.format(
            backfills=", ".join(stopped), batches=describe_closed(closed)
        )
    )


def _brings_override(backfill: PartitionBackfill) -> bool:
    """Whether its batches say themselves why they go on: the gate will let them."""
    return "override_quality_gate" in str(backfill.run_config)


def _is_stopped_by(backfill: PartitionBackfill, batch: StoredBatch) -> bool:
    """Whether a backfill works on what a closed gate concerns, and began before it closed."""
    gated = {chunks.key, embeddings_key(batch.model)}
    concerned = backfill.job_name == index_job.name or not gated.isdisjoint(
        backfill.asset_selection or ()
    )
    return concerned and backfill.backfill_timestamp < batch.finished_at.timestamp()


automation = dg.AutomationConditionSensorDefinition(
    "automation",
    target=dg.AssetSelection.all(),
    default_status=dg.DefaultSensorStatus.RUNNING,
)
