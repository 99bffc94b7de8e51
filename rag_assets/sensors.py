"""What reacts by itself: new note files, failed runs, the assets' automation conditions."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dagster as dg
import structlog

# As the webserver does when a person cancels a backfill; Dagster, pinned exactly, exports neither.
from dagster._core.execution.backfill import (
    BulkActionsFilter,
    BulkActionStatus,
    PartitionBackfill,
)

from rag_assets.indexing.assets import describe_closed
from rag_assets.jobs import index_job, ingest_job
from rag_assets.keys import CHUNKS, embeddings_key
from rag_assets.runs.failures import failure_reason
from rag_assets.runs.liveness import end_dead_runs
from rag_assets.runs.partitions import monthly
from rag_resources.application import open_application
from rag_resources.core.errors import InvalidSourceError, SettingsChangedError
from rag_resources.core.messages import Message
from rag_resources.core.types import NoteRecord
from rag_resources.ingestion.content_settings import NOTES_SETTINGS, require_settings
from rag_resources.ingestion.content_source import SAMPLE_NOTES
from rag_resources.ingestion.sources import READERS, iter_source
from rag_resources.settings import Settings

SETTLED_NS = 100_000_000
"""Age of a change from which it is looked at: the clocks of file systems go in steps."""

READ_FILES, READ_BYTES = 2_000, 20_000_000
"""What a tick, which has a minute, reads at most to learn the months of what is new."""

log = structlog.get_logger()


def build_new_notes_sensor(settings: Settings) -> dg.SensorDefinition:
    """Make the sensor that ingests new and changed files."""

    @dg.sensor(
        job=ingest_job,
        minimum_interval_seconds=30,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=Message.SENSOR_NEW_NOTES,
    )
    def new_notes(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        """Ingest the months of the files that were written since the cursor.

        The cursor is the latest change time of a file, in nanoseconds, and the source's identity.
        A change time cannot be set back, so a file or folder moved in with an old date is seen too.
        """
        source = settings.notes_source or (SAMPLE_NOTES if settings.sample_by_default else None)
        if source is None:
            return dg.SkipReason(Message.SOURCE_NOT_SET)
        if not source.exists():
            return dg.SkipReason(Message.SOURCE_MISSING.format(path=source))
        latest, _, which = (context.cursor or "").partition(" ")
        seen = int(latest) if which == _identity(source) else 0
        # What is written while the folders are read may be missed: it is for the next tick.
        now = time.time_ns() - SETTLED_NS
        changed = {path: at for path, at in _change_times(source, seen) if seen < at <= now}
        if not changed:
            return dg.SkipReason(Message.SOURCE_UNCHANGED.format(path=source))
        refusal = _refusal(settings)
        if refusal:
            return dg.SkipReason(refusal)
        latest = str(max(changed.values()))
        cursor = f"{latest} {_identity(source)}"
        keys = _months(list(changed), settings)
        if not keys:
            return dg.SensorResult(cursor=cursor)
        request = dg.RunRequest(
            run_key=latest,
            tags={
                "dagster/asset_partition_range_start": min(keys),
                "dagster/asset_partition_range_end": max(keys),
            },
        )
        return dg.SensorResult(run_requests=[request], cursor=cursor)

    return new_notes


def _refusal(settings: Settings) -> str:
    """Say why a run would not read the source; empty if it would."""
    try:
        with open_application(settings) as application:
            source = require_settings(application.database, settings, NOTES_SETTINGS)
    except SettingsChangedError as error:
        return error.message
    return source.notice


def _identity(source: Path) -> str:
    """Tell a source from another, also from one that comes in its place."""
    return f"{source.stat().st_ino if source.is_dir() else 0} {source}"


def _change_times(source: Path, seen: int) -> Iterator[tuple[Path, int]]:
    """The files of a source, and when each came to be as it is, or where it is since `seen`."""
    moved: dict[Path, int] = {}
    paths = sorted(source.rglob("*")) if source.is_dir() else [source]
    for path in paths:
        if any(part.startswith(".") for part in path.relative_to(source).parts):
            continue
        # What goes away while it is looked at is not there.
        with suppress(FileNotFoundError):
            changed, came = path.stat().st_ctime_ns, moved.get(path.parent, 0)
            if path.is_dir():
                # A move changes a folder and the one it is in, a new note only the first.
                both = (changed, path.parent.stat().st_ctime_ns)
                moved[path] = max(came, max(both) if min(both) > seen else 0)
            elif path.is_file() and path.suffix.lower() in READERS:
                yield path, max(changed, came)


def _months(paths: Sequence[Path], settings: Settings) -> set[str]:
    """The partitions of the notes in some files; the first and the last if there is much to read.

    The last one also stands for notes outside all of them, and for bad records: its run names them.
    """
    known = monthly(settings).get_partition_keys()
    if sum(map(_size, paths)) > READ_BYTES or len(paths) > READ_FILES:
        return {known[0], known[-1]}
    keys = set()
    for path in paths:
        for created_at in _dates(path):
            key = f"{created_at.astimezone(UTC):%Y-%m}-01" if created_at else ""
            keys.add(key if key in known else known[-1])
    return keys


def _size(path: Path) -> int:
    with suppress(FileNotFoundError):
        return path.stat().st_size
    return 0


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


def build_stop_backfills_sensor(settings: Settings) -> dg.SensorDefinition:
    """Make the sensor that cancels backfills which a gate or a hold would turn away."""

    @dg.sensor(
        minimum_interval_seconds=30,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=Message.SENSOR_STOP_BACKFILLS,
    )
    def stop_backfills(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        """Cancel the backfills whose next batches would be turned away one by one.

        Once for each closing of a gate and each hold: a backfill that is launched knowing of it, or
        brings an override of the gate, is left alone.
        """
        running = context.instance.get_backfills(
            filters=BulkActionsFilter(statuses=[BulkActionStatus.REQUESTED])
        )
        if not running:
            return dg.SkipReason(Message.BACKFILLS_NONE)
        stops = _read_stops(settings)
        stopped = {
            backfill.backfill_id: backfill
            for backfill in running
            if any(stop.concerns(backfill) for stop in stops)
        }
        for backfill in stopped.values():
            context.instance.update_backfill(backfill._replace(status=BulkActionStatus.CANCELING))
        if not stopped:
            return dg.SkipReason(Message.BACKFILLS_GO_ON)
        log.warning("backfills_stopped", backfills=list(stopped))
        reasons = "\n".join(stop.reason for stop in stops)
        return dg.SkipReason(
            Message.BACKFILLS_STOPPED.format(backfills=", ".join(stopped), reasons=reasons)
        )

    return stop_backfills


@dataclass(frozen=True, slots=True)
class _Stop:
    """Why batches do not start.

    Attributes:
        assets: Whose batches.
        since: Aware; a backfill launched later knows of it.
        reason: In Spanish.
        is_gate: Whether a backfill may bring its own reason to go on.
    """

    assets: frozenset[dg.AssetKey]
    since: datetime
    reason: str
    is_gate: bool

    def concerns(self, backfill: PartitionBackfill) -> bool:
        """Whether a backfill works on those assets, and began before."""
        if self.is_gate and _overrides(backfill.run_config or {}):
            return False
        selected = backfill.job_name == index_job.name or not self.assets.isdisjoint(
            backfill.asset_selection or ()
        )
        return selected and backfill.backfill_timestamp < self.since.timestamp()


def _overrides(run_config: Mapping[str, Any]) -> bool:
    """Whether a run config has a reason to go on though a gate is closed."""
    configs = [(op or {}).get("config") or {} for op in (run_config.get("ops") or {}).values()]
    return any(str(config.get("override_quality_gate") or "").strip() for config in configs)


def _read_stops(settings: Settings) -> list[_Stop]:
    """Return the closed gates, and the hold if there is one."""
    with open_application(settings) as application:
        closed, hold = application.migration.closed_batches(), application.migration.held()
    stops = [
        _Stop(
            frozenset((CHUNKS, embeddings_key(batch.model))),
            batch.finished_at,
            describe_closed([batch]),
            is_gate=True,
        )
        for batch in closed
    ]
    if hold:
        assets = frozenset((CHUNKS, *map(embeddings_key, settings.embedding_models)))
        stops.append(_Stop(assets, hold.set_at, hold.explanation, is_gate=False))
    return stops


@dg.sensor(
    minimum_interval_seconds=30,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description=Message.SENSOR_DEAD_RUNS,
)
def dead_runs(context: dg.SensorEvaluationContext) -> dg.SkipReason:
    """Report runs whose process was gone before they started; Dagster waits an hour for them."""
    ended = end_dead_runs(context.instance)
    return dg.SkipReason(Message.RUNS_ENDED.format(count=len(ended)))


automation = dg.AutomationConditionSensorDefinition(
    "automation",
    target=dg.AssetSelection.all(),
    default_status=dg.DefaultSensorStatus.RUNNING,
)
