"""The schedules."""

from datetime import timedelta

import dagster as dg

from rag_assets.jobs import evaluate_job, purge_expired_job
from rag_assets.keys import ANSWER_LOG
from rag_resources.languages.messages import _

nightly_evaluation = dg.ScheduleDefinition(
    name="nightly_evaluation",
    job=evaluate_job,
    description=_("Every night evaluates all configurations with the golden questions."),
    cron_schedule="0 3 * * *",
    execution_timezone="Europe/Madrid",
    default_status=dg.DefaultScheduleStatus.RUNNING,
)

# On by default, because a note only expires if its owner set a time.
hourly_purge = dg.ScheduleDefinition(
    name="hourly_purge",
    job=purge_expired_job,
    description=_(
        "Every hour deletes expired notes for good, and those deleted by hand that can no longer "
        "be restored."
    ),
    cron_schedule="17 * * * *",
    execution_timezone="UTC",
    default_status=dg.DefaultScheduleStatus.RUNNING,
)


# The month of the day before, which at the start of a month is the one that has ended.
@dg.schedule(
    name="nightly_answer_log",
    target=dg.AssetSelection.assets(ANSWER_LOG),
    description=_("Sums up the month's answers every night, and what was thought of them."),
    cron_schedule="9 0 * * *",
    execution_timezone="UTC",
    default_status=dg.DefaultScheduleStatus.RUNNING,
)
def nightly_answer_log(context: dg.ScheduleEvaluationContext) -> dg.RunRequest:
    """Read the log of the answers of the month."""
    day = context.scheduled_execution_time - timedelta(days=1)
    return dg.RunRequest(partition_key=f"{day:%Y-%m}-01")
