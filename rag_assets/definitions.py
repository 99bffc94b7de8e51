"""Everything Dagster loads."""

from typing import Any

import dagster as dg

from rag_assets.evaluation.archive import archive_evaluations_job
from rag_assets.evaluation.assets import evaluation_assets, evaluation_report, golden_dataset
from rag_assets.evaluation.checks import gates, golden_drift, golden_valid
from rag_assets.evaluation.compare import compare_job
from rag_assets.indexing.assets import chunks, embeddings_assets
from rag_assets.indexing.checks import chunk_integrity, embeddings_checks
from rag_assets.indexing.retire_model import retire_model_job
from rag_assets.ingestion.assets import note_embeddings, notes
from rag_assets.ingestion.checks import notes_inside_partitions
from rag_assets.ingestion.purge_expired import purge_expired_job
from rag_assets.jobs import (
    evaluate_job,
    golden_job,
    index_job,
    ingest_job,
    promote_job,
)
from rag_assets.migration.assets import migration_status
from rag_assets.migration.rollback import (
    resume_migration_job,
    rollback_immediate_job,
    rollback_partial_job,
    rollback_promotion_job,
)
from rag_assets.schedules import hourly_purge, nightly_archive, nightly_evaluation
from rag_assets.sensors import automation, failed_runs, new_notes, stop_backfills
from rag_assets.serving.assets import promoted_config
from rag_assets.serving.retrieve import retrieve_job
from rag_resources.resources import RagResource


def build_defs(**resources: Any) -> dg.Definitions:
    """Assemble the definitions; `resources` replace those of the same name."""
    return dg.Definitions(
        assets=[
            notes,
            note_embeddings,
            chunks,
            *embeddings_assets,
            migration_status,
            golden_dataset,
            *evaluation_assets,
            evaluation_report,
            promoted_config,
        ],
        asset_checks=[
            notes_inside_partitions,
            chunk_integrity,
            *embeddings_checks,
            golden_valid,
            golden_drift,
            *gates,
        ],
        jobs=[
            ingest_job,
            golden_job,
            index_job,
            evaluate_job,
            promote_job,
            retrieve_job,
            purge_expired_job,
            archive_evaluations_job,
            compare_job,
            rollback_immediate_job,
            rollback_partial_job,
            rollback_promotion_job,
            resume_migration_job,
            retire_model_job,
        ],
        schedules=[nightly_evaluation, nightly_archive, hourly_purge],
        sensors=[new_notes, failed_runs, stop_backfills, automation],
        resources={"rag": RagResource(), **resources},
        executor=dg.in_process_executor,
    )


defs = build_defs()
