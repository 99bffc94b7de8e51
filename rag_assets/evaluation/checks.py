"""Checks of the golden dataset, and the gates of every evaluation."""

from collections.abc import Callable
from typing import NamedTuple

import dagster as dg

from rag_assets.evaluation.metadata import comparison_metadata
from rag_assets.keys import GOLDEN_DATASET, evaluation_key
from rag_assets.labels import labelled
from rag_resources.application.evaluations import Evaluations
from rag_resources.core.answer_metrics import Estimate
from rag_resources.core.comparison import HITS
from rag_resources.core.configuration import NamedConfiguration, Role
from rag_resources.core.evaluation import StoredEvaluation
from rag_resources.core.gate import GateConfig, GateState
from rag_resources.core.metrics import SERVED
from rag_resources.evaluation.gates import Gates
from rag_resources.evaluation.summary import (
    GATE_WORDS,
    evidence_in_words,
    inferiority_in_words,
    p_value_in_words,
)
from rag_resources.languages.messages import _, ngettext
from rag_resources.resources import RagResource

EXAMPLES = 10
WARN, ERROR = dg.AssetCheckSeverity.WARN, dg.AssetCheckSeverity.ERROR

Judged = Callable[[Gates], dg.AssetCheckResult]


@dg.asset_check(
    asset=GOLDEN_DATASET,
    blocking=True,
    description=_("Each question is valid and not repeated, and its relevant notes exist."),
)
def golden_valid(rag: RagResource) -> dg.AssetCheckResult:
    """Check that there are questions and that their notes exist; the table ensures the rest."""
    count, broken = len(rag.golden.entries()), rag.golden.broken()
    if not count:
        # Only a warning: notes can be indexed and searched without questions.
        return dg.AssetCheckResult(
            passed=False,
            severity=WARN,
            description=_(
                "The set of questions is empty, so there is nothing to evaluate. Import one with "
                "“rag golden import FILE”."
            ),
        )
    examples = "\n".join(entry.finding for entry in broken[:EXAMPLES])
    return dg.AssetCheckResult(
        passed=not broken,
        metadata=labelled({"questions": count, "broken": len(broken)}),
        description=_(
            "Questions with notes that are gone: {count}. Nothing is evaluated or promoted until "
            "they are mended.\n{examples}"
        ).format(count=len(broken), examples=examples)
        if broken
        else ngettext("{count} valid question.", "{count} valid questions.", count).format(
            count=count
        ),
    )


@dg.asset_check(
    asset=GOLDEN_DATASET,
    description=_(
        "The questions still measure what they should: their notes are there and were not edited "
        "and the mix of categories is that of the evaluation of what serves."
    ),
)
def golden_drift(rag: RagResource) -> dg.AssetCheckResult:
    """Name the questions that need review; this check blocks nothing."""
    drift = rag.golden.drift()
    findings = drift.findings
    return dg.AssetCheckResult(
        passed=not findings,
        severity=WARN,
        metadata=labelled(
            {
                "notes_gone": len(drift.gone),
                "notes_edited": len(drift.edited),
                "category_mix_distance": drift.mix.distance if drift.mix else 0.0,
                "findings": dg.MetadataValue.md(
                    "\n".join(f"- {line}" for line in findings[:EXAMPLES]) or "–"
                ),
            }
        ),
        description=drift.summary,
    )


class Gate(NamedTuple):
    """A gate of `evaluation_results/<configuration>`, which tells its verdict.

    None blocks: that would fail the whole run, and stop other candidates as well. The promotion
    reads the same verdicts and stops the candidate concerned.

    Attributes:
        configuration: The name of what it judges.
        name: The name of the check.
        judged: Makes the check's result of the verdicts.
        description: In Spanish.
        stops: Whether a failure keeps the configuration from serving; otherwise it only warns.
    """

    configuration: str
    name: str
    judged: Judged
    description: str
    stops: bool = False

    @property
    def severity(self) -> dg.AssetCheckSeverity:
        """How serious a failure is."""
        return ERROR if self.stops else WARN

    def result(self, gates: Gates) -> dg.AssetCheckResult:
        """Return the verdict on an evaluation, with how serious it is."""
        result = self.judged(gates)
        return result if self.stops else result._replace(severity=self.severity)

    def told(self, gates: Gates) -> dg.AssetCheckEvaluation:
        """Return what the check says of an evaluation, for Dagster's log."""
        result = self.result(gates)
        return dg.AssetCheckEvaluation(
            asset_key=evaluation_key(self.configuration),
            check_name=self.name,
            passed=result.passed,
            metadata=result.metadata,
            severity=result.severity,
            description=result.description,
            blocking=False,
        )


