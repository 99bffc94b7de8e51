"""Rollbacks: to whole notes, to the previous configuration, or by stopping at the present state.

Each is idempotent, and can be killed at any moment and run again. Notes are never changed. Whether
quality lets a migration continue is decided in `migration.batches`.
"""

from dataclasses import dataclass
from uuid import UUID

from rag_resources.core.configuration import (
    NamedConfiguration,
    RetrievalConfig,
    parse_retrieval,
)
from rag_resources.core.errors import (
    InvalidParameterError,
    MigrationHeldError,
    RollbackRefusedError,
)
from rag_resources.database.claims import until_none_is_left, with_brief_locks
from rag_resources.database.pool import Connection, Database
from rag_resources.languages.messages import Text, _
from rag_resources.store.chunks import update_statistics
from rag_resources.store.evaluations import latest_evaluation
from rag_resources.store.holds import current_hold, hold_migration
from rag_resources.store.promotions import (
    Promotion,
    current_promotion,
    last_withdrawn,
    lock_promotions,
    previous_promotion,
    promote_back,
    was_promoted,
)
from rag_resources.store.rollback import drop_batch, vectors_to_serve, wait_for_chunking

BATCH_NOTES = 100
_FIRST = UUID(int=0)


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """The result of a withdrawal.

    Attributes:
        name: The configuration that was to be withdrawn.
        serving: What serves now; an earlier version of it may have the same name.
        changed: Whether this changed what serves.
    """

    name: str
    serving: Promotion
    changed: bool

    @property
    def in_words(self) -> Text:
        """Say in Spanish what serves now."""
        template = (
            _(
                "From now on “{serving}” serves, with the model {model}. “{name}” was withdrawn: "
                "it comes back only if it is promoted by its name."
            )
            if self.changed
            else _(
                "Nothing was changed: “{name}” is not what serves, or was withdrawn before. "
                "“{serving}” serves."
            )
        )
        return template.format(
            name=self.name, serving=self.serving.configuration, model=self.serving.model
        )


def roll_back_to_notes(
    database: Database,
    baseline: NamedConfiguration,
    *,
    reason: str,
    run_id: str | None,
    accept_missing: int = 0,
) -> bool:
    """Serve whole notes again, hold chunking, and delete all chunks.

    First the serving configuration and the hold change in one transaction, so that chunks are no
    longer searched or made. Then the chunks are deleted in batches of notes; a search still running
    finds those notes as a whole.

    Args:
        database: Open.
        baseline: The configuration that will serve.
        reason: The reason a person gave.
        run_id: Dagster's run, if any.
        accept_missing: How many notes may become unfindable because they have no vector.

    Returns:
        Whether the serving configuration changed.

    Raises:
        RollbackRefusedError: The baseline would not find every note; nothing was changed.
        MigrationHeldError: The migration was resumed meanwhile; the remaining chunks stay.
        IndexingError: Another run does not release its notes.
    """
    name, config, changed = baseline.name, baseline.retrieval, False

    def switch() -> None:
        nonlocal changed
        lock_promotions(connection)
        _check_serves(connection, name, config, accept_missing=accept_missing)
        changed = promote_back(
            connection,
            name,
            config,
            evaluation_id=_evidence(connection, baseline),
            run_id=run_id,
            reason=reason,
        )
        hold_migration(connection, "rolled_back", reason=reason, run_id=run_id)
        wait_for_chunking(connection)

    with database.transaction() as connection:
        with_brief_locks(connection, switch)
    _drop_all_chunks(database)
    return changed


