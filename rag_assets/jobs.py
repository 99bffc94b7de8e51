"""The jobs that materialise assets; other jobs are in the folder of their domain."""

import dagster as dg

from rag_assets.keys import (
    ALL_EMBEDDINGS,
    ALL_EVALUATIONS,
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
from rag_resources.languages.messages import _

ingest_job = dg.define_asset_job(
    "ingest",
    selection=dg.AssetSelection.assets(DOCUMENTS, DOCUMENT_PAGES, NOTES, NOTE_EMBEDDINGS),
    description=_(
        "The notes of the source (NOTES_SOURCE), by month of creation. What has not changed is "
        "untouched; what cannot be read is named and counted."
    ),
)

index_job = dg.define_asset_job(
    "index",
    selection=dg.AssetSelection.assets(CHUNKS, *GRAPH) | ALL_EMBEDDINGS,
    description=_("Chunks and embeds the notes of the chosen months."),
)

golden_job = dg.define_asset_job(
    "golden",
    selection=dg.AssetSelection.assets(GOLDEN_DATASET),
    description=_("Questions with their relevant notes: the yardstick for each configuration."),
)

migration_progress_job = dg.define_asset_job(
    "migration_progress",
    selection=dg.AssetSelection.assets(MIGRATION_STATUS),
    description=_(
        "How much is migrated, with which quality, and what is left. It is materialised with each "
        "“rag run” and after each batch, so its numbers are plotted along the migration."
    ),
)

evaluate_job = dg.define_asset_job(
    "evaluate",
    selection=dg.AssetSelection.assets(EVALUATION_REPORT) | ALL_EVALUATIONS,
    description=_("Evaluates all configurations and compares them."),
)

promote_job = dg.define_asset_job(
    "promote",
    selection=dg.AssetSelection.assets(PROMOTED_CONFIG),
    description=_("Promotes the named candidate, or the best that passes its gate."),
)
