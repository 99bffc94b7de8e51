"""Dagster's own storage: where it is, and the connections that a run keeps."""

from typing import Any, Self

import dagster as dg
from dagster._core.definitions.asset_checks.asset_check_evaluation import (
    AssetCheckEvaluationPlanned,
)
from dagster._core.events.log import EventLogEntry
from dagster._serdes import ConfigurableClassData
from dagster_postgres import (
    PostgresEventLogStorage,
    PostgresRunStorage,
    PostgresScheduleStorage,
)

from rag_resources.database.locate import create_embedded_schema, dagster_url
from rag_resources.settings import load_settings

_STATEMENT_TIMEOUT_MS = 60_000
_OLDEST_S = 3600
_MORE_CONNECTIONS = 5


def keep_connections(instance: dg.DagsterInstance) -> None:
    """Make an instance keep its connections to its storage, as Dagster's webserver does.

    Otherwise each event and each query opens a new connection, which takes a quarter of the
    processor time of an indexing run over two years. If the server ends a connection, one statement
    fails, and the others of its pool are replaced.

    Args:
        instance: This process's; connections are not shared with forked processes.
    """
    instance.optimize_for_webserver(
        statement_timeout=_STATEMENT_TIMEOUT_MS,
        pool_recycle=_OLDEST_S,
        max_overflow=_MORE_CONNECTIONS,
    )


class _Located:
    """Storage in the database that the product's settings name.

    The embedded server is started and gets its schema, so that `dagster dev`, `dg launch` and the
    like work in a fresh clone.
    """

    @classmethod
    def config_type(cls) -> dict[str, Any]:
        """Take no configuration: the settings say everything."""
        return {}

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData | None, config_value: Any) -> Self:
        """Build it from the settings of this process."""
        settings = load_settings()
        create_embedded_schema(settings)
        return cls(postgres_url=dagster_url(settings), inst_data=inst_data)  # type: ignore[call-arg]


class RunStorage(_Located, PostgresRunStorage):
    """Dagster's runs in PostgreSQL."""


class ScheduleStorage(_Located, PostgresScheduleStorage):
    """Dagster's ticks in PostgreSQL."""


class EventLog(_Located, PostgresEventLogStorage):
    """Dagster's events in PostgreSQL; the history of a check has one entry for each run.

    No check has partitions, but Dagster 1.13 plans one execution for each month of the run, and
    shows all of them but one as skipped.
    """

    def store_asset_check_event(self, event: EventLogEntry, event_id: int | None) -> None:
        """Store the plan or the result of a check; a plan is stored without the run's months."""
        told = event.get_dagster_event()
        planned = told.event_specific_data
        if isinstance(planned, AssetCheckEvaluationPlanned):
            whole = AssetCheckEvaluationPlanned(
                asset_key=planned.asset_key, check_name=planned.check_name
            )
            event = event._replace(dagster_event=told._replace(event_specific_data=whole))
        super().store_asset_check_event(event, event_id)
