"""When evaluations run by themselves."""

import dagster as dg

from rag_assets.jobs import evaluate_job

nightly_evaluation = dg.ScheduleDefinition(
    name="nightly_evaluation",
    job=evaluate_job,
    cron_schedule="0 3 * * *",
    execution_timezone="Europe/Madrid",
    default_status=dg.DefaultScheduleStatus.RUNNING,
)
