"""The assets `mentions` and `causal_statements`."""

import dagster as dg

from rag_assets.automation import when_months_change
from rag_assets.keys import CHUNKS, OWNERS, graph_key
from rag_assets.runs.failures import told_as_failure
from rag_assets.runs.months import MonthEvents, MonthOutcome, indexed_month, materialize_months
from rag_assets.runs.partitions import batches, monthly
from rag_assets.runs.pools import DATABASE_WRITES
from rag_assets.runs.progress import MonthProgress
from rag_resources.core.graph_version import GraphPart
from rag_resources.core.types import TimeWindow
from rag_resources.graph.extraction import LANGUAGE_MODEL, extractor_version
from rag_resources.languages.messages import _
from rag_resources.resources import RagResource
from rag_resources.settings import Settings

_DESCRIPTIONS = {
    GraphPart.MENTIONS: _(
        "What the notes speak of: names, tags and dates, with the place of each mention in its "
        "chunk, by month of the note."
    ),
    GraphPart.STATEMENTS: _(
        "What the notes say is the cause of something: cause, effect, connective and relation, "
        "with its place in the chunk, by month of the note."
    ),
}


def build_graph_asset(part: GraphPart, settings: Settings) -> dg.AssetsDefinition:
    """Build the asset of a part of the graph."""
    model = settings.llm_model or "" if settings.graph_extractor == LANGUAGE_MODEL else None

    @dg.asset(
        key=graph_key(part),
        partitions_def=monthly(settings),
        backfill_policy=batches,
        code_version=extractor_version(part, model),
        pool=DATABASE_WRITES,
        deps=[CHUNKS],
        group_name="indexing",
        owners=OWNERS,
        kinds={"python", "postgres"},
        automation_condition=when_months_change(),
        description=_DESCRIPTIONS[part],
    )
    def graph_asset(context: dg.AssetExecutionContext, rag: RagResource) -> MonthEvents:
        graph = rag.graph
        with told_as_failure():
            graph.register(part)

        def month(window: TimeWindow) -> MonthOutcome:
            progress = MonthProgress(context.log, window, lambda: graph.left(part, window))
            report = graph.read(part, window, progress=progress)
            counts = {"read": report.notes, "found": report.found}
            return indexed_month(rag.indexing, window, report, counts, {"notes": report.notes})

        yield from materialize_months(context, month, graph.clean)

    return graph_asset
