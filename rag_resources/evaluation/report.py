"""Evaluations side by side, as a table for people."""

from collections.abc import Sequence

import pandas as pd

from rag_resources.core.evaluation import StoredEvaluation
from rag_resources.core.messages import Message


def comparison_table(evaluations: Sequence[StoredEvaluation]) -> pd.DataFrame:
    """Return a row per evaluation, best first, with formatted cells; `@k` is Hit_Rate@k."""
    ordered = sorted(evaluations, key=lambda item: (-item.hit_rate_at_10, -item.mrr))
    return pd.DataFrame(
        [
            {
                Message.COLUMN_CONFIGURATION: item.configuration,
                "@1": f"{item.hit_rate_at_1:.3f}",
                "@3": f"{item.hit_rate_at_3:.3f}",
                "@5": f"{item.hit_rate_at_5:.3f}",
                "@10": f"{item.hit_rate_at_10:.3f}",
                Message.COLUMN_INTERVAL: (
                    f"{item.hit_rate_at_10_low:.3f}–{item.hit_rate_at_10_high:.3f}"
                ),
                "MRR": f"{item.mrr:.3f}",
                "nDCG@10": f"{item.ndcg_at_10:.3f}",
                "p50/p95 ms": f"{item.latency_p50_ms:.0f}/{item.latency_p95_ms:.0f}",
                Message.COLUMN_GATE: GATE_WORDS[item.gate],
            }
            for item in ordered
        ]
    )


def comparison_markdown(evaluations: Sequence[StoredEvaluation]) -> str:
    """Return the table in Markdown."""
    if not evaluations:
        return Message.NO_EVALUATIONS
    table = comparison_table(evaluations)
    lines = [
        "| " + " | ".join(table.columns) + " |",
        "|" + "---|" * len(table.columns),
        *("| " + " | ".join(row) + " |" for row in table.itertuples(index=False)),
    ]
    return "\n".join(lines)


GATE_WORDS = {
    "pass": Message.GATE_PASS,
    "inconclusive": Message.GATE_INCONCLUSIVE,
    "fail": Message.GATE_FAIL,
}
