"""The gate between the batches of a model: a run with work reads it, a check afterwards sets it.

The rule of the gate is in `rag_resources.core.migration_gate`.
"""

import math
from collections.abc import Mapping, Sequence
from datetime import UTC
from typing import NamedTuple

import dagster as dg
from pydantic import Field

from rag_assets.configured import Configured
from rag_assets.launchpad import LaunchpadConfig
from rag_assets.runs.failures import told_as_failure
from rag_assets.runs.partitions import batches, month_window, monthly, run_window
from rag_resources.core.errors import InvalidGoldenDatasetError
from rag_resources.core.evaluation import Percentiles, StoredEvaluation
from rag_resources.core.migration_gate import BatchVerdict, serving_with
from rag_resources.evaluation.runner import as_stored
from rag_resources.languages.messages import _
from rag_resources.resources import RagResource
from rag_resources.settings import Settings
from rag_resources.store.migration import StoredBatch


class BatchConfig(LaunchpadConfig):
    """What a person may say of a batch, as the launchpad asks for it."""

    override_quality_gate: str = Field(
        default="",
        description=_(
            "Reason to go on although the quality gate is closed; it is stored with the batch "
            "that closed it. Empty: no going on."
        ),
    )


def pass_quality_gate(
    context: dg.AssetExecutionContext,
    config: BatchConfig,
    rag: RagResource,
    models: Sequence[str],
) -> dict[str, str]:
    """Continue only if the last batch of every model left its gate open, or a person overrides it.

    No override lifts a hold. A stopped run fails instead of skipping its months: a green run would
    hide that their notes are waiting.

    Returns:
        Metadata about the override for the run's materialisations; empty if there was none.

    Raises:
        dagster.Failure: A gate is closed or the migration is held; the text says which, why, and
            how to continue.
    """
    override = config.override_quality_gate.strip()
    with told_as_failure():
        closed = rag.migration.closed_gates(models, override=override, run_id=context.run.run_id)
    if not closed:
        return {}
    if not override:
        refusal = _(
            "This batch does not start: the quality gate is closed.\n{batches}\nMend the cause "
            "and repeat only the check retrieval_quality of each named asset: if quality is back, "
            "it opens the gate. To go on without that, give the reason in the run configuration: "
            'ops: {{{op}: {{config: {{override_quality_gate: "…"}}}}}}'
        ).format(batches=describe_closed(closed), op=context.op_execution_context.op_handle.name)
        raise dg.Failure(refusal, allow_retries=False)
    overridden = ", ".join(batch.model for batch in closed)
    context.log.warning(
        _("Going on despite the closed quality gate of {models}; reason: {override_reason}").format(
            models=overridden, override_reason=override
        )
    )
    return {"override_quality_gate": override}


def describe_closed(closed: Sequence[StoredBatch]) -> str:
    """Return the batches that closed their gate, with time and reason, one per line."""
    return "\n".join(
        _("embeddings/{model}, measured on {finished_at:%Y-%m-%d %H:%M} UTC: {reason}.").format(
            model=batch.model, finished_at=batch.finished_at.astimezone(UTC), reason=batch.reason
        )
        for batch in closed
    )


class BatchQuality(NamedTuple):
    """What was measured after a batch, the latencies by stage, and the verdict."""

    evaluation: StoredEvaluation
    stages: Mapping[str, Percentiles]
    verdict: BatchVerdict


def record_quality(
    context: dg.AssetCheckExecutionContext, rag: RagResource, configured: Configured, model: str
) -> BatchQuality | None:
    """Evaluate the serving configuration with a model after its batch, and set the model's gate.

    A second call in the same run measures again and replaces the verdict.

    Returns:
        None without golden questions, which leaves the gate as it is.
    """
    serving, window = rag.serving.now(), run_window(context.run.tags, configured.settings)
    try:
        config = serving_with(serving.config, model)
        evaluation = rag.evaluations.measure(serving.name, config)
    except InvalidGoldenDatasetError:
        return None
    verdict = rag.migration.record_batch(
        model,
        evaluation,
        run_id=context.run.run_id,
        months=run_months(context.run.tags, configured.settings),
        window=window,
        planned=planned_batches(configured.settings),
        vectors=rag.indexing.verify_vectors(model, window),
    )
    measured, _ = as_stored(evaluation)
    return BatchQuality(measured, evaluation.summary.stages, verdict)


def run_months(tags: Mapping[str, str], settings: Settings) -> tuple[str, ...]:
    """Return the months of a run as `YYYY-MM`; empty if it has no partitions."""
    if not tags.keys() & {"dagster/partition", "dagster/asset_partition_range_start"}:
        return ()
    window = run_window(tags, settings)
    return tuple(
        key[:7]
        for key in monthly(settings).get_partition_keys()
        if window.start <= month_window(key).start < window.end
    )


def planned_batches(settings: Settings) -> int:
    """Return the number of batches in all months."""
    return math.ceil(
        len(monthly(settings).get_partition_keys()) / (batches.max_partitions_per_run or 1)
    )