def gates_of(configuration: NamedConfiguration, gate: GateConfig) -> list[Gate]:
    """Return the gates of a configuration; those of a reference only warn."""
    name = configuration.name
    is_candidate = configuration.role is Role.CANDIDATE

    def stopping(check: str, judged: Judged, description: str, blocks: bool) -> Gate:
        return Gate(name, check, judged, description, stops=is_candidate and blocks)

    found = [
        stopping(
            "hit_rate_gate",
            hit_rate_result,
            _(
                "Hit_Rate@10 reaches GATE__HIT_RATE_AT_10 (by default 0.85) on the questions of "
                "the set; with the 95 % Wilson interval."
            ),
            gate.hit_rate_blocks,
        ),
        Gate(
            name,
            "hit_rate_settled",
            settled_result,
            _(
                "If it passes, it passes for certain: the whole 95 % Wilson interval is above the "
                "threshold."
            ),
        ),
        stopping(
            "latency_gate",
            latency_result,
            _("p95 of a retrieval under GATE__LATENCY_P95_MS (by default 2000 ms)."),
            gate.latency_blocks,
        ),
        stopping(
            "citation_gate",
            citations_result,
            _(
                "Precision of the answers' citations, at least GATE__CITATION_PRECISION (by "
                "default 0.5)."
            ),
            gate.citation_precision_blocks,
        ),
        stopping(
            "silence_gate",
            silence_result,
            _(
                "Questions answered without their notes, at most GATE__FALSE_ANSWERS (by default "
                "0.5)."
            ),
            gate.false_answers_blocks,
        ),
        stopping(
            "no_regression",
            regression_result,
            _(
                "Nothing proves, question by question, that Hit_Rate@10 or Hit_Rate@final (what a "
                "user gets) are worse than those of what serves; a loss is tolerated that "
                "certainly is not above GATE__MARGIN (by default 2 points)."
            ),
            gate.regression_blocks,
        ),
    ]
    if configuration.retrieval.searches_graph:
        found.append(
            stopping(
                "graph_gate",
                graph_result,
                _(
                    "The graph does not harm questions about a single note and gains on those "
                    "about several, compared with the same configuration without it."
                ),
                gate.graph_blocks,
            )
        )
    return found


def told_without_checks(
    configuration: NamedConfiguration, gate: GateConfig, gates: Gates
) -> list[dg.AssetCheckEvaluation]:
    """Return what the checks say, for Dagster's log, of an evaluation that was not their run's.

    It was made without a run, or by one that works off requests.
    """
    return [own.told(gates) for own in gates_of(configuration, gate)]


def build_gates(
    configuration: NamedConfiguration, gate: GateConfig
) -> list[dg.AssetChecksDefinition]:
    """Build the checks of `evaluation_results/<configuration>`."""
    return [_build_check(item) for item in gates_of(configuration, gate)]


def _build_check(gate: Gate) -> dg.AssetChecksDefinition:
    @dg.asset_check(
        asset=evaluation_key(gate.configuration),
        name=gate.name,
        description=gate.description,
    )
    def check(rag: RagResource) -> dg.AssetCheckResult:
        evaluation = rag.evaluations.latest(gate.configuration)
        if evaluation is None:
            return dg.AssetCheckResult(
                passed=False, severity=gate.severity, description=_("There are no evaluations yet.")
            )
        result = gate.result(rag.evaluations.gates(evaluation))
        if gate.judged is regression_result:
            result = _attributed(result, rag.evaluations, evaluation)
        return result

    return check


def hit_rate_result(gates: Gates) -> dg.AssetCheckResult:
    """Report whether Hit_Rate@10 reaches the threshold."""
    verdict = gates.hit_rate
    return dg.AssetCheckResult(
        passed=verdict.allows_promotion,
        metadata=labelled(
            {
                "hit_rate_at_10": verdict.hit_rate,
                "hit_rate_at_10_low": verdict.interval.low,
                "hit_rate_at_10_high": verdict.interval.high,
                "threshold": verdict.threshold,
                "evidence": evidence_in_words(gates.evidence),
                "state": GATE_WORDS[verdict.state],
                "degraded_queries": gates.evaluation.degraded_queries,
            }
        ),
        description=gates.description,
    )


