"""The jobs that materialise assets; other jobs are in the folder of their domain."""

import dagster as dg

from rag_assets.keys import (
    ALL_EMBEDDINGS,
    ALL_EVALUATIONS,
    ALL_WINDOWS,
    CHUNKS,
    DOCUMENT_PAGES,
    DOCUMENTS,
    EVALUATION_REPORT,
    GOLDEN_DATASET,
    GRAPH,
    MIGRATION_STATUS,
    NOTE_EMBEDDINGS,
    NOTES,
    PROMOTED_CONFIG,
)
from rag_resources.core.messages import Message

ingest_job = dg.define_asset_job(
    "ingest",
    selection=dg.AssetSelection.assets(DOCUMENTS, DOCUMENT_PAGES, NOTES, NOTE_EMBEDDINGS),
    description=Message.ASSET_NOTES,
)

index_job = dg.define_asset_job(
    "index",
    selection=dg.AssetSelection.assets(CHUNKS, *GRAPH) | ALL_EMBEDDINGS | ALL_WINDOWS,
    description=Message.JOB_INDEX,
)

golden_job = dg.define_asset_job(
    "golden",
    selection=dg.AssetSelection.assets(GOLDEN_DATASET),
    description=Message.ASSET_GOLDEN,
)

migration_progress_job = dg.define_asset_job(
    "migration_progress",
    selection=dg.AssetSelection.assets(MIGRATION_STATUS),
    description=Message.ASSET_MIGRATION_STATUS,
)

evaluate_job = dg.define_asset_job(
    "evaluate",
    selection=dg.AssetSelection.assets(EVALUATION_REPORT) | ALL_EVALUATIONS,
    description=Message.JOB_EVALUATE,
)

promote_job = dg.define_asset_job(
    "promote",
    selection=dg.AssetSelection.assets(PROMOTED_CONFIG),
    description=Message.JOB_PROMOTE,
)
