"""The sensor of new documents. That of notes is in `rag_assets.sensors`."""

import time
from collections.abc import Collection, Iterator
from datetime import UTC
from pathlib import Path

import dagster as dg

from rag_assets.file_changes import SETTLED_NS, change_times, identity
from rag_assets.jobs import ingest_job
from rag_assets.keys import DOCUMENTS
from rag_assets.runs.partitions import monthly
from rag_assets.runs.readings import read_since
from rag_resources.application import open_application
from rag_resources.documents.media_types import SUFFIXES
from rag_resources.documents.web import is_web
from rag_resources.languages.messages import _
from rag_resources.settings import Settings

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
                return dg.SkipReason(_("There is nothing to do.").format(path=source))
            keys = _months(settings, changed.keys())
        except FileNotFoundError:
            return dg.SkipReason(
                _(
                    "The folder of documents {path} does not exist or cannot be read. Check "
                    "DOCUMENTS_SOURCE."
                ).format(path=source)
            )
        request = dg.RunRequest(
            run_key=f"documents {max(changed.values())}",
            tags={
                "dagster/asset_partition_range_start": min(keys),
                "dagster/asset_partition_range_end": max(keys),
            },
        )
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


def _months(settings: Settings, changed: Collection[str]) -> set[str]:
    """Return the partitions of these documents; the last one also reports what is rejected."""
    known = monthly(settings).get_partition_keys()
    with open_application(settings) as application:
        arrived = application.documents.arrivals(changed)
    keys = {f"{at.astimezone(UTC):%Y-%m}-01" for at in arrived}
    return keys & set(known) | {known[-1]}