def settled_result(gates: Gates) -> dg.AssetCheckResult:
    """Report whether the whole interval of Hit_Rate@10 reaches the threshold."""
    return dg.AssetCheckResult(
        passed=gates.hit_rate.state is GateState.PASS,
        metadata=labelled({"queries_to_settle": gates.hit_rate.queries_to_settle}),
        description=gates.description,
    )


def latency_result(gates: Gates) -> dg.AssetCheckResult:
    """Report whether the p95 latency is below the limit."""
    return dg.AssetCheckResult(
        passed=gates.latency.allows_promotion,
        metadata=labelled(
            {
                "latency_p50_ms": gates.evaluation.latency_p50_ms,
                "latency_p95_ms": gates.evaluation.latency_p95_ms,
                "limit_ms": gates.config.latency_p95_ms,
                "latency_queries": gates.evaluation.latency_queries,
                "late_queries": gates.evaluation.late_queries,
            }
        ),
        description=gates.disturbance,
    )


def citations_result(gates: Gates) -> dg.AssetCheckResult:
    """Report whether enough of an answer's citations are right."""
    figures = gates.evaluation.answers
    found = figures.citation_precision if figures else None
    return _answers_result(
        gates, gates.citations, gates.citations_in_words, found, gates.config.citation_precision
    )


def silence_result(gates: Gates) -> dg.AssetCheckResult:
    """Report whether few enough questions are answered while their notes are hidden."""
    figures = gates.evaluation.answers
    found = figures.false_answers if figures else None
    return _answers_result(
        gates, gates.silence, gates.silence_in_words, found, gates.config.false_answers
    )


def _answers_result(
    gates: Gates, state: GateState, said: str, found: Estimate | None, threshold: float
) -> dg.AssetCheckResult:
    measured = (
        {"share": found.mean, "share_low": found.low, "share_high": found.high} if found else {}
    )
    is_unmeasured = found is None and not gates.disturbance
    return dg.AssetCheckResult(
        passed=state.allows_promotion and not is_unmeasured,
        # What was not measured stops nothing, but is not shown as passed either.
        severity=WARN if is_unmeasured else ERROR,
        metadata=labelled(
            {
                **measured,
                "threshold": threshold,
                "state": _("not measured") if is_unmeasured else GATE_WORDS[state],
            }
        ),
        description=gates.disturbance or said,
    )


def regression_result(gates: Gates) -> dg.AssetCheckResult:
    """Report whether the configuration is worse than what serves."""
    against = gates.against
    if gates.disturbance:
        return dg.AssetCheckResult(passed=False, description=gates.disturbance)
    if against is None:
        return dg.AssetCheckResult(
            passed=True,
            description=_("There is no other evaluation, that of what serves, to compare with."),
        )
    judged, served = against.compared[HITS], against.compared[SERVED]
    return dg.AssetCheckResult(
        passed=gates.regression.allows_promotion,
        metadata=labelled(
            {
                "state": inferiority_in_words(judged),
                "difference_low": judged.interval.low,
                "difference_high": judged.interval.high,
                "served_state": inferiority_in_words(served, SERVED),
                "served_difference_low": served.interval.low,
                "served_difference_high": served.interval.high,
                "margin": judged.margin,
            }
        ),
        description=against.in_words,
    )


def graph_result(gates: Gates) -> dg.AssetCheckResult:
    """Report whether the configuration is better with the causal graph than without it."""
    verdict = gates.graph
    if gates.disturbance or verdict is None:
        return dg.AssetCheckResult(passed=False, description=gates.disturbance)
    measured = (
        {
            "recall_gain": verdict.gain,
            "recall_gain_low": verdict.interval.low,
            "recall_gain_high": verdict.interval.high,
            "p_value": p_value_in_words(verdict.p_value),
        }
        if verdict.interval
        else {}
    )
    return dg.AssetCheckResult(
        passed=verdict.has_won,
        metadata=labelled(measured),
        description=verdict.reason
        or _(
            "The graph does not harm questions about one note and gains on those about several: "
            "recall@10 {gain:+.3f} (p = {p_value:.3f})."
        ).format(gain=verdict.gain, p_value=verdict.p_value),
    )


def _attributed(
    result: dg.AssetCheckResult, evaluations: Evaluations, evaluation: StoredEvaluation
) -> dg.AssetCheckResult:
    """Add the changes from what serves, and the causes of the lost questions."""
    compared = evaluations.compare_with_serving(evaluation)
    if compared is None:
        return result
    return result._replace(
        metadata={
            **result.metadata,
            **labelled(
                {
                    "queries": compared.comparison.queries,
                    **comparison_metadata(evaluations, compared),
                }
            ),
        }
    )
