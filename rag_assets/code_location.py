"""Builds the definitions of the code location from settings."""

import warnings
from typing import Any

import dagster as dg

from rag_assets.configured import Configured, read_configured
from rag_assets.documents.assets import build_document_pages_asset, build_documents_asset
from rag_assets.documents.checks import citations_verified, document_errors, extraction_loss
from rag_assets.documents.sensor import build_new_documents_sensor
from rag_assets.evaluation.assets import (
    build_evaluation_asset,
    build_report_asset,
    golden_dataset,
)
from rag_assets.evaluation.checks import build_gates, golden_drift, golden_valid
from rag_assets.evaluation.compare import compare_job
from rag_assets.graph.assets import build_graph_asset
from rag_assets.graph.checks import build_completeness_check
from rag_assets.indexing.assets import build_chunks_asset
from rag_assets.indexing.checks import build_quality_check, chunk_integrity
from rag_assets.indexing.promote_tenant import promote_tenant_job
from rag_assets.indexing.retire_model import retire_model_job
from rag_assets.indexing.vectors import build_embeddings_asset, build_vectors_checks
from rag_assets.ingestion.assets import build_note_embeddings_asset, build_notes_asset
from rag_assets.ingestion.checks import notes_inside_partitions, rejected_records
from rag_assets.ingestion.purge_expired import purge_expired_job
from rag_assets.jobs import (
    evaluate_job,
    golden_job,
    index_job,
    ingest_job,
    migration_progress_job,
    promote_job,
)
from rag_assets.migration.assets import build_migration_status_asset
from rag_assets.migration.rollback import (
    resume_migration_job,
    rollback_immediate_job,
    rollback_partial_job,
    rollback_promotion_job,
)
from rag_assets.outside_runs import build_outside_runs_sensor
from rag_assets.runs.liveness import locked_executor
from rag_assets.schedules import (
    hourly_purge,
    nightly_answer_log,
    nightly_evaluation,
)
from rag_assets.sensors import (
    automation,
    build_new_notes_sensor,
    build_waiting_notes_sensor,
    failed_runs,
)
from rag_assets.serving.answer_log import build_answer_log_asset
from rag_assets.serving.ask import ask_job
from rag_assets.serving.assets import build_promotion_asset
from rag_assets.serving.retrieve import retrieve_job
from rag_resources.core.graph_version import GraphPart
from rag_resources.resources import RagResource
from rag_resources.settings import Settings


def build_defs(settings: Settings, **overrides: Any) -> dg.Definitions:
    """Build the definitions for these settings.

    Args:
        settings: Decide models, configurations, months and the location of runs.
        overrides: Resources that replace those of the same name.

    Raises:
        InvalidConfigurationError: A model of the settings is unknown.
    """
    # Migration in batches relies on backfill policies; their beta status is accepted.
    warnings.filterwarnings("ignore", message=".*backfill_policy", category=dg.BetaWarning)
    # Dagster itself sets this one when it copies a sensor.
    warnings.filterwarnings("ignore", message=".*`owners` of initializer `SensorDefinition")
    configured = read_configured(settings)
    return dg.Definitions(
        assets=_assets(configured),
        asset_checks=_checks(configured),
        jobs=[
            ingest_job,
            golden_job,
            index_job,
            migration_progress_job,
            evaluate_job,
            promote_job,
            retrieve_job,
            ask_job,
            promote_tenant_job,
            purge_expired_job,
            compare_job,
            rollback_immediate_job,
            rollback_partial_job,
            rollback_promotion_job,
            resume_migration_job,
            retire_model_job,
        ],
        schedules=[
            nightly_evaluation,
            nightly_answer_log,
            hourly_purge,
        ],
        sensors=[
            build_new_notes_sensor(settings),
            build_waiting_notes_sensor(settings),
            build_new_documents_sensor(settings),
            build_outside_runs_sensor(configured),
            failed_runs,
            automation,
        ],
        resources={"rag": RagResource(settings=settings), **overrides},
        executor=locked_executor(settings),
    )


def _assets(configured: Configured) -> list[dg.AssetsDefinition]:
    settings, configurations = configured.settings, configured.configurations
    return [
        build_documents_asset(settings),
        build_document_pages_asset(settings),
        build_notes_asset(settings),
        build_note_embeddings_asset(settings),
        build_chunks_asset(settings),
        *(build_embeddings_asset(model, settings) for model in configured.models),
        *(build_graph_asset(part, settings) for part in GraphPart),
        build_migration_status_asset(configured.models),
        golden_dataset,
        *(build_evaluation_asset(item) for item in configurations.values()),
        build_report_asset(configurations),
        build_promotion_asset(configured),
        build_answer_log_asset(settings),
    ]


def _checks(configured: Configured) -> list[dg.AssetChecksDefinition]:
    vectors_checks = [
        check for model in configured.models for check in build_vectors_checks(model, configured)
    ]
    quality_checks = [build_quality_check(model, configured) for model in configured.models]
    gates = [gate for item in configured.configurations.values() for gate in build_gates(item)]
    return [
        extraction_loss,
        document_errors,
        notes_inside_partitions,
        rejected_records,
        citations_verified,
        chunk_integrity,
        *vectors_checks,
        *quality_checks,
        *(build_completeness_check(part) for part in GraphPart),
        golden_valid,
        golden_drift,
        *gates,
    ]
