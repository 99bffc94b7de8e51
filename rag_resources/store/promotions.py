"""Rows of `promotions`: which configurations serve, served, or were withdrawn.

A promotion with a reason is a rollback: it withdrew the one before it.
"""

from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from rag_resources.configurations import DEFAULT_CONFIGURATION
from rag_resources.core.configuration import RetrievalConfig
from rag_resources.core.evaluation import StoredEvaluation
from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries
from rag_resources.store.evaluations import stored_evaluation


@dataclass(frozen=True, slots=True)
class Promotion:
    """A configuration that serves or served, and since when.

    Attributes:
        evaluation_id: The evaluation it was promoted on; None if a rollback returned to a
            configuration that was never evaluated.
        reason: The reason of a rollback, which withdrew the previous promotion; None if the
            configuration passed its gate.
    """

    configuration: str
    config: dict[str, Any]
    config_hash: str
    model: str
    evaluation_id: UUID | None
    promoted_at: datetime
    reason: str | None

    @property
    def served(self) -> tuple[str, str]:
        """What it let serve: name and hash of the configuration."""
        return self.configuration, self.config_hash


def promote(
    connection: Connection,
    evaluation: StoredEvaluation,
    config: RetrievalConfig,
    *,
    run_id: str | None,
) -> bool:
    """Make a configuration the one that serves, in the caller's transaction.

    Returns:
        False if the same configuration and evaluation serve already; nothing was written.
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
    """Make a configuration serve again regardless of its gate, in the caller's transaction.

    The configuration that served is withdrawn: only a newer evaluation, or a person, can promote
    it again.

    Args:
        connection: In a transaction that called `lock_promotions`.
        configuration: Its name.
        config: Its parameters.
        evaluation_id: The evaluation it was promoted on; None if it was never evaluated.
        run_id: Dagster's run id.
        reason: The reason that a person gave.

    Returns:
        False if it serves already; nothing was written.
    """
    current = current_promotion(connection)
    if current and current.served == (configuration, config.config_hash):
        return False
    _insert_promotion(connection, configuration, config, evaluation_id, run_id, reason)
    return True


def lock_promotions(connection: Connection) -> None:
    """Keep others from promoting or rolling back until commit."""
    queries().lock_promotions(connection)


def current_promotion(connection: Connection) -> Promotion | None:
    """Return the promotion that serves now; None before the first one."""
    return next(iter(_newest_first(connection, limit=1)), None)


def serving_since(connection: Connection) -> datetime | None:
    """Return since when what serves has served without a break; None before the first promotion.

    A promotion of it on a newer evaluation is no break; another configuration between is one.
    """
    history = _newest_first(connection)
    unbroken = takewhile(lambda promotion: promotion.served == history[0].served, history)
    return min((promotion.promoted_at for promotion in unbroken), default=None)


def previous_promotion(connection: Connection) -> Promotion | None:
    """Return the last earlier promotion that has not been withdrawn since."""
    gone: set[tuple[str, str]] = set()
    followed_by: Promotion | None = None
    for promotion in _newest_first(connection):
        if followed_by is None or followed_by.reason is not None:
            gone.add(promotion.served)
        if promotion.served not in gone:
            return promotion
        followed_by = promotion
    return None


def last_withdrawn(connection: Connection) -> str | None:
    """Return the configuration withdrawn by the last promotion; None if it was no rollback."""
    match _newest_first(connection, limit=2):
        case [Promotion(reason=str()), withdrawn]:
            return withdrawn.configuration
    return None


def was_promoted(connection: Connection, configuration: str) -> bool:
    """Whether a configuration ever served."""
    return any(each.configuration == configuration for each in _newest_first(connection))


def is_withdrawn(connection: Connection, config_hash: str) -> bool:
    """Whether a person withdrew a configuration, and nobody has promoted it by name since."""
    withdrawn: bool = queries().is_withdrawn(connection, config_hash=config_hash)
    return withdrawn


def rolled_back_at(connection: Connection) -> datetime | None:
    """Return when everything was last rolled back; earlier evaluations searched other chunks."""
    moment: datetime | None = queries().rolled_back_at(connection)
    return moment


def _newest_first(connection: Connection, *, limit: int | None = None) -> list[Promotion]:
    return [Promotion(*row) for row in queries().list_promotions(connection, row_limit=limit)]


def promotions_outside_runs(
    connection: Connection, after: tuple[datetime, int], *, until: datetime, limit: int
) -> list[tuple[int, Promotion]]:
    """Return rollbacks and promotions without a run with their ids, oldest first, ties by id.

    Args:
        connection: Open.
        after: Time and id of the last one that is known already.
        until: As `store.promotions.settled_until` returns it.
        limit: How many at most.
    """
    after_at, after_id = after
    rows = queries().promotions_outside_runs(
        connection, after_at=after_at, after_id=after_id, until=until, row_limit=limit
    )
    return [(row[0], Promotion(*row[1:])) for row in rows]


def evaluation_of_serving(
    connection: Connection, *, compared_hash: str | None = None
) -> StoredEvaluation | None:
    """Return the evaluation that represents what serves; None if there is no undisturbed one.

    For another configuration, it is the newest evaluation of what serves. For the serving
    configuration itself, it is the first that it was promoted on in its present time of serving;
    before the first promotion, the latest of the default configuration, which then serves.

    Args:
        connection: Open.
        compared_hash: Hash of the configuration that is compared with what serves; None if none is.
    """
    row = queries().evaluation_of_serving(
        connection, default_configuration=DEFAULT_CONFIGURATION, compared_hash=compared_hash
    )
    return stored_evaluation(row) if row else None


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


def serves_other_tenants(connection: Connection, model: str) -> bool:
    """Whether a model serves a tenant other than the one of the connection."""
    return bool(queries().serves_other_tenants(connection, model=model))


def settled_until(connection: Connection) -> datetime:
    """Return the time before which no transaction will add a row any more.

    A row bears the time at which its transaction began, so one that is committed later may be
    older than one that is there already. A reader that remembers how far it came must stop before
    this time, or it misses such a row. Call it before the statement that reads the rows, in a
    transaction that is not a snapshot.
    """
    until: datetime = queries().settled_until(connection)
    return until
