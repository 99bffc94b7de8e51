"""Rows of `migration_holds`: whether the migration may go on, as people decide it.

Whether its quality lets it go on is `store.migration`.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from rag_resources.core.errors import MigrationHeldError
from rag_resources.core.messages import Message
from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries

HoldKind = Literal["stopped", "rolled_back"]


@dataclass(frozen=True, slots=True)
class Hold:
    """What keeps the migration from going on.

    Attributes:
        kind: `stopped`: what is migrated stays. `rolled_back`: its chunks are dropped.
        reason: As a person gave it.
        run_id: Dagster's; None if it was not set by a run.
        set_at: Aware.
    """

    kind: str
    reason: str
    run_id: str | None
    set_at: datetime

    @property
    def explanation(self) -> str:
        """Say in Spanish since when, why, and what ends it."""
        template = Message.HOLD_STOPPED if self.kind == "stopped" else Message.HOLD_ROLLED_BACK
        return template.format(set_at=self.set_at.astimezone(UTC), reason=self.reason)


def current_hold(connection: Connection) -> Hold | None:
    """Return what keeps the migration from going on; None if it never was held, or resumed."""
    row = queries().current_hold(connection)
    return Hold(*row) if row else None


def refuse_while_held(connection: Connection) -> None:
    """Go on only if nothing holds the migration.

    Raises:
        MigrationHeldError: It says since when, why, and what ends it.
    """
    hold = current_hold(connection)
    if hold:
        raise MigrationHeldError(hold.explanation, kind=hold.kind)


def hold_migration(
    connection: Connection, kind: HoldKind, *, reason: str, run_id: str | None
) -> bool:
    """Keep further batches from starting, in the caller's transaction.

    Returns:
        False if it is held already, and no less: nothing was written.
    """
    queries().lock_holds(connection)
    current = current_hold(connection)
    if current and kind in (current.kind, "stopped"):
        return False
    queries().insert_hold(connection, kind=kind, reason=reason, run_id=run_id)
    return True


def resume_migration(connection: Connection, *, reason: str, run_id: str | None) -> Hold | None:
    """Let batches start again, in the caller's transaction.

    Returns:
        The hold that was lifted; None if there was none: nothing was written.
    """
    queries().lock_holds(connection)
    lifted = current_hold(connection)
    if lifted:
        queries().insert_hold(connection, kind="resumed", reason=reason, run_id=run_id)
    return lifted
