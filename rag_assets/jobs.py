"""The jobs that materialise assets; those that do something else are in `ops`."""

import dagster as dg

from rag_assets.evaluation.assets import evaluation_assets, evaluation_report, golden_dataset
from rag_assets.indexing.assets import chunks, embeddings_assets
from rag_assets.ingestion.assets import note_embeddings, notes
from rag_assets.serving.assets import promoted_config
from rag_resources.core.messages import Message

ingest_job = dg.define_asset_job(
    "ingest",
    selection=dg.AssetSelection.assets(notes, note_embeddings),
    description=Message.ASSET_NOTES,
)

index_job = dg.define_asset_job(
    "index",
    selection=dg.AssetSelection.assets(chunks, *embeddings_assets),
    description=Message.JOB_INDEX,
)

golden_job = dg.define_asset_job(
    "golden",
    selection=dg.AssetSelection.assets(golden_dataset),
    description=Message.ASSET_GOLDEN,
)

evaluate_job = dg.define_asset_job(
    "evaluate",
    selection=dg.AssetSelection.assets(*evaluation_assets, evaluation_report),
    description=Message.JOB_EVALUATE,
)

promote_job = dg.define_asset_job(
    "promote",
    selection=dg.AssetSelection.assets(promoted_config),
    description=Message.JOB_PROMOTE,
)
