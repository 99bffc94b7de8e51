"""Conditions under which Dagster materialises assets by itself."""

import dagster as dg

MAIN_JOB = ".dagster/main_job"
"""Tag of the main job's runs, which index what they ingest."""


def when_months_change() -> dg.AutomationCondition[dg.AssetKey]:
    """Return the condition for monthly assets to be made again after their inputs.

    `eager()` only covers the latest month. This condition also makes an earlier month again, if it
    was made before: a note of that month may be edited, deleted or added late. Months that were
    never made are left to a backfill, because a migration proceeds in batches. What the main job
    updates is left to the main job: it ingests every month and indexes only if anything waits.
    """
    latest = dg.AutomationCondition.in_latest_time_window()
    made = ~dg.AutomationCondition.missing()
    by_main_job = dg.AutomationCondition.all_new_updates_have_run_tags(tag_keys={MAIN_JOB})
    by_others = (
        dg.AutomationCondition.newly_updated()
        & ~dg.AutomationCondition.executed_with_root_target()
        & ~by_main_job
    )
    eager = dg.AutomationCondition.eager().without(latest)
    return (latest | made) & eager.replace("newly_updated_without_root", by_others)
