"""Lets the UI show runs that a command executes in its own process with those of the code location.

A job's page and the timeline show only runs that say which code location they are of. Dagster notes
it when its webserver or daemon starts a run; `dagster run migrate-repository` writes it later, as
is done here.
"""

import dagster as dg

# Dagster is pinned exactly: these are private.
from dagster._core.definitions.repository_definition import SINGLETON_REPOSITORY_NAME
from dagster._core.remote_origin import InProcessCodeLocationOrigin, RemoteRepositoryOrigin
from dagster._core.storage.tags import REPOSITORY_LABEL_TAG
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin

LOCATION, MODULE = "brain_sync_rag", "rag_assets.definitions"
"""Name and module of the code location, as in `workspace.yaml`."""

_REPOSITORY = RemoteRepositoryOrigin(
    InProcessCodeLocationOrigin(LoadableTargetOrigin(module_name=MODULE), location_name=LOCATION),
    SINGLETON_REPOSITORY_NAME,
)

ORIGIN_TAGS = {REPOSITORY_LABEL_TAG: _REPOSITORY.get_label()}
"""Tags to create a run with, so that its job's page shows it."""


def show_on_timeline(instance: dg.DagsterInstance, run_id: str) -> None:
    """Let the timeline show a run that was created with `ORIGIN_TAGS` and has ended."""
    run = instance.get_run_by_id(run_id)
    if run is not None and run.is_finished:
        origin = _REPOSITORY.get_job_origin(run.job_name)
        instance.run_storage.replace_job_origin(run, origin)
