"""The sensors: new note files, failed runs, closed gates, and automation conditions."""

import json
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dagster as dg

# Private, as Dagster is pinned exactly: what makes the name of a run without a job, and what the
# webserver cancels a backfill with.
from dagster._core.definitions.assets.job.asset_job import is_reserved_asset_job_name
from dagster._core.execution.backfill import (
    BulkActionsFilter,
    BulkActionStatus,
    PartitionBackfill,
)

from rag_assets.file_changes import SETTLED_NS, change_times, identity
from rag_assets.indexing.gate import describe_closed
from rag_assets.jobs import index_job, ingest_job
from rag_assets.keys import CHUNKS, NOTES, embeddings_key, holds_vectors, windows_key
from rag_assets.runs.failures import failure_reason
from rag_assets.runs.liveness import end_dead_runs
from rag_assets.runs.partitions import monthly
from rag_assets.runs.readings import read_since
from rag_resources.application import open_application
from rag_resources.core.errors import InvalidSourceError, MixedSourcesError
from rag_resources.core.types import NoteRecord
from rag_resources.ingestion.content_source import SAMPLE_NOTES
from rag_resources.ingestion.sources import READERS, iter_source
from rag_resources.languages.messages import _
from rag_resources.settings import Settings

GOING_ON = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]
"""A run in one of these states may be indexing the notes that wait."""

READ_FILES, READ_BYTES = 2_000, 20_000_000
"""Most bytes that a tick, which has a minute, reads to find the months of new notes."""


