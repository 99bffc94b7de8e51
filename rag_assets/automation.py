"""When Dagster materialises assets by itself."""

import dagster as dg


def when_months_change() -> dg.AutomationCondition[dg.AssetKey]:
    """Return the condition of assets by month that follow what they are made of.

    `eager()` reaches the latest month only. Here a month is made again, too, that had been made
    before: of an earlier month a note is edited or deleted, or comes late. Months that were never
    made are left to a backfill, since a migration goes on batch by batch.
    """
    latest = dg.AutomationCondition.in_latest_time_window()
    made = ~dg.AutomationCondition.missing()
    return (latest | made) & dg.AutomationCondition.eager().without(latest)
