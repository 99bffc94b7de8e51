"""The asset `retrieval_log`: load, latency and failures of users' questions over time."""

from collections.abc import Mapping
from typing import Any

import dagster as dg

from rag_assets.keys import OWNERS
from rag_assets.labels import labelled
from rag_assets.runs.failures import told_as_failure
from rag_resources.core.tables import markdown_table
from rag_resources.languages.labels import stage_label
from rag_resources.languages.messages import _
from rag_resources.resources import RagResource
from rag_resources.store.retrieval_log import RetrievalHistory


@dg.asset(
    group_name="serving",
    owners=OWNERS,
    kinds={"python", "postgres"},
    description=_(
        "What the questions of the last days cost, without their text: by day and stage, with the "
        "caches and connections of the processes that answered."
    ),
)
def retrieval_log(rag: RagResource) -> dg.MaterializeResult[None]:
    """Read the log of the questions."""
    with told_as_failure():
        history = rag.serving.retrievals()
    return dg.MaterializeResult(metadata=labelled(history_metadata(history)))


def history_metadata(history: RetrievalHistory) -> dict[str, Any]:
    """Return the latest day as numbers to plot, and everything as tables in Spanish."""
    latest = history.days[0] if history.days else None
    plotted = (
        {
            "questions": latest.questions,
            "cached_share": latest.cached / latest.questions,
            "degraded_share": latest.degraded / latest.questions,
            "failed_share": latest.failed / latest.questions,
            "latency_p50_ms": latest.p50_ms,
            "latency_p95_ms": latest.p95_ms,
        }
        if latest
        else {"questions": 0}
    )
    return {
        **plotted,
        "days": _table(
            _(
                "| day (UTC) | questions | from the cache | with something missing | failed | p50 "
                "ms | p95 ms |"
            ),
            [
                (
                    day.day,
                    day.questions,
                    day.cached,
                    day.degraded,
                    day.failed,
                    f"{day.p50_ms:.1f}",
                    f"{day.p95_ms:.1f}",
                )
                for day in history.days
            ],
        ),
        "stages": _table(
            _("| stage | times | p50 ms | p95 ms |"),
            [
                (stage_label(item.stage), item.count, f"{item.p50_ms:.1f}", f"{item.p95_ms:.1f}")
                for item in history.stages
            ],
        ),
        "caches": _table(
            _("| cache | hits | misses | % of hits |"),
            [
                (name, hits, misses, f"{hits / (hits + misses):.0%}" if hits + misses else "–")
                for name, (hits, misses) in history.caches.items()
            ],
        ),
        "connections": _table(
            _("| connections | in use | waiting | requests | mean wait ms | lost |"),
            [_pool_row(pool) for pool in history.pools],
        ),
    }


def _table(head: str, rows: list[Any]) -> dg.MarkdownMetadataValue:
    return dg.MetadataValue.md(markdown_table(head, rows))


def _pool_row(pool: Mapping[str, Any]) -> tuple[object, ...]:
    counts = (pool["size"], pool["in_use"], pool["waiting"], pool["requests"])
    return (*counts, f"{pool['wait_ms_avg']:.2f}", pool["connections_lost"])
