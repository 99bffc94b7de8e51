"""Checks of the causal graph."""

from dataclasses import asdict

import dagster as dg

from rag_assets.keys import graph_key
from rag_assets.labels import labelled
from rag_assets.runs.partitions import run_window
from rag_resources.core.graph_version import GraphPart
from rag_resources.languages.messages import _
from rag_resources.resources import RagResource

_COMPLETE = {
    GraphPart.MENTIONS: _(
        "All chunked notes were read for mentions, and no mention leaves its chunk."
    ),
    GraphPart.STATEMENTS: _("All chunked notes were read for causes, and none leaves its chunk."),
}


def build_completeness_check(part: GraphPart) -> dg.AssetChecksDefinition:
    """Build the check that a part has read every chunked note, and stays inside the chunks."""

    @dg.asset_check(
        asset=graph_key(part),
        name=f"{part.value}_complete",
        blocking=True,
        description=_COMPLETE[part],
    )
    def complete(context: dg.AssetCheckExecutionContext, rag: RagResource) -> dg.AssetCheckResult:
        gaps = rag.graph.gaps(part, run_window(context.run.tags, rag.settings))
        return dg.AssetCheckResult(
            passed=gaps.total == 0,
            metadata=labelled(asdict(gaps)),
            description=_(
                "{waiting} of {notes} notes not read; {out_of_bounds} of {found} findings outside "
                "their chunk."
            ).format(**asdict(gaps)),
        )

    return complete
