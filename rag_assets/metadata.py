"""What Dagster shows: names in the reader's language, numbers with few decimals, tables.

All metadata of assets, checks and jobs pass through `labelled`; the names are in
`rag_resources.languages.labels`. Numbers stay numbers, so that the UI plots them over time.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import dagster as dg

from rag_resources.application.documents import ArrivalReport, ExtractReport
from rag_resources.application.evaluations import Evaluations
from rag_resources.core.answer_log import AnswerFigures as LoggedAnswers
from rag_resources.core.answer_log import Outcome
from rag_resources.core.answer_metrics import AnswerFigures
from rag_resources.core.comparison import Comparison
from rag_resources.core.evaluation import Percentiles, QueryOutcome, StoredEvaluation
from rag_resources.core.evidence import Evidence
from rag_resources.core.frames import evaluation_frame
from rag_resources.core.golden_changes import Operation, count_changes
from rag_resources.core.metrics import SERVED
from rag_resources.core.migration_status import Quality
from rag_resources.core.tables import markdown_table
from rag_resources.core.types import RejectedRecord
from rag_resources.evaluation.comparison import EvaluationComparison
from rag_resources.evaluation.comparison_tables import (
    COMPARED_WORDS,
    attribution_in_words,
    changes_table,
    flips_table,
)
from rag_resources.evaluation.summary import (
    GATE_WORDS,
    VERDICT_WORDS,
    evidence_in_words,
    group_in_words,
    missed_rows,
    verdict_in_words,
)
from rag_resources.languages.labels import label, stage_label
from rag_resources.languages.messages import _
from rag_resources.serving.report import EvaluationReport
from rag_resources.store.document_list import MonthDocument, status_word
from rag_resources.store.golden import GoldenImport
from rag_resources.store.migration_status import MigrationStatus
from rag_resources.store.promotions import Promotion

_COARSE = re.compile(r"(^|_)(ms|seconds?|minutes?|hours|percent|per_minute)(_|$)")
"""Words in the names of times, speeds and percentages; other fractions are metrics or shares."""


def labelled(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return metadata under the names in its reader's language, in the same order.

    Times, speeds and percentages keep two decimals, metrics and shares four. An empty list is a
    dash.
    """
    return {label(field): rounded(field, _or_dash(value)) for field, value in fields.items()}


def stage_times(stages: Mapping[str, float]) -> dict[str, float]:
    """Return how long each stage took, in milliseconds with two decimals, under its name."""
    return {label(f"stage_{stage_label(stage)}"): round(ms, 2) for stage, ms in stages.items()}


def _or_dash(value: Any) -> Any:
    is_empty = isinstance(value, dg.MarkdownMetadataValue) and not value.md_str
    return "–" if is_empty else value


def rounded(field: str, value: Any) -> Any:
    """Return the value of a field; times keep two decimals, metrics and shares four."""
    if not isinstance(value, float):
        return value
    return round(value, 2 if _COARSE.search(field) else 4)


LISTED = 50


def arrival_metadata(report: ArrivalReport) -> dict[str, dg.MetadataValue | int]:
    """Return how many files arrived, and the first of those that were not taken."""
    return {
        **{arrival.value: count for arrival, count in report.counts.items()},
        "rejected": len(report.rejected),
        "rejected_files": _listed(report.rejected),
        "left_out": len(report.left_out),
        "left_out_files": _listed(report.left_out),
        "missing": len(report.missing),
        "missing_files": dg.MetadataValue.md(
            "\n".join(f"- `{address}`" for address in report.missing[:LISTED])
        ),
    }


def _listed(records: list[RejectedRecord]) -> dg.MetadataValue:
    return dg.MetadataValue.md(
        "\n".join(f"- `{each.location}`: {each.reason}" for each in records[:LISTED])
    )


def problems_table(report: ExtractReport) -> str:
    """Return a table of the documents that were not read to their end, or wait for a person."""
    rows = [
        *report.failures,
        *(
            (
                title,
                _(
                    "the new reading loses {words:.1%} of the words and {passages:.1%} of the "
                    "passages"
                ).format(words=diff.lost_words, passages=diff.lost_citations),
            )
            for title, diff in report.held
        ),
    ]
    return markdown_table(_("| Document | Problem |"), rows[:LISTED]) if rows else ""


