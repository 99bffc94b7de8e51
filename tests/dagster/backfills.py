"""Backfills as the webserver launches them, and the sensor that stops them."""

import time
from collections.abc import Mapping
from typing import Any

import dagster as dg
from dagster._core.definitions.selector import (
    PartitionRangeSelector,
    PartitionsByAssetSelector,
    PartitionsSelector,
)
from dagster._core.execution.backfill import BulkActionStatus, PartitionBackfill
from dagster._core.remote_origin import (
    InProcessCodeLocationOrigin,
    RemotePartitionSetOrigin,
    RemoteRepositoryOrigin,
)
from dagster._core.remote_representation.external_data import partition_set_snap_name_for_job_name
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
from dagster_project import MONTHS, Project, definitions


def launch(
    project: Project,
    name: str,
    *keys: dg.AssetKey,
    started_in: float = -60,
    run_config: Mapping[str, Any] | None = None,
) -> None:
    """Launch a backfill of assets as the webserver does; no daemon takes it up."""
    months = PartitionsSelector(ranges=[PartitionRangeSelector(start=MONTHS[0], end=MONTHS[-1])])
    project.instance.add_backfill(
        PartitionBackfill.from_partitions_by_assets(
            backfill_id=name,
            asset_graph=definitions().resolve_asset_graph(),
            backfill_timestamp=time.time() + started_in,
            tags={},
            dynamic_partitions_store=project.instance,
            partitions_by_assets=[
                PartitionsByAssetSelector(asset_key=key, partitions=months) for key in keys
            ],
            title=None,
            description=None,
            run_config=run_config,
        )
    )


def launch_job(project: Project, name: str, job: str) -> None:
    """Launch a backfill of a job, which says nothing of its assets."""
    location = InProcessCodeLocationOrigin(
        LoadableTargetOrigin(module_name="rag_assets.definitions"), location_name="brain_sync_rag"
    )
    origin = RemotePartitionSetOrigin(
        repository_origin=RemoteRepositoryOrigin(location, "__repository__"),
        partition_set_name=partition_set_snap_name_for_job_name(job),
    )
    project.instance.add_backfill(
        PartitionBackfill(
            backfill_id=name,
            status=BulkActionStatus.REQUESTED,
            from_failure=False,
            tags={},
            backfill_timestamp=time.time() - 60,
            partition_set_origin=origin,
            partition_names=list(MONTHS),
        )
    )


def tick(project: Project) -> str:
    """Evaluate the sensor and return what its tick says."""
    location = definitions()
    sensor = location.resolve_sensor_def("stop_backfills")
    with dg.build_sensor_context(instance=project.instance, definitions=location) as context:
        data = sensor.evaluate_tick(context)
    assert not data.run_requests
    return str(data.skip_message)


def canceled(project: Project) -> set[str]:
    return {
        backfill.backfill_id
        for backfill in project.instance.get_backfills()
        if backfill.status is BulkActionStatus.CANCELING
    }
