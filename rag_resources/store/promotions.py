"""Rows of `promotions`: what serves, what served, and what was withdrawn.

A promotion with a reason withdrew the one before it.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from rag_resources.core.configuration import RetrievalConfig
from rag_resources.core.evaluation import StoredEvaluation
from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries


@dataclass(frozen=True, slots=True)
class Promotion:
    """What serves since when.

    Attributes:
        evaluation_id: None for what a rollback returned to without its ever having been evaluated.
        reason: Of a rollback, which withdrew what served before; None for what passed its gate.
    """

    configuration: str
    config: dict[str, Any]
    config_hash: str
    model: str
    evaluation_id: UUID | None
    promoted_at: datetime
    reason: str | None


def promote(
    connection: Connection,
    evaluation: StoredEvaluation,
    config: RetrievalConfig,
    *,
    run_id: str | None,
) -> bool:
    """Make a configuration the one that serves, in the caller's transaction.

    Returns:
        False if this very configuration and evaluation serve already: nothing was written.
    """
    lock_promotions(connection)
    current = current_promotion(connection)
    if current and current.evaluation_id == evaluation.evaluation_id:
        return False
    _insert_promotion(
        connection, evaluation.configuration, config, evaluation.evaluation_id, run_id, None
    )
    return True


def promote_back(
    connection: Connection,
    configuration: str,
    config: RetrievalConfig,
    *,
    evaluation_id: UUID | None,
    run_id: str | None,
    reason: str,
) -> bool:
    """Make a configuration serve again whatever its gate says, in the caller's transaction.

    What served is withdrawn: only a newer evaluation, or a person, promotes it again.

    Args:
        connection: In a transaction that called `lock_promotions`.
        configuration: Its name.
        config: What it is.
        evaluation_id: On which it was promoted; None if it never was evaluated.
        run_id: Dagster's.
        reason: As a person gave it.

    Returns:
        False if it serves already: nothing was written.
    """
    current = current_promotion(connection)
    if current and (current.configuration, current.config_hash) == (
        configuration,
        config.config_hash,
    ):
        return False
    _insert_promotion(connection, configuration, config, evaluation_id, run_id, reason)
    return True


def lock_promotions(connection: Connection) -> None:
    """Keep all others from changing what serves until commit."""
    queries().lock_promotions(connection)


def current_promotion(connection: Connection) -> Promotion | None:
    """Return what serves now, None before the first promotion."""
    row = queries().current_promotion(connection)
    return Promotion(*row) if row else None


def previous_promotion(connection: Connection) -> Promotion | None:
    """Return the last that served before what serves and was not withdrawn since."""
    row = queries().previous_promotion(connection)
    return Promotion(*row) if row else None


def last_withdrawn(connection: Connection) -> str | None:
    """Return the configuration that the last promotion withdrew; None if that is no rollback."""
    name: str | None = queries().last_withdrawn(connection)
    return name


def was_promoted(connection: Connection, configuration: str) -> bool:
    """Whether a configuration ever served."""
    ever: bool = queries().was_promoted(connection, configuration=configuration)
    return ever


def withdrawn_at(connection: Connection, evaluation: StoredEvaluation) -> datetime | None:
    """Return since when only a newer evaluation promotes this configuration by itself."""
    moment: datetime | None = queries().withdrawn_at(
        connection, configuration=evaluation.configuration, config_hash=evaluation.config_hash
    )
    return moment


def list_promotions(connection: Connection, *, limit: int) -> list[Promotion]:
    """Return the newest promotions, oldest first."""
    return [Promotion(*row) for row in queries().list_promotions(connection, row_limit=limit)]


def _insert_promotion(
    connection: Connection,
    configuration: str,
    config: RetrievalConfig,
    evaluation_id: UUID | None,
    run_id: str | None,
    reason: str | None,
) -> None:
    queries().insert_promotion(
        connection,
        configuration=configuration,
        config=Jsonb(config.model_dump(mode="json")),
        config_hash=config.config_hash,
        model=config.model,
        evaluation_id=evaluation_id,
        run_id=run_id,
        reason=reason,
    )