def withdraw(
    database: Database,
    name: str,
    *,
    reason: str,
    run_id: str | None,
    config_hash: str | None = None,
) -> Withdrawal:
    """Withdraw a configuration: the previous one serves again, with its model.

    Args:
        database: Open.
        name: The configuration's. Nothing changes if it does not serve, or was the last one
            withdrawn, of which an earlier version may serve now.
        reason: The reason a person gave.
        run_id: Dagster's run, if any.
        config_hash: Of the version that is meant. Nothing changes if another one serves.

    Raises:
        InvalidParameterError: No configuration of this name ever served, or none is named.
        RollbackRefusedError: Nothing served before, or the rollback target cannot serve; nothing
            was changed.
    """
    with database.transaction() as connection:
        lock_promotions(connection)
        serving = current_promotion(connection)
        if serving is None:
            raise RollbackRefusedError(_("Nothing was changed: no configuration was promoted yet."))
        if not name:
            raise InvalidParameterError(
                _(
                    "Nothing was changed. “{serving}” serves: to withdraw it, write its name in "
                    "withdraw."
                ).format(serving=serving.configuration)
            )
        if not was_promoted(connection, name):
            raise InvalidParameterError(
                _("Nothing was changed: “{name}” never served. “{serving}” serves.").format(
                    name=name, serving=serving.configuration
                ),
                name=name,
            )
        if config_hash is None:
            is_meant = name != last_withdrawn(connection)
        else:
            is_meant = config_hash == serving.config_hash
        if name != serving.configuration or not is_meant:
            return Withdrawal(name, serving, changed=False)
        previous = previous_promotion(connection)
        if previous is None:
            raise RollbackRefusedError(
                _(
                    "Nothing was changed: before “{name}” no other configuration served that was "
                    "not withdrawn later. Promote another one by its name or use Dagster’s job "
                    "rollback_immediate, which goes back to “baseline” and deletes all chunks."
                ).format(name=name)
            )
        origin = _("promotion of “{name}”").format(name=previous.configuration)
        config = parse_retrieval(previous.config, origin=origin)
        _check_serves(connection, previous.configuration, config)
        promote_back(
            connection,
            previous.configuration,
            config,
            evaluation_id=previous.evaluation_id,
            run_id=run_id,
            reason=reason,
        )
        return Withdrawal(name, current_promotion(connection) or serving, changed=True)


def _evidence(connection: Connection, item: NamedConfiguration) -> UUID | None:
    evaluation = latest_evaluation(connection, item.name)
    if evaluation is None or evaluation.is_disturbed:
        return None
    is_same = evaluation.config_hash == item.retrieval.config_hash
    return evaluation.evaluation_id if is_same else None


def _check_serves(
    connection: Connection, name: str, config: RetrievalConfig, *, accept_missing: int = 0
) -> None:
    """Check that the configuration's model has all the vectors that it searches.

    Raises:
        RollbackRefusedError: It has not.
    """
    if not config.needs_vectors:
        return
    vectors = vectors_to_serve(connection, config.model)
    missing, asset = 0, f"embeddings/{config.model}"
    if vectors is None:
        is_ready = False
    elif config.unit == "notes":
        missing, asset = vectors.notes_missing, "note_embeddings"
        is_ready = missing <= accept_missing
    else:
        is_ready = not vectors.chunks or config.vector_kinds <= set(vectors.kinds)
    if not is_ready:
        raise RollbackRefusedError(
            _(
                "Nothing was changed: “{configuration}” cannot serve because {asset} lacks vectors "
                "({missing} whole notes). Materialise it first, or promote another one by its name."
            ).format(configuration=name, missing=missing, asset=asset),
            missing=missing,
        )


def _drop_all_chunks(database: Database) -> None:
    def drop_free() -> int:
        after, busy = _FIRST, 0
        while True:
            with database.transaction() as connection:
                batch = drop_batch(connection, after, batch_size=BATCH_NOTES)
                _stop_if_resumed(connection)
            if batch is None:
                return busy
            after, busy = batch.last, busy + batch.busy

    until_none_is_left(drop_free)
    with database.transaction() as connection:
        # A run killed at this point has deleted the chunks but not updated the statistics.
        update_statistics(connection)


def _stop_if_resumed(connection: Connection) -> None:
    hold = current_hold(connection)
    if hold is None or hold.kind != "rolled_back":
        raise MigrationHeldError(
            _(
                "Somebody resumed the migration while the chunks were being deleted; those that "
                "are left are kept, and each note is found by them or whole."
            )
        )
