"""The sensors: new note files, what waits, failed runs, and automation conditions."""

import json
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg

from rag_assets.file_changes import SETTLED_NS, change_times, identity
from rag_assets.jobs import ingest_job
from rag_assets.keys import NOTES
from rag_assets.runs.failures import failure_reasons
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
    """Build the sensor that has notes and uploads indexed that were written without Dagster."""

    @dg.sensor(
        job=ingest_job,
        minimum_interval_seconds=30,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=_(
            "Ingests and indexes the months with notes that are not indexed, and with documents "
            "that were uploaded and not read: those written without Dagster, as by the API or "
            "“rag ingest”, or while their month was being indexed."
        ),
    )
    def waiting_notes(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        """Ingest the months in which something waits; automation builds what depends on them.

        The cursor holds what was requested and has waited ever since: what a run could not do is
        not asked for again until something changes. Notes wait for other runs, which may be
        indexing them.
        """
        known = monthly(settings).get_partition_keys()
        uploads, notes = set(), set()
        with open_application(settings) as application:
            if settings.keeps_files:
                for upload, at in application.documents.waiting_uploads().items():
                    key = f"{at.astimezone(UTC):%Y-%m}-01"
                    uploads.add((key if key in known else known[-1], str(upload)))
            for month in application.indexing.waiting_months():
                state = f"{' '.join(month.steps)} {month.notes} {month.written_at.isoformat()}"
                notes.add((f"{month.start:%Y-%m}-01", state))
        asked = {tuple(each) for each in json.loads(context.cursor or "[]")} & (uploads | notes)
        new = {each for each in (uploads | notes) - asked if each[0] in known}
        if context.instance.get_runs_count(dg.RunsFilter(statuses=GOING_ON)):
            new &= uploads
        cursor = json.dumps(sorted(asked | new))
        if not new:
            return dg.SensorResult(
                skip_reason=dg.SkipReason(_("There is nothing to do.")), cursor=cursor
            )
        request = _range_request([key for key, __ in new])
        return dg.SensorResult(run_requests=[request], cursor=cursor)

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


@dg.run_failure_sensor(
    name="failed_runs",
    default_status=dg.DefaultSensorStatus.RUNNING,
    description=_("Tells each failed run in the log."),
)
def failed_runs(context: dg.RunFailureSensorContext) -> None:
    """Log each failed run in the daemon's log, as one sentence."""
    run = context.dagster_run
    told = {dg.DagsterEventType.STEP_FAILURE, dg.DagsterEventType.ASSET_CHECK_EVALUATION}
    entries = context.instance.all_logs(run.run_id, of_type=told)
    reasons = failure_reasons(entry.get_dagster_event() for entry in entries)
    assets = sorted(key.to_user_string() for key in run.asset_selection or ())
    context.log.error(
        _("The run {run_id} of {job} has failed: {error}").format(
            run_id=run.run_id,
            job=", ".join(assets) or run.job_name,
            error=reasons or context.failure_event.message,
        )
    )


automation = dg.AutomationConditionSensorDefinition(
    "automation",
    target=dg.AssetSelection.all(),
    description=_(
        "Launches what depends on what has changed: vectors after chunks, evaluations after "
        "vectors, promotion after evaluations."
    ),
    default_status=dg.DefaultSensorStatus.RUNNING,
)
