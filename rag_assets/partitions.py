"""Monthly partitions by the notes' creation time (UTC), and their time windows."""

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import dagster as dg

from rag_resources.core.types import TimeWindow
from rag_resources.settings import Settings

batches = dg.BackfillPolicy.multi_run(max_partitions_per_run=6)


def monthly(settings: Settings) -> dg.MonthlyPartitionsDefinition:
    """Return the partitions from the settings' first month to the current one."""
    # end_offset includes the current month; otherwise today's notes would be in no partition.
    return dg.MonthlyPartitionsDefinition(
        start_date=f"{settings.first_month}-01", timezone="UTC", end_offset=1
    )


def month_window(key: str) -> TimeWindow:
    """Return the window of a partition, whose key is the first day of the month."""
    return TimeWindow.of_month(datetime.strptime(key, "%Y-%m-%d").replace(tzinfo=UTC))


def full_window(settings: Settings) -> TimeWindow:
    """Return the window of all present partitions."""
    return span(monthly(settings).get_partition_keys())


def span(keys: Sequence[str]) -> TimeWindow:
    """Return the window from the first to the last of these partitions."""
    return TimeWindow(month_window(min(keys)).start, month_window(max(keys)).end)


def run_window(tags: Mapping[str, str], settings: Settings) -> TimeWindow:
    """Return the window of a run's partitions; of all partitions if it has none."""
    if "dagster/partition" in tags:
        return month_window(tags["dagster/partition"])
    if "dagster/asset_partition_range_start" in tags:
        return span(
            [tags["dagster/asset_partition_range_start"], tags["dagster/asset_partition_range_end"]]
        )
    return full_window(settings)


def outside_windows(settings: Settings) -> tuple[TimeWindow, TimeWindow]:
    """Return the windows before the first partition and after the last."""
    inside = full_window(settings)
    return (
        TimeWindow(datetime.min.replace(tzinfo=UTC), inside.start),
        TimeWindow(inside.end, datetime.max.replace(tzinfo=UTC)),
    )


def run_months(tags: Mapping[str, str], settings: Settings) -> tuple[str, ...]:
    """Return the months of a run as `YYYY-MM`; empty if it has no partitions."""
    if not tags.keys() & {"dagster/partition", "dagster/asset_partition_range_start"}:
        return ()
    window = run_window(tags, settings)
    return tuple(
        key[:7]
        for key in monthly(settings).get_partition_keys()
        if window.start <= month_window(key).start < window.end
    )


def planned_batches(settings: Settings) -> int:
    """Return the number of batches in all months."""
    return math.ceil(
        len(monthly(settings).get_partition_keys()) / (batches.max_partitions_per_run or 1)
    )
