"""What serves, how far the migration is, and the answers that were given."""

from collections.abc import Sequence

import dagster as dg

from rag_assets.automation import after_batches, any_candidate_passes
from rag_assets.configured import Configured
from rag_assets.gates import shown_evaluation
from rag_assets.keys import OWNERS, embeddings_key, evaluation_key
from rag_assets.launchpad import PromotionConfig
from rag_assets.metadata import labelled, month_metadata, numbers, serving_metadata
from rag_assets.partitions import batches, monthly
from rag_assets.runs.failures import told_as_failure
from rag_assets.runs.months import MonthEvents, MonthOutcome, materialize_months
from rag_resources.core.types import TimeWindow
from rag_resources.evaluation.summary import evidence_in_words
from rag_resources.languages.messages import _
from rag_resources.migration.status import summary, tables
from rag_resources.resources import RagResource
from rag_resources.settings import Settings


def build_promotion_asset(configured: Configured) -> dg.AssetsDefinition:
    """Build the asset `promoted_config`."""

    @dg.asset(
        deps=[evaluation_key(name) for name in configured.candidates],
        group_name="serving",
        owners=OWNERS,
        kinds={"python", "postgres"},
        automation_condition=dg.AutomationCondition.eager()
        & any_candidate_passes(configured.candidates),
        description=_(
            "The configuration that serves. A run promotes only a candidate whose last evaluation "
            "passes the gate; what is promoted or rolled back elsewhere is shown within a minute."
        ),
    )
    def promoted_config(
        context: dg.AssetExecutionContext, config: PromotionConfig, rag: RagResource
    ) -> dg.MaterializeResult[None]:
        """Promote a candidate that passes its gate on an evaluation of what is searched now."""
        with told_as_failure():
            if config.configuration:
                configured.configurations.named(config.configuration)
            outcome = rag.serving.promote(
                configured.configurations,
                name=config.configuration or None,
                run_id=context.run.run_id,
            )
        for name in outcome.evaluated_again:
            evaluation, known = rag.evaluations.latest(name), configured.configurations
            if evaluation and name in known:
                for event in shown_evaluation(rag.application, evaluation, known[name]):
                    context.log_event(event)
        return dg.MaterializeResult(
            metadata=labelled(
                {
                    **serving_metadata(outcome.evaluation, outcome.evaluation),
                    "evidence": evidence_in_words(outcome.evidence),
                    "evaluated_again": ", ".join(outcome.evaluated_again) or "–",
                    "changed": outcome.changed and not outcome.served_already,
                    "refused": dg.MetadataValue.md(
                        "\n".join(f"- {name}: {reason}" for name, reason in outcome.refused.items())
                        or "–"
                    ),
                }
            )
        )

    return promoted_config


def build_migration_status_asset(models: Sequence[str]) -> dg.AssetsDefinition:
    """Build the asset `migration_status`.

    Args:
        models: The models whose chunk vectors are assets.
    """

    @dg.asset(
        deps=[embeddings_key(model) for model in models],
        group_name="indexing",
        owners=OWNERS,
        kinds={"python", "postgres"},
        automation_condition=after_batches(models),
        description=_(
            "How much is migrated, with which quality, and what is left. It is materialised with "
            "each “rag run” and after each batch, so its numbers are plotted along the migration."
        ),
    )
    def migration_status(rag: RagResource) -> dg.MaterializeResult[None]:
        """Read the migration's progress."""
        own = rag.migration
        with told_as_failure():
            status = own.status()
        return dg.MaterializeResult(
            metadata=labelled(
                {
                    "summary": dg.MetadataValue.md(
                        "\n\n".join(summary(status, first_month=own.first_month))
                    ),
                    "tables": dg.MetadataValue.md(
                        "\n\n".join(table.markdown() for table in tables(status))
                    ),
                    **numbers(status),
                }
            )
        )

    return migration_status


def build_answer_log_asset(settings: Settings) -> dg.AssetsDefinition:
    """Build the asset `answer_log`."""

    @dg.asset(
        partitions_def=monthly(settings),
        backfill_policy=batches,
        group_name="serving",
        owners=OWNERS,
        kinds={"python", "postgres"},
        description=_(
            "The answers of the month, as they were given: how many questions stayed without one, "
            "how many false answers are to be expected and what readers thought."
        ),
    )
    def answer_log(context: dg.AssetExecutionContext, rag: RagResource) -> MonthEvents:
        """Read the log of the answers; those too old to keep are deleted first."""
        rag.answer_log.delete_old()

        def month(window: TimeWindow) -> MonthOutcome:
            return MonthOutcome(month_metadata(rag.answer_log.figures(window)))

        yield from materialize_months(context, month)

    return answer_log
