"""The sensors: new files, what waits, what was done without a run, failed runs, and automation."""

import json
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import dagster as dg

from rag_assets.configured import Configured
from rag_assets.gates import shown_evaluation
from rag_assets.jobs import ingest_job
from rag_assets.keys import DOCUMENTS, NOTES, PROMOTED_CONFIG
from rag_assets.metadata import promotion_metadata
from rag_assets.partitions import monthly
from rag_assets.runs.failures import failure_reasons
from rag_resources.application import Application, open_application
from rag_resources.core.errors import InvalidSourceError, MixedSourcesError
from rag_resources.core.types import NoteRecord
from rag_resources.documents.media_types import SUFFIXES
from rag_resources.documents.web import is_web
from rag_resources.ingestion.content_source import SAMPLE_NOTES
from rag_resources.ingestion.sources import READERS, iter_source
from rag_resources.languages.messages import _
from rag_resources.settings import Settings
from rag_resources.store.promotions import Promotion

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


def build_sensors(configured: Configured) -> list[dg.SensorDefinition]:
    """Build the sensors that depend on the settings."""
    settings = configured.settings
    return [
        build_new_notes_sensor(settings),
        build_waiting_notes_sensor(settings),
        build_new_documents_sensor(settings),
        build_outside_runs_sensor(configured),
    ]


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
                _("There is no {path}. Check how it is spelt.").format(path=source)
            )
        latest, __, which = (context.cursor or "").partition(" ")
        if context.cursor is None:
            seen = read_since(context.instance, settings, NOTES)
        else:
            seen = int(latest) if which == identity(source) else 0
        # Changes made while the folders are being read may be missed; the next tick gets them.
        now = time.time_ns() - SETTLED_NS
        changed = {path: at for path, at in change_times(source, seen, READERS) if seen < at <= now}
        if settings.mirror:
            changed |= {path: at for path, at in _folder_times(source) if seen < at <= now}
        if not changed:
            if settings.mirror and _is_due(settings):
                request = _range_request(
                    monthly(settings).get_partition_keys()[-1:], f"mirror {datetime.now(UTC):%F}"
                )
                return dg.SensorResult(run_requests=[request], cursor=context.cursor)
            return dg.SkipReason(_("There is nothing to do."))
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


def _folder_times(source: Path) -> Iterator[tuple[Path, int]]:
    """Yield the folders of a source with their change times: a file that is gone changes its."""
    for path in [source, *source.rglob("*")]:
        with suppress(FileNotFoundError):
            if path.is_dir() and not any(
                part.startswith(".") for part in path.relative_to(source).parts
            ):
                yield path, path.stat().st_ctime_ns


def _is_due(settings: Settings) -> bool:
    """Whether a note is to be deleted because its file has been gone for long enough."""
    with open_application(settings) as application:
        return application.notes.has_missing_due()


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
        # A folder may have lost a file, which belongs to no month any more.
        for created_at in [None] if path.is_dir() else _dates(path):
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


_HOUR_NS = 3_600 * 10**9


WATCHED = frozenset(SUFFIXES)


