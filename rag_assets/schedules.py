"""The schedules."""

from datetime import timedelta

import dagster as dg

from rag_assets.evaluation.archive import archive_evaluations_job
from rag_assets.ingestion.purge_expired import purge_expired_job
from rag_assets.jobs import evaluate_job
from rag_assets.keys import ANSWER_LOG
from rag_assets.serving.retrieval_log import retrieval_log
from rag_resources.core.messages import Message

nightly_evaluation = dg.ScheduleDefinition(
    name="nightly_evaluation",
    job=evaluate_job,
    description=Message.SCHEDULE_EVALUATION,
    cron_schedule="0 3 * * *",
    execution_timezone="Europe/Madrid",
    default_status=dg.DefaultScheduleStatus.RUNNING,
)

# On by default, because a note only expires if its owner set a time.
hourly_purge = dg.ScheduleDefinition(
    name="hourly_purge",
    job=purge_expired_job,
    description=Message.SCHEDULE_PURGE,
    cron_schedule="17 * * * *",
    execution_timezone="UTC",
    default_status=dg.DefaultScheduleStatus.RUNNING,
)

nightly_archive = dg.ScheduleDefinition(
    name="nightly_archive",
    job=archive_evaluations_job,
    description=Message.SCHEDULE_ARCHIVE,
    cron_schedule="40 4 * * *",
    execution_timezone="Europe/Madrid",
    default_status=dg.DefaultScheduleStatus.RUNNING,
)

# Soon after midnight, so that the plotted day is the whole day before.
nightly_retrieval_log = dg.ScheduleDefinition(
    name="nightly_retrieval_log",
    target=retrieval_log,
    description=Message.SCHEDULE_LOG,
    cron_schedule="3 0 * * *",
    execution_timezone="UTC",
    default_status=dg.DefaultScheduleStatus.RUNNING,
)


# The month of the day before, which at the start of a month is the one that has ended.
@dg.schedule(
    name="nightly_answer_log",
    target=dg.AssetSelection.assets(ANSWER_LOG),
    description=Message.SCHEDULE_ANSWER_LOG,
    cron_schedule="9 0 * * *",
    execution_timezone="UTC",
    default_status=dg.DefaultScheduleStatus.RUNNING,
)
def nightly_answer_log(context: dg.ScheduleEvaluationContext) -> dg.RunRequest:
    """Read the log of the answers of the month."""
    day = context.scheduled_execution_time - timedelta(days=1)
    return dg.RunRequest(partition_key=f"{day:%Y-%m}-01")
