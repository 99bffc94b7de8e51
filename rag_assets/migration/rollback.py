"""The rollback jobs and their reversal; each needs a reason, and confirmation if data is lost."""

from typing import Any

import dagster as dg
from pydantic import Field

from rag_assets.keys import PROMOTED_CONFIG
from rag_assets.labels import labelled
from rag_assets.launchpad import LaunchpadConfig
from rag_assets.runs.failures import told_as_failure
from rag_assets.serving.metadata import promotion_metadata
from rag_resources.configurations import BASELINE_CONFIGURATION
from rag_resources.core.errors import InvalidParameterError
from rag_resources.evaluation.summary import evidence_in_words
from rag_resources.languages.messages import _, joined
from rag_resources.resources import RagResource
from rag_resources.store.progress import Progress


class ReasonConfig(LaunchpadConfig):
    """Why, as the launchpad asks for it."""

    reason: str = Field(default="", description=_("Why; it is stored. Required."))

    def given_reason(self) -> str:
        """Return the reason that the person gave.

        Raises:
            InvalidParameterError: No reason was given.
        """
        reason = self.reason.strip()
        if not reason:
            raise InvalidParameterError(_("Nothing was changed: the reason is missing."))
        return reason


class ImmediateConfig(ReasonConfig):
    """The confirmation of an immediate rollback."""

    confirm: str = Field(
        default="", description=_("Write “delete” to confirm that all chunks are deleted.")
    )
    accept_missing: int = Field(
        default=0, description=_("How many notes without a whole-note vector may stop being found.")
    )

    def accepted(self) -> int:
        """Return how many notes may become unfindable.

        Raises:
            InvalidParameterError: It is negative. Dagster's own check would use pydantic's words.
        """
        if self.accept_missing < 0:
            problem = _("{value} is less than the minimum, {ge}").format(
                value=self.accept_missing, ge=0
            )
            raise InvalidParameterError(joined(": ", ("accept_missing", problem)))
        return self.accept_missing


class PartialConfig(ReasonConfig):
    """The confirmation of a partial rollback."""

    confirm: str = Field(
        default="", description=_("Write “stop” to confirm that the migration is stopped.")
    )


class PromotionRollbackConfig(ReasonConfig):
    """What to withdraw, which confirms it."""

    withdraw: str = Field(
        default="",
        description=_(
            "The one to withdraw; without it the one that serves now. If it no longer serves, "
            "nothing changes."
        ),
    )


@dg.op(
    description=_(
        "Undoes the migration: “baseline”, which searches whole notes, serves again, all chunks "
        "with their vectors are deleted, and nothing more is chunked. The notes are untouched."
    )
)
def drop_migration(
    context: dg.OpExecutionContext, config: ImmediateConfig, rag: RagResource
) -> None:
    """Serve whole notes and delete all chunks."""
    with told_as_failure():
        before = rag.migration.progress()
        consequence = _(
            "“{configuration}” would serve, and chunks would be deleted: {chunks}, of {notes} "
            "notes."
        ).format(chunks=before.chunks, notes=before.chunked, configuration=BASELINE_CONFIGURATION)
        _check_confirmed(config.confirm, _("delete"), consequence)
        changed = rag.serving.roll_back_to_notes(
            rag.application.configuration(BASELINE_CONFIGURATION),
            reason=config.given_reason(),
            run_id=context.run_id,
            accept_missing=config.accepted(),
        )
    if changed:
        _tell_what_serves(context, rag)
    context.add_output_metadata(
        labelled({**_counts(before, "before"), **_state(rag), "changed": changed})
    )


@dg.op(
    description=_(
        "Stops the migration where it is: what is migrated goes on serving, and the other notes "
        "are found whole."
    )
)
def stop_migration(context: dg.OpExecutionContext, config: PartialConfig, rag: RagResource) -> None:
    """Keep what is migrated, and let no further batch start."""
    with told_as_failure():
        before = rag.migration.progress()
        consequence = _("The migration would stop with {chunked} of {notes} notes chunked.").format(
            chunked=before.chunked, notes=before.notes
        )
        _check_confirmed(config.confirm, _("stop"), consequence)
        changed = rag.migration.stop(reason=config.given_reason(), run_id=context.run_id)
    context.add_output_metadata(
        labelled({**_counts(before, "before"), **_state(rag), "changed": changed})
    )


