"""The answers of each month: misses beside false answers, and readers' verdicts."""

from typing import Any

import dagster as dg

from rag_assets.keys import OWNERS
from rag_assets.runs.months import MonthEvents, MonthOutcome, materialize_months
from rag_assets.runs.partitions import batches, monthly
from rag_resources.core.answer_log import AnswerFigures, Outcome
from rag_resources.core.tables import markdown_table
from rag_resources.core.types import TimeWindow
from rag_resources.languages.messages import _
from rag_resources.resources import RagResource
from rag_resources.settings import Settings


def build_answer_log_asset(settings: Settings) -> dg.AssetsDefinition:
    """Build the asset `answer_log`."""

    @dg.asset(
        partitions_def=monthly(settings),
        backfill_policy=batches,
        group_name="serving",
        owners=OWNERS,
        kinds={"python", "postgres"},
        description=_(
            "The answers of the month, as they were given: how many questions stayed without one, "
            "how many false answers are to be expected and what readers thought."
        ),
    )
    def answer_log(context: dg.AssetExecutionContext, rag: RagResource) -> MonthEvents:
        """Read the log of the answers; those too old to keep are deleted first."""
        rag.answer_log.delete_old()

        def month(window: TimeWindow) -> MonthOutcome:
            return MonthOutcome(month_metadata(rag.answer_log.figures(window)))

        yield from materialize_months(context, month)

    return answer_log


def month_metadata(figures: AnswerFigures) -> dict[str, Any]:
    """Return a month's figures to plot, and its tables in Spanish; unknown figures are left out."""
    counts = figures.counts
    known = {
        "miss_rate": figures.miss_rate,
        "miss_rate_low": figures.miss_interval and figures.miss_interval.low,
        "miss_rate_high": figures.miss_interval and figures.miss_interval.high,
        "false_answers_expected": figures.false_answers,
        "latency_p50_ms": figures.p50_ms,
        "latency_p95_ms": figures.p95_ms,
    }
    return {
        "questions": figures.questions,
        **{name: value for name, value in known.items() if value is not None},
        "calibrated_questions": figures.calibrated,
        "thumbs_up": figures.up,
        "thumbs_down": figures.down,
        "citations_up": figures.citations_up,
        "citations_down": figures.citations_down,
        "outcomes": dg.MetadataValue.md(
            markdown_table(
                _("| answered | missed | withheld | failed |"),
                [tuple(counts[outcome] for outcome in Outcome)],
            )
        ),
    }
