"""The sensor of uploaded documents; that of the source is in `rag_assets.documents.sensor`."""

import hashlib
from datetime import UTC

import dagster as dg

from rag_assets.jobs import ingest_job
from rag_assets.runs.partitions import monthly
from rag_resources.application import open_application
from rag_resources.languages.messages import _
from rag_resources.settings import Settings

_UNFINISHED = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
]


def build_uploaded_documents_sensor(settings: Settings) -> dg.SensorDefinition:
    """Build the sensor that starts runs for uploaded documents."""

    @dg.sensor(
        job=ingest_job,
        minimum_interval_seconds=30,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=_("Reads the documents that are uploaded through the API."),
    )
    def uploaded_documents(context: dg.SensorEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        """Ingest the months of the uploads that nobody has read; one run at a time."""
        if not settings.keeps_files:
            return dg.SkipReason(
                _(
                    "With DATABASE_URL it must also be said where the copies of the documents are "
                    "kept: set FILES_URL."
                )
            )
        with open_application(settings) as application:
            waiting = application.documents.waiting_uploads()
        if not waiting:
            return dg.SkipReason(_("There is nothing to do."))
        own = dg.RunsFilter(statuses=_UNFINISHED, tags={"dagster/sensor_name": context.sensor_name})
        if context.instance.get_runs_count(own):
            return dg.SkipReason(
                _("Another run is reading the uploaded documents; {count} wait.").format(
                    count=len(waiting)
                )
            )
        known = monthly(settings).get_partition_keys()
        months = {f"{at.astimezone(UTC):%Y-%m}-01" for at in waiting.values()} & set(known)
        which = "".join(sorted(map(str, waiting)))
        return dg.RunRequest(
            run_key=f"uploads {hashlib.sha256(which.encode()).hexdigest()[:16]}",
            tags={
                "dagster/asset_partition_range_start": min(months or {known[-1]}),
                "dagster/asset_partition_range_end": max(months or {known[-1]}),
            },
        )

    return uploaded_documents
