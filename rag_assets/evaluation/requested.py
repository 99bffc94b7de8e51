"""The job and the sensor that run the evaluations requested over HTTP."""

import hashlib

import dagster as dg

from rag_assets.evaluation.checks import told_without_checks
from rag_assets.evaluation.metadata import stored_metadata
from rag_assets.keys import evaluation_key
from rag_assets.labels import labelled
from rag_resources.application import Application, open_application
from rag_resources.core.evaluation import StoredEvaluation
from rag_resources.languages.messages import _
from rag_resources.resources import RagResource
from rag_resources.settings import Settings

_UNFINISHED = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]
JOB = "requested_evaluations"


@dg.op(
    description=_(
        "Makes the evaluations that were asked for over HTTP, one after another, each in the name "
        "of who asked."
    )
)
def work_off_requests(context: dg.OpExecutionContext, rag: RagResource) -> None:
    """Run every request that is not finished, oldest first, on behalf of its tenant.

    A request that a killed run had begun is begun anew. An evaluation of this tenant appears as a
    point of its asset, with what its gates say.
    """
    application = rag.application
    requests = application.evaluation_requests
    outcomes = {"done": 0, "failed": 0}
    for request in requests.waiting():
        own = application.settings.model_copy(update={"tenant": request.tenant})
        with open_application(own) as opened:
            made = requests.work_off(request, opened, run_id=context.run.run_id)
            found = opened.evaluations.find(made) if made else None
            judged = _judged(opened, found) if found else []
        outcomes["done" if found else "failed"] += 1
        if found and request.tenant == application.settings.tenant:
            key = evaluation_key(request.configuration)
            metadata = labelled(stored_metadata(found))
            context.log_event(dg.AssetMaterialization(key, metadata=metadata))
            for check in judged:
                # Dagster's annotation leaves out that it takes checks.
                context.log_event(check)  # type: ignore[arg-type]
    context.add_output_metadata(labelled(outcomes))


def _judged(
    application: Application, evaluation: StoredEvaluation
) -> list[dg.AssetCheckEvaluation]:
    configuration = application.configuration(evaluation.configuration)
    gates = application.evaluations.gates(evaluation)
    return told_without_checks(configuration, application.settings.gate, gates)


@dg.job(
    name=JOB,
    description=_(
        "Makes the evaluations that were asked for over HTTP, one after another, each in the name "
        "of who asked."
    ),
)
def requested_evaluations_job() -> None:
    """Work off the requested evaluations."""
    work_off_requests()


def build_requested_evaluations_sensor(settings: Settings) -> dg.SensorDefinition:
    """Build the sensor that starts runs for requested evaluations."""

    @dg.sensor(
        name="requested_evaluations",
        job=requested_evaluations_job,
        minimum_interval_seconds=30,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=_(
            "Makes the evaluations that were asked for over HTTP, one after another, each in the "
            "name of who asked."
        ),
    )
    def requested(context: dg.SensorEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        """Start a run for the waiting requests; one run at a time, so that each request has one."""
        with open_application(settings) as application:
            waiting = application.evaluation_requests.waiting()
        if not waiting:
            return dg.SkipReason(_("There is nothing to do."))
        if context.instance.get_runs_count(dg.RunsFilter(job_name=JOB, statuses=_UNFINISHED)):
            return dg.SkipReason(
                _("A run for the requested evaluations is under way already ({count}).").format(
                    count=len(waiting)
                )
            )
        # A killed run leaves the same requests; its number in the key makes the key different.
        before = context.instance.get_runs_count(dg.RunsFilter(job_name=JOB))
        which = "".join([str(before), *sorted(str(each.request_id) for each in waiting)])
        return dg.RunRequest(run_key=hashlib.sha256(which.encode()).hexdigest()[:16])

    return requested