def documents_table(documents: Sequence[MonthDocument]) -> str:
    """Return a table of the progress of each document."""
    rows = [(each.address, status_word(each.status), each.pages, each.reason) for each in documents]
    return markdown_table(_("| Document | Status | Pages | Reason |"), rows)


def golden_changes(imported: GoldenImport) -> dict[str, Any]:
    """Return the changes of an import; deleted and untouched questions by name."""
    counts = count_changes(imported.changes)
    deleted = [
        change.before.query for change in imported.changes if change.before and not change.after
    ]
    named = {
        "deleted_questions": (
            deleted,
            _("What was there is kept in the table golden_history."),
        ),
        "kept_questions": (
            [entry.query for entry in imported.kept],
            _(
                "Questions that a person wrote or changed and the file states differently: "
                "{count}. They stay as they are; with “rag golden import FILE --replace” the file "
                "rules."
            ),
        ),
        "left_out_questions": (
            imported.deleted,
            _(
                "Questions of the file that a person deleted: {count}. They come back only with "
                "“rag golden import FILE --replace”."
            ),
        ),
        "orphaned_questions": (
            imported.orphaned,
            _(
                "Questions of the file that name deleted notes: {count}. They are not imported; "
                "those that were there stay as they were. Restore the note with “rag notes "
                "restore NOTE”, or change the question."
            ),
        ),
        "draft_questions": (
            imported.drafts,
            _(
                "Draft questions, without an answer yet: {count}. They do not count until "
                "somebody writes it in “expectedAnswer”."
            ),
        ),
    }
    return {
        "inserted": counts[Operation.INSERT],
        "updated": counts[Operation.UPDATE],
        "deleted": len(deleted),
        "kept": len(imported.kept),
        "left_out": len(imported.deleted),
        "orphaned": len(imported.orphaned),
        "drafts": len(imported.drafts),
        "unknown_keys": "\n".join(imported.unknown) or "–",
        **{
            name: dg.MetadataValue.md(
                "\n".join(
                    [*(f"- {query}" for query in found), "", message.format(count=len(found))]
                )
            )
            for name, (found, message) in named.items()
            if found
        },
    }


def report_numbers(report: EvaluationReport) -> dict[str, Any]:
    """Return the numbers that Dagster plots: those of what serves, the best, how many pass.

    Stale or disturbed figures are left out, because a plot cannot mark them as such.
    """
    told = [
        item
        for item in report.configurations
        if not item.gates.staleness and not item.gates.disturbance
    ]
    if not told:
        return {}
    numbers = {
        "best_hit_rate_at_10": told[0].evaluation.hit_rate_at_10,
        "best_mrr": max(item.evaluation.mrr for item in told),
        "passing": sum(item.gates.hit_rate.allows_promotion for item in told),
        "missed_questions": len(report.missed),
    }
    for item in told:
        if item.serves:
            numbers["serving_hit_rate_at_10"] = item.evaluation.hit_rate_at_10
            numbers["serving_mrr"] = item.evaluation.mrr
    return numbers


_SHOWN_QUESTIONS = 20


_SHOWN_FLIPS = 50


_PLOTTED = (
    "hit_rate_at_1",
    "hit_rate_at_3",
    "hit_rate_at_5",
    "hit_rate_at_10",
    "mrr",
    "ndcg_at_10",
    "precision_at_10",
    "recall_at_10",
)


def comparison_metadata(evaluations: Evaluations, found: EvaluationComparison) -> dict[str, Any]:
    """Return a comparison: numbers, changes, flips, and what lost the lost questions."""
    changes, flips = changes_table(found), flips_table(found, shown=_SHOWN_FLIPS)
    answers = {"comparison_of_answers": _metrics_table(found.answers)} if found.answers else {}
    return {
        "comparison": _metrics_table(found.comparison),
        **answers,
        "changes": dg.MetadataValue.md(
            changes.markdown()
            if changes.rows
            else _("Configuration, model, questions and index are the same.")
        ),
        "causes": attribution_in_words(evaluations.attribute(found)),
        "flips": dg.MetadataValue.md(
            flips.markdown()
            if flips.rows
            else _("No question is lost or gained among the first ten.")
        ),
        "lost": sum(flip.is_lost for flip in found.flips),
        "gained": sum(not flip.is_lost for flip in found.flips),
    }


