"""The sensor of new documents. That of notes is in `rag_assets.sensors`."""

import time
from collections.abc import Iterable
from datetime import UTC
from pathlib import Path

import dagster as dg

from rag_assets.file_changes import SETTLED_NS, change_times, identity
from rag_assets.jobs import ingest_job
from rag_assets.runs.partitions import monthly
from rag_resources.application import open_application
from rag_resources.core.errors import SettingsChangedError
from rag_resources.core.messages import Message
from rag_resources.documents.folder import SIDECARS
from rag_resources.documents.media_types import SUFFIXES
from rag_resources.settings import Settings

WATCHED = frozenset((*SUFFIXES, *SIDECARS))


def build_new_documents_sensor(settings: Settings) -> dg.SensorDefinition:
    """Build the sensor that ingests new and changed documents."""

    @dg.sensor(
        job=ingest_job,
        minimum_interval_seconds=30,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=Message.SENSOR_NEW_DOCUMENTS,
    )
    def new_documents(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        """Ingest the months of the documents that were written since the cursor.

        The cursor is as that of `new_notes`. A new document belongs to the present month, a changed
        one to the month in which it arrived.
        """
        source = settings.documents_source
        if source is None:
            return dg.SkipReason(Message.DOCUMENTS_NOT_SET)
        if not source.exists():
            return dg.SkipReason(Message.DOCUMENTS_FOLDER.format(path=source))
        latest, _, which = (context.cursor or "").partition(" ")
        seen = int(latest) if which == identity(source) else 0
        now = time.time_ns() - SETTLED_NS
        times = change_times(source, seen, WATCHED)
        changed = {path: at for path, at in times if seen < at <= now}
        if not changed:
            return dg.SkipReason(Message.SOURCE_UNCHANGED.format(path=source))
        try:
            keys = _months(settings, source, changed)
        except SettingsChangedError as error:
            return dg.SkipReason(error.message)
        request = dg.RunRequest(
            run_key=f"documents {max(changed.values())}",
            tags={
                "dagster/asset_partition_range_start": min(keys),
                "dagster/asset_partition_range_end": max(keys),
            },
        )
        cursor = f"{max(changed.values())} {identity(source)}"
        return dg.SensorResult(run_requests=[request], cursor=cursor)

    return new_documents


def _months(settings: Settings, source: Path, changed: Iterable[Path]) -> set[str]:
    """Return the partitions of these files; the last one also reports what is rejected.

    Raises:
        SettingsChangedError: A run would refuse the source.
    """
    known = monthly(settings).get_partition_keys()
    addresses = {path.relative_to(source).as_posix() for path in changed}
    # The metadata of `plan.pdf` are in `plan.pdf.yaml`.
    addresses |= {name.removesuffix(suffix) for name in addresses for suffix in SIDECARS}
    with open_application(settings) as application:
        application.documents.require_settings()
        arrived = application.documents.arrivals(addresses)
    keys = {f"{at.astimezone(UTC):%Y-%m}-01" for at in arrived}
    return keys & set(known) | {known[-1]}
