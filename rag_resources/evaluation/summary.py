"""Evaluations as sentences and as a table; the whole report is `serving.report`."""

from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from rag_resources.core.answer_metrics import (
    CITATION_PRECISION,
    CITATION_RECALL,
    FIRST_CITATION,
    FIRST_QUOTATION,
    AnswerFigures,
)
from rag_resources.core.comparison import HITS, Comparison, Inferiority, NonInferiority, Verdict
from rag_resources.core.evaluation import QueryOutcome, StoredEvaluation, judge_stored
from rag_resources.core.evidence import Evidence, EvidenceState
from rag_resources.core.gate import GateConfig, GateVerdict
from rag_resources.core.tables import ReportTable
from rag_resources.languages.labels import METRIC_WORDS
from rag_resources.languages.messages import Text, _


def missed_rows(outcomes: Iterable[QueryOutcome]) -> list[tuple[str, str]]:
    """Return each missed question, and what came first."""
    return [
        (item.golden.query, item.context[0].label if item.context else "–")
        for item in outcomes
        if not item.is_hit and not item.error
    ]


def comparison_table(
    evaluations: Sequence[StoredEvaluation],
    gate: GateConfig,
    evidence: Mapping[UUID, Evidence],
    *,
    title: str = "",
) -> ReportTable:
    """Return a row per evaluation, best first, with formatted cells; `@k` is Hit_Rate@k.

    `@final` is what users get.

    Args:
        evaluations: The rows.
        gate: The thresholds.
        evidence: Whether each is current, aged or stale, by id.
        title: The table's title.
    """
    ordered = sorted(evaluations, key=lambda item: (-item.hit_rate_at_10, -item.mrr))
    return ReportTable(
        title,
        (
            _("Configuration"),
            *("@1", "@3", "@5", "@10"),
            _("95 % CI"),
            "@final",
            *("MRR", "nDCG@10", "p50/p95 ms"),
            _("Gate"),
        ),
        tuple(
            (
                item.configuration,
                f"{item.hit_rate_at_1:.3f}",
                f"{item.hit_rate_at_3:.3f}",
                f"{item.hit_rate_at_5:.3f}",
                f"{item.hit_rate_at_10:.3f}",
                f"{item.hit_rate_at_10_low:.3f}–{item.hit_rate_at_10_high:.3f}",
                f"{item.served_hit_rate:.3f}",
                f"{item.mrr:.3f}",
                f"{item.ndcg_at_10:.3f}",
                f"{item.latency_p50_ms:.0f}/{item.latency_p95_ms:.0f}",
                verdict_in_words(item, gate, evidence[item.evaluation_id]),
            )
            for item in ordered
        ),
    )


GATE_WORDS = {
    "pass": _("passes"),
    "inconclusive": _("passes, not for certain"),
    "fail": _("fails"),
    "disturbed": _("disturbed"),
}


EVIDENCE_WORDS = {
    EvidenceState.CURRENT: _("current"),
    EvidenceState.AGED: _("aged"),
    EvidenceState.STALE: _("stale"),
}


VERDICT_WORDS = {
    Verdict.BETTER: _("better"),
    Verdict.WORSE: _("worse"),
    Verdict.NO_EVIDENCE: _("no evidence"),
}

ANSWER_METRIC_WORDS = {
    CITATION_PRECISION: _("Citation precision"),
    CITATION_RECALL: _("Citation recall"),
    FIRST_CITATION: _("First citation right"),
    FIRST_QUOTATION: _("First quotation right"),
}

_GROUP_WORDS = {
    "category": _("category {name}"),
    "difficulty": _("difficulty {name}"),
}

_INFERIORITY_WORDS = {
    Inferiority.NON_INFERIOR: _("is not worse"),
    Inferiority.UNDECIDED: _("may be worse; more questions would tell"),
    Inferiority.INFERIOR: _("is worse"),
}


def group_in_words(group: str) -> Text:
    """Name a group of questions, such as `category:causal`."""
    kind, _, name = group.partition(":")
    return _GROUP_WORDS[kind].format(name=name)


