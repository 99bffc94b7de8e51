"""Tells the sensors of files what runs have read already."""

import dagster as dg

from rag_assets.runs.partitions import monthly
from rag_resources.settings import Settings

LOOKED_AT = 10
"""Latest runs over the first month that are looked at; sensors rarely start one."""


def read_since(instance: dg.DagsterInstance, settings: Settings, asset: dg.AssetKey) -> int:
    """Return the time, in nanoseconds, up to which a source was read in whole; 0 if unknown.

    It is the start of the last run over all months, such as the main job's. So what the main job
    read is not read again when the daemon is started afterwards.

    Args:
        instance: Has the runs.
        settings: Name the first month.
        asset: What is made of the source.
    """
    keys = monthly(settings).get_partition_keys()
    first = dg.AssetRecordsFilter(asset_key=asset, asset_partitions=[keys[0]])
    for event in instance.fetch_materializations(first, limit=LOOKED_AT).records:
        run = instance.get_run_record_by_id(event.run_id)
        if run is None or run.start_time is None:
            continue
        tags = run.dagster_run.tags
        span = [tags.get(f"dagster/asset_partition_range_{end}") for end in ("start", "end")]
        if span == [keys[0], keys[-1]]:
            return int(run.start_time * 1e9)
    return 0