def _metrics_table(comparison: Comparison) -> dg.TableMetadataValue:
    rows = [
        {
            "metric": str(COMPARED_WORDS[item.metric]),
            **{name: getattr(item, name) for name in ("before", "after", "difference")},
            **{f"interval_{end}": own for end, own in item.interval._asdict().items()},
            "p_value": item.adjusted_p_value,
            "verdict": str(VERDICT_WORDS[item.verdict]),
        }
        for item in comparison.metrics
    ]
    return table(rows, [*rows[0]])


def stored_metadata(evaluation: StoredEvaluation) -> dict[str, Any]:
    """Return `evaluation_metadata` of an evaluation that is stored, with its id."""
    return {
        "evaluation_id": str(evaluation.evaluation_id),
        "config_hash": evaluation.config_hash,
        **evaluation_metadata(evaluation),
    }


def evaluation_metadata(evaluation: StoredEvaluation) -> dict[str, Any]:
    """Return the metrics of an evaluation and its breakdown; what was not measured is left out.

    The numbers of a disturbed evaluation are text: a plot could not mark them as such.
    """
    measured = {
        **{name: getattr(evaluation, name) for name in _PLOTTED},
        SERVED: evaluation.served_hit_rate,
        "hit_rate_at_10_low": evaluation.hit_rate_at_10_low,
        "hit_rate_at_10_high": evaluation.hit_rate_at_10_high,
        "gate": GATE_WORDS[evaluation.gate],
        "latency_p50_ms": evaluation.latency_p50_ms,
        "latency_p95_ms": evaluation.latency_p95_ms,
        "latency_p99_ms": evaluation.latency_p99_ms,
        "total_queries": evaluation.total_queries,
        "failed_queries": evaluation.failed_queries,
        "degraded_queries": evaluation.degraded_queries,
        "latency_queries": evaluation.latency_queries,
        "late_queries": evaluation.late_queries,
        **_judge_metadata(evaluation),
        **_answer_metadata(evaluation.answers),
        "breakdown": _breakdown(evaluation.breakdown),
    }
    told = {name: value for name, value in measured.items() if value is not None}
    return unplotted(told) if evaluation.is_disturbed else told