def build_new_documents_sensor(settings: Settings) -> dg.SensorDefinition:
    """Build the sensor that ingests new and changed documents."""

    @dg.sensor(
        job=ingest_job,
        minimum_interval_seconds=30,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=_(
            "Registers and reads new or changed documents of DOCUMENTS_SOURCE: those of a folder "
            "as soon as they change, those of the web every DOWNLOAD_EVERY_HOURS hours."
        ),
    )
    def new_documents(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        """Ingest the months of the documents that were written since the cursor.

        Documents on the web are all checked at fixed intervals. The cursor is like that of
        `new_notes`. A new document belongs to the present month, a changed one to the month in
        which it arrived.
        """
        source = settings.documents_source
        if source is None:
            return dg.SkipReason(_("There are no documents: DOCUMENTS_SOURCE is not set."))
        latest, __, which = (context.cursor or "").partition(" ")
        now = time.time_ns() - SETTLED_NS
        try:
            own = _identity(source)
            if context.cursor is None:
                seen = read_since(context.instance, settings, DOCUMENTS)
            else:
                seen = int(latest) if which == own else 0
            changed = {name: at for name, at in _changes(settings, source, seen, now) if at <= now}
            if not changed:
                return dg.SkipReason(_("There is nothing to do."))
            keys = _arrival_months(settings, changed.keys())
        except FileNotFoundError:
            return dg.SkipReason(
                _("{path} cannot be read: check the path, the permissions and the disk.").format(
                    path=source
                )
            )
        request = _range_request(keys, f"documents {max(changed.values())}")
        cursor = f"{max(changed.values())} {own}"
        return dg.SensorResult(run_requests=[request], cursor=cursor)

    return new_documents


def _identity(source: str) -> str:
    return source if "://" in source else identity(Path(source))


def _changes(settings: Settings, source: str, seen: int, now: int) -> Iterator[tuple[str, int]]:
    """Yield the addresses of documents that may have changed since a moment, and when.

    Raises:
        FileNotFoundError: There is no such folder or list.
    """
    if is_web(source):
        is_due = now - seen >= settings.download_every_hours * _HOUR_NS
        is_list = "://" not in source
        if is_due or (is_list and Path(source).stat().st_ctime_ns > seen):
            with open_application(settings) as application:
                yield from ((address, now) for address in application.documents.addresses())
            yield source, now
        return
    folder = Path(source)
    if not folder.exists():
        raise FileNotFoundError(folder)
    for path, at in change_times(folder, seen, WATCHED):
        if at > seen:
            yield path.relative_to(folder).as_posix(), at


def _arrival_months(settings: Settings, changed: Collection[str]) -> set[str]:
    """Return the partitions of these documents; the last one also reports what is rejected."""
    known = monthly(settings).get_partition_keys()
    with open_application(settings) as application:
        arrived = application.documents.arrivals(changed)
    keys = {f"{at.astimezone(UTC):%Y-%m}-01" for at in arrived}
    return keys & set(known) | {known[-1]}


SETTLED_NS = 100_000_000
"""Age at which a change is read, because file system clocks advance in steps."""


def identity(source: Path) -> str:
    """Return an identity that changes if another folder takes the place of the source."""
    return f"{source.stat().st_ino if source.is_dir() else 0} {source}"


def change_times(source: Path, seen: int, suffixes: Collection[str]) -> Iterator[tuple[Path, int]]:
    """Yield the files of a source with the time each was changed, or moved there since `seen`.

    Args:
        source: A folder, or a file.
        seen: A time in nanoseconds.
        suffixes: Suffixes of the files to yield, in lower case; others are ignored.
    """
    moved: dict[Path, int] = {}
    paths = sorted(source.rglob("*")) if source.is_dir() else [source]
    for path in paths:
        if any(part.startswith(".") for part in path.relative_to(source).parts):
            continue
        # A file may be deleted while the folder is read.
        with suppress(FileNotFoundError):
            changed, came = path.stat().st_ctime_ns, moved.get(path.parent, 0)
            if path.is_dir():
                # Moving a folder changes it and its parent; a new note changes only its folder.
                both = (changed, path.parent.stat().st_ctime_ns)
                moved[path] = max(came, max(both) if min(both) > seen else 0)
            elif path.is_file() and path.suffix.lower() in suffixes:
                yield path, max(changed, came)


LOOKED_AT = 10
"""Latest runs over the first month that are looked at; sensors rarely start one."""


def read_since(instance: dg.DagsterInstance, settings: Settings, asset: dg.AssetKey) -> int:
    """Return the time, in nanoseconds, up to which a source was read in whole; 0 if unknown.

    It is the start of the last run over all months, such as the main job's. So what the main job
    read is not read again when the daemon is started afterwards.

    Args:
        instance: Has the runs.
        settings: Name the first month.
        asset: What is made of the source.
    """
    keys = monthly(settings).get_partition_keys()
    first = dg.AssetRecordsFilter(asset_key=asset, asset_partitions=[keys[0]])
    for event in instance.fetch_materializations(first, limit=LOOKED_AT).records:
        run = instance.get_run_record_by_id(event.run_id)
        if run is None or run.start_time is None:
            continue
        tags = run.dagster_run.tags
        span = [tags.get(f"dagster/asset_partition_range_{end}") for end in ("start", "end")]
        if span == [keys[0], keys[-1]]:
            return int(run.start_time * 1e9)
    return 0


PER_TICK = 20
"""Most evaluations, and most promotions, that a tick reports; it has a minute."""


_BEFORE_ALL = "1970-01-01T00:00:00Z"


_NOTHING = {"evaluation": [_BEFORE_ALL, UUID(int=0).hex], "promotion": [_BEFORE_ALL, 0]}
"""The cursor before the first tick: time and id of the last evaluation and promotion shown."""


def build_outside_runs_sensor(configured: Configured) -> dg.SensorDefinition:
    """Build the sensor that reports the evaluations and promotions that no run made."""

    @dg.sensor(
        minimum_interval_seconds=30,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=_(
            "Shows in their assets every rollback, and the evaluations and promotions that no run "
            "made, as those of the command line; it launches nothing."
        ),
    )
    def outside_runs(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        """Report what is newer than the cursor, oldest first.

        An evaluation becomes an observation with its checks: it has the metadata of a
        materialisation, but starts no promotion. A promotion or rollback becomes a materialisation,
        so the page of `promoted_config` says what serves, and nothing depends on it. The cursor
        advances only if the tick succeeds, so the next tick reports what a failed one did not.
        """
        shown: dict[str, list[Any]] = json.loads(context.cursor or json.dumps(_NOTHING))
        (evaluated, evaluation_id), (promoted, promotion_id) = shown.values()
        known = configured.configurations
        with open_application(configured.settings) as application:
            evaluations = application.evaluations.outside_runs(
                (datetime.fromisoformat(evaluated), UUID(evaluation_id)), limit=PER_TICK
            )
            promotions = application.serving.outside_runs(
                (datetime.fromisoformat(promoted), promotion_id), limit=PER_TICK
            )
            if not evaluations and not promotions:
                return dg.SkipReason(_("There is nothing to do."))
            events: list[
                dg.AssetMaterialization | dg.AssetObservation | dg.AssetCheckEvaluation
            ] = []
            for evaluation in evaluations:
                shown["evaluation"] = [
                    evaluation.created_at.isoformat(),
                    str(evaluation.evaluation_id),
                ]
                # One whose model is switched off, or whose file is gone, has no asset.
                if evaluation.configuration in known:
                    events += shown_evaluation(
                        application, evaluation, known[evaluation.configuration]
                    )
            for number, promotion in promotions:
                shown["promotion"] = [promotion.promoted_at.isoformat(), number]
                events.append(_shown_promotion(application, promotion))
        told = _(
            "Made without Dagster and shown now: evaluations, {evaluations}; promotions, "
            "{promotions}."
        ).format(evaluations=len(evaluations), promotions=len(promotions))
        return dg.SensorResult(
            asset_events=events, skip_reason=dg.SkipReason(told), cursor=json.dumps(shown)
        )

    return outside_runs


def _shown_promotion(application: Application, promotion: Promotion) -> dg.AssetMaterialization:
    """Return the materialisation of a promotion or rollback, with the figures it was made on.

    Whether these are current is not told: they were then, and may not be when this is shown.
    """
    known = promotion.evaluation_id
    evaluation = application.evaluations.find(known) if known else None
    return dg.AssetMaterialization(
        PROMOTED_CONFIG, metadata=promotion_metadata(promotion, evaluation)
    )
