"""Conditions under which Dagster materialises assets by itself."""

import dagster as dg


def when_months_change() -> dg.AutomationCondition[dg.AssetKey]:
    """Return the condition for monthly assets to be made again after their inputs.

    `eager()` only covers the latest month. This condition also makes an earlier month again, if it
    was made before: a note of that month may be edited, deleted or added late. Months that were
    never made are left to a backfill, because a migration proceeds in batches.
    """
    latest = dg.AutomationCondition.in_latest_time_window()
    made = ~dg.AutomationCondition.missing()
    return (latest | made) & dg.AutomationCondition.eager().without(latest)
