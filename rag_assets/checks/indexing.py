"""Checks of chunks and vectors, and the quality of retrieval after every batch."""

import dagster as dg

from rag_assets.assets.evaluation import golden_dataset
from rag_assets.assets.indexing import chunks, embeddings_key
from rag_assets.checks.evaluation import gate_description
from rag_assets.configured import representative
from rag_assets.metadata import evaluation_metadata
from rag_assets.partitions import run_window
from rag_resources.core.errors import InvalidGoldenDatasetError
from rag_resources.core.gate import GateState
from rag_resources.core.messages import Message
from rag_resources.evaluation.runner import evaluate
from rag_resources.indexing.verify import (
    MIN_COSINE,
    find_broken_notes,
    lowest_cosine,
)
from rag_resources.resources import RagResource
from rag_resources.settings import settings
from rag_resources.store.embeddings import count_gaps

EXAMPLES = 10


@dg.asset_check(asset=chunks, blocking=True, description=Message.CHECK_CHUNK_INTEGRITY)
def chunk_integrity(
    context: dg.AssetCheckExecutionContext, rag: RagResource
) -> dg.AssetCheckResult:
    """Bounds, sequence and coverage of the chunks of the run's months."""
    checked, broken = find_broken_notes(rag.application.database, run_window(context.run.tags))
    examples = ", ".join(f"{note.note_id} ({note.problem})" for note in broken[:EXAMPLES])
    return dg.AssetCheckResult(
        passed=not broken,
        metadata={"notes": checked, "broken": len(broken)},
        description=Message.CHUNKS_BROKEN.format(examples=examples)
        if broken
        else Message.CHUNKS_SOUND.format(notes=checked),
    )


def build_embeddings_checks(model: str) -> list[dg.AssetChecksDefinition]:
    """Make the checks of `embeddings/<model>`."""

    @dg.asset_check(
        asset=embeddings_key(model),
        name="embeddings_complete",
        blocking=True,
        description=Message.CHECK_EMBEDDINGS_COMPLETE,
    )
    def embeddings_complete(
        context: dg.AssetCheckExecutionContext, rag: RagResource
    ) -> dg.AssetCheckResult:
        application = rag.application
        info = application.embedder(model).info
        with application.database.transaction() as connection:
            gaps = count_gaps(connection, info, run_window(context.run.tags))
        return dg.AssetCheckResult(
            passed=gaps.total == 0,
            metadata={"chunks": gaps.chunks, "missing": gaps.missing, "stale": gaps.stale},
            description=Message.EMBEDDINGS_GAPS.format(
                chunks=gaps.chunks,
                missing=gaps.missing,
                stale=gaps.stale,
                wrong=gaps.wrong_dimension,
            ),
        )

    @dg.asset_check(
        asset=embeddings_key(model),
        name="batch_equals_single",
        description=Message.CHECK_BATCH_SINGLE,
    )
    def batch_equals_single(rag: RagResource) -> dg.AssetCheckResult:
        cosine = lowest_cosine(rag.application.database, rag.application.embedder(model))
        if cosine is None:
            return dg.AssetCheckResult(passed=True, description=Message.NOTHING_TO_CHECK)
        return dg.AssetCheckResult(
            passed=cosine >= MIN_COSINE,
            severity=dg.AssetCheckSeverity.WARN,
            metadata={"lowest_cosine": cosine},
            description=Message.BATCH_DIFFERS.format(cosine=cosine, minimum=MIN_COSINE),
        )

    @dg.asset_check(
        asset=embeddings_key(model),
        name="retrieval_quality",
        additional_deps=[golden_dataset],
        description=Message.CHECK_RETRIEVAL_QUALITY,
    )
    def retrieval_quality(rag: RagResource) -> dg.AssetCheckResult:
        application = rag.application
        try:
            evaluation = evaluate(
                application.database,
                application.pipeline,
                model,
                representative(model),
                store=False,
            )
        except InvalidGoldenDatasetError:
            return dg.AssetCheckResult(
                passed=False,
                severity=dg.AssetCheckSeverity.WARN,
                description=Message.QUALITY_WITHOUT_GOLDEN,
            )
        verdict = evaluation.summary.verdict
        return dg.AssetCheckResult(
            passed=verdict.state is not GateState.FAIL,
            severity=dg.AssetCheckSeverity.WARN,
            metadata=evaluation_metadata(evaluation.summary),
            description=gate_description(verdict, evaluation.summary.total_queries),
        )

    return [embeddings_complete, batch_equals_single, retrieval_quality]


embeddings_checks = [
    check for model in settings().embedding_models for check in build_embeddings_checks(model)
]
