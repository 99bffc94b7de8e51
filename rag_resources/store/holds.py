"""Rows of `migration_holds`: people's decisions to stop or resume the migration.

Whether its quality allows it to continue belongs in `store.migration`.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from rag_resources.core.errors import MigrationHeldError
from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries
from rag_resources.languages.messages import _

HoldKind = Literal["stopped", "rolled_back"]


@dataclass(frozen=True, slots=True)
class Hold:
    """A hold, which keeps the migration from continuing.

    Attributes:
        kind: `stopped`: migrated notes stay. `rolled_back`: their chunks are dropped.
        reason: The reason that a person gave.
        run_id: Dagster's run id; None if no run set the hold.
        set_at: When it was set; timezone-aware.
    """

    kind: str
    reason: str
    run_id: str | None
    set_at: datetime

    @property
    def explanation(self) -> str:
        """Explain in Spanish since when it holds, why, and what ends it."""
        template = (
            _(
                "The migration is stopped since {set_at:%Y-%m-%d %H:%M} UTC; reason: {reason}. It "
                "goes on when somebody runs the job resume_migration."
            )
            if self.kind == "stopped"
            else _(
                "The migration was undone on {set_at:%Y-%m-%d %H:%M} UTC; reason: {reason}. It "
                "can start again when somebody runs the job resume_migration."
            )
        )
        return template.format(set_at=self.set_at.astimezone(UTC), reason=self.reason.rstrip(". "))


def current_hold(connection: Connection) -> Hold | None:
    """Return the current hold; None if the migration was never held or has been resumed."""
    row = queries().current_hold(connection)
    return Hold(*row) if row else None


def refuse_while_held(connection: Connection) -> None:
    """Check that the migration is not held.

    Raises:
        MigrationHeldError: It is; the message says since when, why, and what ends the hold.
    """
    hold = current_hold(connection)
    if hold:
        raise MigrationHeldError(hold.explanation, kind=hold.kind)


def hold_migration(
    connection: Connection, kind: HoldKind, *, reason: str, run_id: str | None
) -> bool:
    """Keep further batches from starting, in the caller's transaction.

    Returns:
        False if an equal or stronger hold exists already; nothing was written.
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
        The hold that was lifted; None if there was none and nothing was written.
    """
    queries().lock_holds(connection)
    lifted = current_hold(connection)
    if lifted:
        queries().insert_hold(connection, kind="resumed", reason=reason, run_id=run_id)
    return lifted
