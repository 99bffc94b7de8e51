"""Dagster's own storage: where it is, its log of events, and the connections that a run keeps."""

from typing import Any, Self

import dagster as dg
import sqlalchemy as db
from dagster._core.definitions.asset_checks.asset_check_evaluation import (
    AssetCheckEvaluationPlanned,
)
from dagster._core.events.log import EventLogEntry
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecordStatus
from dagster._core.storage.event_log.schema import AssetCheckExecutionsTable
from dagster._serdes import ConfigurableClassData
from dagster_postgres import (
    PostgresEventLogStorage,
    PostgresRunStorage,
    PostgresScheduleStorage,
)

from rag_assets.runs.failures import checks_of, in_words, told_by_checks
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
    """Dagster's event log in PostgreSQL, adapted to the pages that people read.

    A check has one entry per run. No check of the product has partitions, but Dagster would plan
    one execution for each month of the run. The result would be written besides these, and the
    history of the check would show each of them as skipped.

    The latest result of a check is the one that came last. For Dagster it is that of the run which
    was planned last, and the newest months of a backfill are planned last and run first.

    A step or run that failed with a message for people shows only that message, and one that a
    blocking check stopped what the check said. An unforeseen
    failure keeps its class name and stack trace.
    """

    def store_event(self, event: EventLogEntry) -> None:
        """Store an event."""
        told = event.dagster_event
        if told and told.is_failure:
            words = in_words(told_by_checks(told, checks_of(self, event.run_id)))
            event = event._replace(dagster_event=words)
        super().store_event(event)

    def store_asset_check_event(self, event: EventLogEntry, event_id: int | None) -> None:
        """Store the plan or the result of a check; a plan is stored without the run's months."""
        super().store_asset_check_event(_without_months(event), event_id)
        told = event.get_dagster_event()
        if event.run_id and told.event_type is dg.DagsterEventType.ASSET_CHECK_EVALUATION:
            self._put_last(event.run_id, told.asset_check_evaluation_data)

    def _put_last(self, run_id: str, result: dg.AssetCheckEvaluation) -> None:
        """Number a result anew if one of a run that was planned later is there already."""
        own, other = AssetCheckExecutionsTable, AssetCheckExecutionsTable.alias()
        of_check = (own.c.asset_key == result.asset_key.to_string()) & (
            own.c.check_name == result.check_name
        )
        overtaken = (
            db.select(other.c.id)
            .where(
                other.c.asset_key == own.c.asset_key,
                other.c.check_name == own.c.check_name,
                other.c.id > own.c.id,
                other.c.execution_status != AssetCheckExecutionRecordStatus.PLANNED.value,
            )
            .exists()
        )
        numbers = db.func.pg_get_serial_sequence(own.name, own.c.id.name)
        with self.index_connection() as connection:
            connection.execute(
                own.update()
                .where(of_check, own.c.run_id == run_id, overtaken)
                .values(id=db.func.nextval(numbers))
            )


def _without_months(event: EventLogEntry) -> EventLogEntry:
    told = event.get_dagster_event()
    planned = told.event_specific_data
    if not isinstance(planned, AssetCheckEvaluationPlanned):
        return event
    whole = AssetCheckEvaluationPlanned(asset_key=planned.asset_key, check_name=planned.check_name)
    return event._replace(dagster_event=told._replace(event_specific_data=whole))
