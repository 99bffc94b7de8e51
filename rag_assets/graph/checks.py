"""Checks of the causal graph."""

from dataclasses import asdict
from statistics import median

import dagster as dg

from rag_assets.keys import graph_key
from rag_assets.labels import labelled
from rag_assets.runs.partitions import run_window
from rag_resources.core.graph_version import GraphPart
from rag_resources.core.messages import Message
from rag_resources.core.texts import joined
from rag_resources.resources import RagResource

_COMPLETE = {
    GraphPart.MENTIONS: Message.CHECK_MENTIONS_COMPLETE,
    GraphPart.STATEMENTS: Message.CHECK_STATEMENTS_COMPLETE,
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
            description=Message.GRAPH_GAPS.format(**asdict(gaps)),
        )

    return complete


LEAST_PRECISION = 0.7
MOST_LONELY = 0.9
ODD_FACTOR = 3.0


@dg.asset_check(
    asset=graph_key(GraphPart.STATEMENTS), description=Message.CHECK_STATEMENT_PRECISION
)
def statement_precision(rag: RagResource) -> dg.AssetCheckResult:
    """Tell how many of the statements that a person judged were right."""
    found = rag.graph.precision()
    if found.interval is None:
        return dg.AssetCheckResult(passed=True, description=Message.GRAPH_UNJUDGED)
    low, high = found.interval.low, found.interval.high
    return dg.AssetCheckResult(
        passed=found.good >= LEAST_PRECISION * found.judged,
        severity=dg.AssetCheckSeverity.WARN,
        metadata=labelled({"judged": found.judged, "right": found.good, "low": low, "high": high}),
        description=Message.GRAPH_PRECISION.format(
            good=found.good, judged=found.judged, low=low, high=high
        ),
    )


@dg.asset_check(asset=graph_key(GraphPart.MENTIONS), description=Message.CHECK_GRAPH_SHAPE)
def graph_shape(rag: RagResource) -> dg.AssetCheckResult:
    """Tell the share of names that lead nowhere, the widest ones, and the growth by month."""
    found, months = rag.graph.shape(), rag.graph.growth()
    rates = {item.month: item.mentions / item.notes for item in months}
    usual = median(rates.values()) if rates else 0.0
    odd = [
        f"{month:%Y-%m}"
        for month, rate in rates.items()
        if usual and not usual / ODD_FACTOR <= rate <= usual * ODD_FACTOR
    ]
    problems = []
    if odd:
        problems.append(Message.GRAPH_ODD_MONTHS.format(months=", ".join(odd)))
    if found.orphan_share > MOST_LONELY:
        problems.append(Message.GRAPH_LONELY.format(share=found.orphan_share))
    told = Message.GRAPH_STATUS.format(**asdict(found), orphan_share=found.orphan_share)
    return dg.AssetCheckResult(
        passed=not problems,
        severity=dg.AssetCheckSeverity.WARN,
        metadata=labelled(
            {
                **asdict(found),
                "orphan_share": found.orphan_share,
                "latest_mentions": months[-1].mentions if months else 0,
                "latest_statements": months[-1].statements if months else 0,
            }
        ),
        description=joined(" ", [*problems, told]),
    )