def build_new_notes_sensor(settings: Settings) -> dg.SensorDefinition:
    """Build the sensor that ingests new and changed files."""

    @dg.sensor(
        job=ingest_job,
        minimum_interval_seconds=30,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=_("Ingests the months of new or changed files of NOTES_SOURCE."),
    )
    def new_notes(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        """Ingest the months of the files that were written since the cursor.

        The cursor holds the latest change time of a file, in nanoseconds, and the source's
        identity. A change time (ctime) cannot be set back, so files moved in with an old date are
        seen too.
        """
        source = settings.notes_source or (SAMPLE_NOTES if settings.sample_by_default else None)
        if source is None:
            return dg.SkipReason(_("NOTES_SOURCE is empty: there is no source to watch."))
        if not source.exists():
            return dg.SkipReason(
                _(
                    "The folder or file of notes {path} does not exist. Check the spelling of the "
                    "path."
                ).format(path=source)
            )
        latest, __, which = (context.cursor or "").partition(" ")
        if context.cursor is None:
            seen = read_since(context.instance, settings, NOTES)
        else:
            seen = int(latest) if which == identity(source) else 0
        # Changes made while the folders are being read may be missed; the next tick gets them.
        now = time.time_ns() - SETTLED_NS
        changed = {path: at for path, at in change_times(source, seen, READERS) if seen < at <= now}
        if not changed:
            return dg.SkipReason(_("There is nothing to do.").format(path=source))
        refusal = _refusal(settings)
        if refusal:
            return dg.SkipReason(refusal)
        latest = str(max(changed.values()))
        cursor = f"{latest} {identity(source)}"
        keys = _months(list(changed), settings)
        if not keys:
            return dg.SensorResult(cursor=cursor)
        return dg.SensorResult(run_requests=[_range_request(keys, latest)], cursor=cursor)

    return new_notes


def build_waiting_notes_sensor(settings: Settings) -> dg.SensorDefinition:
    """Build the sensor that has notes indexed that were written without Dagster."""

    @dg.sensor(
        job=ingest_job,
        minimum_interval_seconds=30,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=_(
            "Ingests and indexes the months with notes that are not indexed: those written "
            "without Dagster, as by “rag ingest” or “rag notes restore”, or while their month was "
            "being indexed."
        ),
    )
    def waiting_notes(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        """Ingest the months in which notes wait, so that automation builds what depends on them.

        The cursor holds what waited at the last request, as far as it has waited ever since: what a
        run could not do is not asked for again until something changes.
        """
        with open_application(settings) as application:
            known = monthly(settings).get_partition_keys()
            found = {
                key: f"{' '.join(month.steps)} {month.notes} {month.written_at.isoformat()}"
                for month in application.indexing.waiting_months()
                if (key := f"{month.start:%Y-%m}-01") in known
            }
        if context.instance.get_runs_count(dg.RunsFilter(statuses=GOING_ON)):
            asked = json.loads(context.cursor or "{}")
            left = {key: state for key, state in asked.items() if found.get(key) == state}
            return dg.SensorResult(
                skip_reason=dg.SkipReason(
                    _("Runs are going on, and may be indexing the notes that wait.")
                ),
                cursor=json.dumps(left),
            )
        cursor = json.dumps(found)
        if not found or cursor == context.cursor:
            return dg.SensorResult(
                skip_reason=dg.SkipReason(_("There is nothing to do.")), cursor=cursor
            )
        return dg.SensorResult(run_requests=[_range_request(found)], cursor=cursor)

    return waiting_notes


def _range_request(keys: Collection[str], run_key: str | None = None) -> dg.RunRequest:
    """Request a run over the months from the first to the last of some partitions."""
    tags = {
        "dagster/asset_partition_range_start": min(keys),
        "dagster/asset_partition_range_end": max(keys),
    }
    return dg.RunRequest(run_key=run_key, tags=tags)


def _refusal(settings: Settings) -> str:
    """Return why a run would refuse the source; empty if it would not."""
    try:
        with open_application(settings) as application:
            source = application.notes.source_to_read()
    except MixedSourcesError as error:
        return error.message
    return source.notice


def _months(paths: Sequence[Path], settings: Settings) -> set[str]:
    """Return the partitions of the notes in these files; the first and last if there are too many.

    The last partition also stands for notes outside all partitions and for bad records, because its
    run reports them.
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
    """Yield the dates of a file's notes; None for a bad record or file."""
    try:
        for record in iter_source(path):
            yield record.created_at if isinstance(record, NoteRecord) else None
    except InvalidSourceError:
        yield None


_FROM_OUTSIDE = "marked as failed from outside the execution context"
"""What Dagster says of a run whose process could not begin, or ended."""


@dg.run_failure_sensor(
    name="failed_runs",
    default_status=dg.DefaultSensorStatus.RUNNING,
    description=_("Tells each failed run in the log."),
)
def failed_runs(context: dg.RunFailureSensorContext) -> None:
    """Log each failed run in the daemon's log, as one sentence."""
    failures = context.get_step_failure_events()
    error = "\n".join(map(failure_reason, failures)) or _without_steps(context.failure_event)
    context.log.error(
        _("The run {run_id} of {job} has failed: {error}").format(
            run_id=context.dagster_run.run_id, job=_made_by(context.dagster_run), error=error
        )
    )


def _made_by(run: dg.DagsterRun) -> str:
    """Return the job of a run; of a run without one, as automation starts them, its assets."""
    if not is_reserved_asset_job_name(run.job_name):
        return run.job_name
    keys = [
        *(run.asset_selection or ()),
        *(own.asset_key for own in run.asset_check_selection or ()),
    ]
    return ", ".join(sorted({key.to_user_string() for key in keys})) or run.job_name


def _without_steps(event: dg.DagsterEvent) -> str:
    """Say why a run failed without a step that failed."""
    message = event.message or ""
    return (
        _(
            "it could not begin, or its process ended. The cause is on the page of the run. If "
            "you changed settings or configuration files since “rag ui” began, correct what is "
            "not valid and restart it"
        )
        if _FROM_OUTSIDE in message
        else message
    )


def build_stop_backfills_sensor(settings: Settings) -> dg.SensorDefinition:
    """Build the sensor that cancels backfills whose batches a gate or a hold would refuse."""

    @dg.sensor(
        minimum_interval_seconds=30,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=_(
            "Asks for running backfills to stop when the quality gate of a model closes or "
            "somebody stops the migration."
        ),
    )
    def stop_backfills(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        """Cancel the backfills whose remaining batches would all be refused.

        A backfill launched after the gate closed or the hold began is left alone, and so is one
        with an override of the gate.
        """
        running = context.instance.get_backfills(
            filters=BulkActionsFilter(statuses=[BulkActionStatus.REQUESTED])
        )
        if not running:
            return dg.SkipReason(_("There is nothing to do."))
        stops = _read_stops(settings)
        stopped = {
            backfill.backfill_id: backfill
            for backfill in running
            if any(stop.concerns(backfill) for stop in stops)
        }
        for backfill in stopped.values():
            context.instance.update_backfill(backfill._replace(status=BulkActionStatus.CANCELING))
        if not stopped:
            return dg.SkipReason(_("There is nothing to do."))
        reasons = "\n".join(stop.reason for stop in stops)
        told = _("It was asked for {backfills} to stop.\n{reasons}").format(
            backfills=", ".join(stopped), reasons=reasons
        )
        context.log.warning(told)
        return dg.SkipReason(told)

    return stop_backfills


@dataclass(frozen=True, slots=True)
class _Stop:
    """Why batches cannot start.

    Attributes:
        assets: The assets whose batches are stopped.
        since: Time zone aware; backfills launched later are left alone.
        reason: In Spanish.
        is_gate: Whether a backfill can override it with a reason.
    """

    assets: frozenset[dg.AssetKey]
    since: datetime
    reason: str
    is_gate: bool

    def concerns(self, backfill: PartitionBackfill) -> bool:
        """Whether a backfill was launched before this, and can do nothing while it lasts.

        Without chunks, no later asset is made. A model's gate does not stop the vectors of others.
        """
        if self.is_gate and _overrides(backfill.run_config or {}):
            return False
        selected = set(backfill.asset_selection or ())
        if backfill.job_name == index_job.name:
            selected.add(CHUNKS)
        work = {key for key in selected if key == CHUNKS or holds_vectors(key)}
        stops = CHUNKS in work & self.assets or (work and work <= self.assets)
        return bool(stops) and backfill.backfill_timestamp < self.since.timestamp()


def _overrides(run_config: Mapping[str, Any]) -> bool:
    """Whether a run configuration gives a reason to override a closed gate."""
    configs = [(op or {}).get("config") or {} for op in (run_config.get("ops") or {}).values()]
    return any(str(config.get("override_quality_gate") or "").strip() for config in configs)


def _stopped_by(model: str, serving: str) -> frozenset[dg.AssetKey]:
    """Return what a model's gate stops: its vectors, and chunks if the model serves."""
    chunks = (CHUNKS,) if model == serving else ()
    return frozenset((embeddings_key(model), windows_key(model), *chunks))


def _read_stops(settings: Settings) -> list[_Stop]:
    """Return the closed gates and the hold, if any."""
    with open_application(settings) as application:
        closed, hold = application.migration.closed_batches(), application.migration.held()
        serving = application.serving.now().config.model
    stops = [
        _Stop(
            _stopped_by(batch.model, serving),
            batch.finished_at,
            describe_closed([batch]),
            is_gate=True,
        )
        for batch in closed
    ]
    if hold:
        models = settings.embedding_models
        assets = frozenset((CHUNKS, *map(embeddings_key, models), *map(windows_key, models)))
        stops.append(_Stop(assets, hold.set_at, hold.explanation, is_gate=False))
    return stops


@dg.sensor(
    minimum_interval_seconds=15,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description=_(
        "Fails runs whose process is gone, so that they do not keep their place in the queue."
    ),
)
def dead_runs(context: dg.SensorEvaluationContext) -> dg.SkipReason:
    """Report runs whose process died before they started; Dagster alone would wait an hour."""
    ended = end_dead_runs(context.instance)
    return dg.SkipReason(_("Runs without a process: {count}.").format(count=len(ended)))


automation = dg.AutomationConditionSensorDefinition(
    "automation",
    target=dg.AssetSelection.all(),
    description=_(
        "Launches what depends on what has changed: vectors after chunks, evaluations after "
        "vectors, promotion after evaluations."
    ),
    default_status=dg.DefaultSensorStatus.RUNNING,
)