def unplotted(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return metadata with its numbers as text, which Dagster shows but does not plot."""
    return {
        name: str(rounded(name, value)) if isinstance(value, int | float) else value
        for name, value in metadata.items()
    }


def _judge_metadata(evaluation: StoredEvaluation) -> dict[str, Any]:
    """Return the judgements of the answers; empty if nothing was judged."""
    if evaluation.judge is None:
        return {}
    return {
        "faithfulness": evaluation.faithfulness,
        "answer_relevance": evaluation.answer_relevance,
        "judged_queries": evaluation.judged_queries,
        "judge_failures": evaluation.judge_failures,
        "judge": f"{evaluation.judge}: {evaluation.judge_model}, {evaluation.judge_version}",
        "answerer": evaluation.answerer,
    }


def _answer_metadata(figures: AnswerFigures | None) -> dict[str, Any]:
    """Return what was measured of the answers; what was not is left out, not 0."""
    if figures is None:
        return {}
    shares = {"misses": figures.misses, "false_answers": figures.false_answers}
    return {
        "answered_queries": figures.answered,
        **{name: estimate.mean for name, estimate in figures.metrics.items()},
        **{name: share.mean for name, share in shares.items() if share},
        **({"citation_brier": figures.citation.brier} if figures.citation else {}),
    }


def question_metadata(outcomes: Sequence[QueryOutcome]) -> dict[str, Any]:
    """Return the first questions that were missed as a table."""
    rows = missed_rows(outcomes)
    if not rows:
        return {}
    columns = (_("Question"), _("came first"))
    parts = [
        _("Without a relevant note among the first ten: {count}.").format(count=len(rows)),
        markdown_table(columns, rows[:_SHOWN_QUESTIONS]),
    ]
    if len(rows) > _SHOWN_QUESTIONS:
        parts.append(
            _("{shown} are shown; all with “rag evaluate NAME --no-store --json”.").format(
                shown=_SHOWN_QUESTIONS
            )
        )
    return {"missed": dg.MetadataValue.md("\n\n".join(parts))}


def stage_metadata(stages: Mapping[str, Percentiles]) -> dict[str, Any]:
    """Return the latencies by stage as a table."""
    rows = [
        {"stage": stage_label(name)}
        | {f"latency_{share}": value for share, value in asdict(own).items()}
        for name, own in stages.items()
    ]
    return {"stages": table(rows, [*rows[0]] if rows else ())}


def _breakdown(breakdown: Mapping[str, Mapping[str, float]]) -> dg.TableMetadataValue:
    rows = [
        {"group": str(group_in_words(group)), **values, "total_queries": int(values["queries"])}
        for group, values in sorted(breakdown.items())
    ]
    return table(rows, ("group", "total_queries", "hit_rate_at_1", "hit_rate_at_5", *_PLOTTED[3:5]))


def compared_table(report: EvaluationReport) -> dg.TableMetadataValue:
    """Return a row per configuration, best first; stale figures pass no gate."""
    frame = evaluation_frame(item.evaluation for item in report.configurations)
    frame["gate"] = [
        verdict_in_words(item.evaluation, report.gate, item.gates.evidence)
        for item in report.configurations
    ]
    columns = ("configuration", *_PLOTTED[:6], SERVED, "latency_p50_ms", "latency_p95_ms", "gate")
    return table(frame.to_dict("records"), columns)


_KINDS = {float: "float", int: "int", bool: "bool"}


def table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> dg.TableMetadataValue:
    """Return rows as a table whose numbers stay numbers, with the reader's names of its columns."""
    first = rows[0] if rows else {}
    return dg.MetadataValue.table(
        [
            dg.TableRecord({label(name): rounded(name, row[name]) for name in columns})
            for row in rows
        ],
        dg.TableSchema(
            [
                dg.TableColumn(label(name), _KINDS.get(type(first.get(name)), "string"))
                for name in columns
            ]
        ),
    )


def serving_metadata(
    serving: StoredEvaluation | Promotion, evaluation: StoredEvaluation | None
) -> dict[str, Any]:
    """Return what serves, and figures of it.

    Args:
        serving: Names the configuration.
        evaluation: Of it; None after a rollback to what was never evaluated.
    """
    named = {
        "configuration": serving.configuration,
        "model": serving.model,
        "config_hash": serving.config_hash,
    }
    if evaluation is None:
        return named
    figures = {
        "evaluation_id": str(evaluation.evaluation_id),
        "hit_rate_at_10": evaluation.hit_rate_at_10,
        "served_hit_rate": evaluation.served_hit_rate,
        "mrr": evaluation.mrr,
        "latency_p95_ms": evaluation.latency_p95_ms,
    }
    return named | {name: value for name, value in figures.items() if value is not None}


def promotion_metadata(
    promotion: Promotion, evaluation: StoredEvaluation | None, evidence: Evidence | None = None
) -> dict[str, Any]:
    """Return what a promotion, or a rollback with its reason, made serve, with figures of it.

    Args:
        promotion: Names the configuration.
        evaluation: Of it; None if it was never evaluated.
        evidence: Whether the figures are current; None says nothing of that.
    """
    evaluated = (
        {"evaluated_at": dg.MetadataValue.timestamp(evaluation.created_at)} if evaluation else {}
    )
    return labelled(
        {
            **serving_metadata(promotion, evaluation),
            **evaluated,
            **({"evidence": evidence_in_words(evidence)} if evidence else {}),
            "promoted_at": dg.MetadataValue.timestamp(promotion.promoted_at),
            **({"rollback_reason": promotion.reason} if promotion.reason else {}),
        }
    )


def month_metadata(figures: LoggedAnswers) -> dict[str, Any]:
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


def numbers(status: MigrationStatus) -> dict[str, Any]:
    """Return the numbers that Dagster plots; unknown ones are left out and give no point."""
    total = status.total
    found: dict[str, float | None] = {
        "percent_migrated": total.percent_migrated,
        "notes": total.notes,
        "migrated": total.migrated,
        "remaining": total.remaining,
        "failed_notes": total.failed,
        **{f"pending_{model.name}": model.pending_notes for model in status.models},
        **{f"percent_{model.name}": model.percent for model in status.models},
        **_quality(status.quality),
        **{
            f"vectors_per_minute_{model}": rate for model, rate in status.vectors_per_minute.items()
        },
        "minutes_left": status.minutes_left,
        "closed_gates": len(status.closed),
    }
    return {name: value for name, value in found.items() if value is not None}


def _quality(quality: Quality | None) -> dict[str, float | None]:
    if quality is None or quality.is_stale:
        return {}
    return {
        "hit_rate_at_10": quality.hit_rate_at_10,
        "mrr": quality.mrr,
        "latency_p95_ms": quality.latency_p95_ms,
    }
