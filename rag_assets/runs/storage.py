"""The connections of a process that executes runs to Dagster's own storage."""

from dagster import DagsterInstance

_STATEMENT_TIMEOUT_MS = 60_000
_OLDEST_S = 3600
_MORE_CONNECTIONS = 5


def keep_connections(instance: DagsterInstance) -> None:
    """Have an instance keep its connections to its storage, as Dagster's webserver does.

    Otherwise each event and each question to the storage has a connection of its own: of an
    indexing run over two years that is a quarter of the processor time. A connection that the
    server has ended fails one statement, and the others of its pool are replaced.

    Args:
        instance: Of this process only; connections are not shared with forked processes.
    """
    instance.optimize_for_webserver(
        statement_timeout=_STATEMENT_TIMEOUT_MS,
        pool_recycle=_OLDEST_S,
        max_overflow=_MORE_CONNECTIONS,
    )