def citations_in_words(figures: AnswerFigures | None, gate: GateConfig) -> Text:
    """Say how many of the citations are right, and how many should be."""
    found = figures.citation_precision if figures else None
    if found is None:
        return _("no answers were measured").format()
    return _(
        "citation precision {precision:.3f} (95 % CI: {low:.3f}–{high:.3f}); threshold "
        "{threshold:g}"
    ).format(
        precision=found.mean, low=found.low, high=found.high, threshold=gate.citation_precision
    )


def silence_in_words(figures: AnswerFigures | None, gate: GateConfig) -> Text:
    """Say how often an answer is false or missing, and how often it may be."""
    false, missed = (figures.false_answers, figures.misses) if figures else (None, None)
    if false is None or missed is None:
        return _("there are too few questions to measure silence").format()
    return _(
        "without their notes {false_answers:.0f} % of the questions are answered (95 % CI: "
        "{low:.0f}–{high:.0f}; limit {limit:.0f} %), while {misses:.0f} % of those with an answer "
        "are not"
    ).format(
        false_answers=100 * false.mean,
        low=100 * false.low,
        high=100 * false.high,
        limit=100 * gate.false_answers,
        misses=100 * missed.mean,
    )


def verdict_in_words(evaluation: StoredEvaluation, gate: GateConfig, evidence: Evidence) -> str:
    """Say in a few words whether an evaluation passes; stale figures pass nothing."""
    aged = EVIDENCE_WORDS[evidence.state]
    if evidence.is_stale:
        return aged
    verdict = GATE_WORDS[judge_stored(evaluation, gate).state]
    return verdict if evidence.is_current else f"{verdict} ({aged})"


def evidence_in_words(evidence: Evidence) -> str:
    """Say whether an evaluation is current, aged or stale, and why."""
    word = EVIDENCE_WORDS[evidence.state]
    return word if evidence.is_current else f"{word}: {evidence.explanation}"


def gate_in_words(verdict: GateVerdict, queries: int) -> str:
    """Explain the gate's verdict: by which numbers, and how many questions would settle it."""
    return _(
        "{state}: Hit_Rate@10 = {hit_rate:.3f} (95 % interval: {low:.3f}–{high:.3f}; questions: "
        "{queries}; threshold: {threshold:g}; more questions to confirm it: {more})"
    ).format(
        state=GATE_WORDS[verdict.state],
        hit_rate=verdict.hit_rate,
        low=verdict.interval.low,
        high=verdict.interval.high,
        queries=queries,
        threshold=verdict.threshold,
        more="–" if verdict.queries_to_settle is None else verdict.queries_to_settle,
    )


def p_value_in_words(p_value: float) -> str:
    """Format a p-value; a tiny one is never shown as zero."""
    return f"{p_value:.4f}" if p_value >= 0.0001 else "< 0.0001"


def inferiority_in_words(judged: NonInferiority, metric: str = HITS) -> str:
    """Say in a sentence whether a hit rate fell by more than the margin allows."""
    return _(
        "{metric} {state} (margin: {points:g} points; 90 % CI of the difference: {low:+.3f} to "
        "{high:+.3f})."
    ).format(
        metric=METRIC_WORDS[metric],
        state=_INFERIORITY_WORDS[judged.state],
        points=100 * judged.margin,
        low=judged.interval.low,
        high=judged.interval.high,
    )


def value_in_words(value: object) -> str:
    """Format a configuration value as its file writes it; an unset value is a dash."""
    if isinstance(value, bool):
        return str(value).lower()
    return "–" if value is None else str(value)


def comparison_sentence(comparison: Comparison, metric: str) -> str:
    """Say in one line how a metric changed and whether the change is significant."""
    item = next(
        (each for each in comparison.metrics if each.metric == metric), comparison.metrics[0]
    )
    return _(
        "{metric} {before:.3f} → {after:.3f} ({low:+.3f} … {high:+.3f}, p {p_value}): {verdict}"
    ).format(
        metric=METRIC_WORDS[item.metric],
        before=item.before,
        after=item.after,
        low=item.interval.low,
        high=item.interval.high,
        p_value=p_value_in_words(item.adjusted_p_value),
        verdict=VERDICT_WORDS[item.verdict],
    )
