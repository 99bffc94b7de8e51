"""Checks of the causal graph."""

from dataclasses import asdict

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


@dg.asset_check(
    asset=graph_key(GraphPart.STATEMENTS), description=Message.CHECK_STATEMENT_PRECISION
)
def statement_precision(rag: RagResource) -> dg.AssetCheckResult:
    """Report how many of the statements that a person judged were right."""
    found = rag.graph.precision()
    if found.interval is None:
        return dg.AssetCheckResult(passed=True, description=found.in_words)
    return dg.AssetCheckResult(
        passed=found.good >= LEAST_PRECISION * found.judged,
        severity=dg.AssetCheckSeverity.WARN,
        metadata=labelled(
            {
                "judged": found.judged,
                "right": found.good,
                "low": found.interval.low,
                "high": found.interval.high,
            }
        ),
        description=found.in_words,
    )


@dg.asset_check(asset=graph_key(GraphPart.MENTIONS), description=Message.CHECK_GRAPH_SHAPE)
def graph_shape(rag: RagResource) -> dg.AssetCheckResult:
    """Report the share of names in only one note, the most frequent names, and growth by month."""
    overview = rag.graph.overview()
    found, months, problems = overview.shape, overview.months, overview.problems
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
        description=joined(" ", [*problems, overview.in_words]),
    )