@dg.op(
    description=_(
        "Withdraws the configuration that serves and goes back to the one before, with its model."
    )
)
def withdraw_promotion(
    context: dg.OpExecutionContext, config: PromotionRollbackConfig, rag: RagResource
) -> None:
    """Let the previous configuration serve again."""
    with told_as_failure():
        outcome = rag.serving.withdraw(
            config.withdraw.strip(), reason=config.given_reason(), run_id=context.run_id
        )
    (context.log.info if outcome.changed else context.log.warning)(outcome.in_words)
    if outcome.changed:
        _tell_what_serves(context, rag)
    context.add_output_metadata(
        labelled({**_state(rag), "evidence": _evidence(rag), "changed": outcome.changed})
    )


@dg.op(description=_("Lets the migration go on after rollback_partial or rollback_immediate."))
def lift_hold(context: dg.OpExecutionContext, config: ReasonConfig, rag: RagResource) -> None:
    """Let batches start again."""
    with told_as_failure():
        lifted = rag.migration.resume(reason=config.given_reason(), run_id=context.run_id)
    context.add_output_metadata(
        labelled(
            {
                **_state(rag),
                "lifted": lifted.explanation if lifted else "–",
                "changed": lifted is not None,
            }
        )
    )


@dg.job(
    name="rollback_immediate",
    description=_(
        "Undoes the migration: “baseline”, which searches whole notes, serves again, all chunks "
        "with their vectors are deleted, and nothing more is chunked. The notes are untouched."
    ),
)
def rollback_immediate_job() -> None:
    """Return to whole notes."""
    drop_migration()


@dg.job(
    name="rollback_partial",
    description=_(
        "Stops the migration where it is: what is migrated goes on serving, and the other notes "
        "are found whole."
    ),
)
def rollback_partial_job() -> None:
    """Stop the migration where it is."""
    stop_migration()


@dg.job(
    name="rollback_promotion",
    description=_(
        "Withdraws the configuration that serves and goes back to the one before, with its model."
    ),
)
def rollback_promotion_job() -> None:
    """Return to the previous configuration."""
    withdraw_promotion()


@dg.job(
    name="resume_migration",
    description=_("Lets the migration go on after rollback_partial or rollback_immediate."),
)
def resume_migration_job() -> None:
    """Resume the migration."""
    lift_hold()


def _check_confirmed(given: str, word: str, consequence: str) -> None:
    if given.strip() != word:
        raise InvalidParameterError(
            _("Nothing was changed. {consequence} To confirm, write “{word}” in confirm.").format(
                consequence=consequence, word=word
            )
        )


def _counts(progress: Progress, moment: str) -> dict[str, Any]:
    return {
        f"notes_{moment}": progress.notes,
        f"chunked_{moment}": progress.chunked,
        f"chunks_{moment}": progress.chunks,
        f"vectors_{moment}": sum(progress.vectors.values()),
    }


def _tell_what_serves(context: dg.OpExecutionContext, rag: RagResource) -> None:
    """Show on the page of `promoted_config`, as its last materialisation, what serves now.

    The figures that it was promoted on may be stale by now, so its latest are shown.
    """
    promotion = rag.serving.promotion()
    if promotion is None:
        return
    evaluations, known = rag.evaluations, promotion.evaluation_id
    evaluation = evaluations.latest(promotion.configuration)
    if evaluation is None or evaluation.config_hash != promotion.config_hash:
        evaluation = evaluations.find(known) if known else None
    evidence = evaluations.evidence([evaluation])[evaluation.evaluation_id] if evaluation else None
    metadata = promotion_metadata(promotion, evaluation, evidence)
    context.log_event(dg.AssetMaterialization(PROMOTED_CONFIG, metadata=metadata))


def _evidence(rag: RagResource) -> str:
    """Say whether the evaluation of what serves now is current, aged or stale."""
    evidence = rag.serving.evidence()
    return evidence_in_words(evidence) if evidence else "–"


def _state(rag: RagResource) -> dict[str, Any]:
    """Return the counts of stored rows, what serves, and the hold, if any."""
    serving, hold = rag.serving.promotion(), rag.migration.held()
    return {
        **_counts(rag.migration.progress(), "after"),
        "serving": serving.configuration if serving else "–",
        "model": serving.model if serving else "–",
        "hold": hold.explanation if hold else "–",
    }
