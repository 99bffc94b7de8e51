"""Checks of chunks, and of retrieval quality after every batch."""

import dagster as dg

from rag_assets.configured import Configured
from rag_assets.evaluation.metadata import evaluation_metadata, stage_metadata
from rag_assets.indexing.gate import record_quality
from rag_assets.keys import CHUNKS, GOLDEN_DATASET, embeddings_key
from rag_assets.labels import labelled
from rag_assets.runs.partitions import run_window
from rag_resources.evaluation.summary import p_value_in_words
from rag_resources.languages.messages import _, ngettext
from rag_resources.resources import RagResource

EXAMPLES = 10


@dg.asset_check(
    asset=CHUNKS,
    blocking=True,
    description=_("The chunks are numbered from 0 to N−1, lie inside their note and cover it."),
)
def chunk_integrity(
    context: dg.AssetCheckExecutionContext, rag: RagResource
) -> dg.AssetCheckResult:
    """Check the bounds, sequence and coverage of the chunks in the run's months."""
    checked, broken = rag.indexing.broken_notes(run_window(context.run.tags, rag.settings))
    examples = ", ".join(f"{note.note_id} ({note.problem})" for note in broken[:EXAMPLES])
    return dg.AssetCheckResult(
        passed=not broken,
        metadata=labelled({"notes": checked, "broken": len(broken)}),
        description=_("Some notes have incorrect chunks: {examples}").format(examples=examples)
        if broken
        else ngettext("{notes} note checked.", "{notes} notes checked.", checked).format(
            notes=checked
        ),
    )


def build_quality_check(model: str, configured: Configured) -> dg.AssetChecksDefinition:
    """Build the check of retrieval quality after each batch of a model."""

    @dg.asset_check(
        asset=embeddings_key(model),
        name="retrieval_quality",
        additional_deps=[GOLDEN_DATASET],
        description=_("Quality of retrieval with this model after each batch: a point a run."),
    )
    def retrieval_quality(
        context: dg.AssetCheckExecutionContext, rag: RagResource
    ) -> dg.AssetCheckResult:
        measured = record_quality(context, rag, configured, model)
        if measured is None:
            return dg.AssetCheckResult(
                passed=False,
                severity=dg.AssetCheckSeverity.WARN,
                description=_(
                    "There are no questions to measure with: materialise golden_dataset."
                ),
            )
        evaluation, stages, batch = measured
        next_batch = (
            _("The next batch may start") if batch.is_open else _("The next batch will not start")
        )
        return dg.AssetCheckResult(
            passed=batch.is_open,
            # An error that does not block: this run is over, and the next one reads the gate.
            severity=dg.AssetCheckSeverity.WARN if batch.is_open else dg.AssetCheckSeverity.ERROR,
            metadata=labelled(
                {
                    **evaluation_metadata(evaluation),
                    **stage_metadata(stages),
                    "configuration": evaluation.configuration,
                    "config_hash": evaluation.config_hash,
                    "next_batch": next_batch,
                    "level": batch.level,
                    "p_value": p_value_in_words(batch.drop.p_value) if batch.drop else "–",
                    "compared_queries": batch.drop.compared if batch.drop else 0,
                    "baseline_hit_rate_at_10": batch.drop.before if batch.drop else None,
                    "compared_hit_rate_at_10": batch.drop.now if batch.drop else None,
                }
            ),
            description=f"{next_batch}: {batch.reason}.",
        )

    return retrieval_quality
