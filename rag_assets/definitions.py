"""The code location that Dagster loads, built from the settings."""

import warnings
from typing import Any

import dagster as dg

from rag_assets import checks, jobs, schedules, sensors
from rag_assets.assets.documents import build_document_pages_asset, build_documents_asset
from rag_assets.assets.evaluation import build_evaluation_asset, build_report_asset, golden_dataset
from rag_assets.assets.indexing import (
    build_chunks_asset,
    build_embeddings_asset,
    build_graph_asset,
)
from rag_assets.assets.notes import build_note_embeddings_asset, build_notes_asset
from rag_assets.assets.serving import (
    build_answer_log_asset,
    build_migration_status_asset,
    build_promotion_asset,
)
from rag_assets.configured import Configured, read_configured
from rag_assets.gates import build_gates, build_quality_check
from rag_assets.runs.liveness import locked_executor
from rag_resources.core.graph_version import GraphPart
from rag_resources.logs import log_to_stderr
from rag_resources.resources import RagResource
from rag_resources.settings import Settings, load_settings


@dg.definitions
def defs() -> dg.Definitions:
    """Build the definitions for the settings of this process."""
    settings = load_settings()
    log_to_stderr(level=settings.log_level)
    return build_defs(settings)


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
    # Dagster is pinned exactly, so what is in preview does not change.
    warnings.filterwarnings(
        "ignore", message=".*load_definitions_from_modules", category=dg.PreviewWarning
    )
    # Dagster itself sets this one when it copies a sensor.
    warnings.filterwarnings("ignore", message=".*`owners` of initializer `SensorDefinition")
    configured = read_configured(settings)
    return dg.Definitions.merge(
        dg.load_definitions_from_modules([checks, jobs, schedules, sensors]),
        dg.Definitions(
            assets=_assets(configured),
            asset_checks=_checks(configured),
            sensors=sensors.build_sensors(configured),
            resources={"rag": RagResource(settings=settings), **overrides},
            executor=locked_executor(settings),
        ),
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
    return [
        *(check for model in configured.models for check in checks.build_vectors_checks(model)),
        *map(build_quality_check, configured.models),
        *map(checks.build_completeness_check, GraphPart),
        *(gate for item in configured.configurations.values() for gate in build_gates(item)),
    ]
