"""The migration's progress after every batch: plotted numbers and tables."""

from collections.abc import Sequence
from typing import Any

import dagster as dg

from rag_assets.keys import OWNERS, embeddings_key
from rag_assets.labels import labelled
from rag_assets.runs.failures import told_as_failure
from rag_resources.core.migration_status import Quality
from rag_resources.languages.messages import _
from rag_resources.migration.status import summary, tables
from rag_resources.resources import RagResource
from rag_resources.store.migration_status import MigrationStatus


def after_batches(models: Sequence[str]) -> dg.AutomationCondition[Any]:
    """Return the condition that becomes true after every batch of any model.

    `eager()` would wait for all months and for the end of the backfill. A batch is over when its
    quality is known or when it has failed.
    """
    measured = dg.AutomationCondition.any_deps_match(
        dg.AutomationCondition.any_checks_match(dg.AutomationCondition.newly_updated()).allow(
            dg.AssetSelection.checks(
                *(dg.AssetCheckKey(embeddings_key(model), "retrieval_quality") for model in models)
            )
        )
    )
    failed = dg.AutomationCondition.any_deps_match(
        dg.AutomationCondition.execution_failed().newly_true()
    )
    condition = (measured | failed).since_last_handled() & ~dg.AutomationCondition.in_progress()
    return condition.with_label("after_batches")


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


def numbers(status: MigrationStatus) -> dict[str, Any]:
    """Return the numbers that Dagster plots; unknown ones are left out and give no point."""
    total = status.total
    found: dict[str, float | None] = {
        "percent_migrated": total.percent_migrated,
        "notes": total.notes,
        "migrated": total.migrated,
        "remaining": total.remaining,
        "failed_notes": total.failed,
        **{f"pending_{model.name}": model.pending_notes for model in status.models},
        **{f"percent_{model.name}": model.percent for model in status.models},
        **_quality(status.quality),
        **{
            f"vectors_per_minute_{model}": rate for model, rate in status.vectors_per_minute.items()
        },
        "minutes_left": status.minutes_left,
        "closed_gates": len(status.closed),
    }
    return {name: value for name, value in found.items() if value is not None}


def _quality(quality: Quality | None) -> dict[str, float | None]:
    if quality is None or quality.is_stale:
        return {}
    return {
        "hit_rate_at_10": quality.hit_rate_at_10,
        "mrr": quality.mrr,
        "latency_p95_ms": quality.latency_p95_ms,
    }
