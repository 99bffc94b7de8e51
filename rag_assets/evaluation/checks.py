"""Checks of the golden dataset, and the gates of every evaluation."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import dagster as dg

from rag_assets.evaluation.metadata import comparison_metadata
from rag_assets.keys import GOLDEN_DATASET, evaluation_key
from rag_assets.labels import labelled
from rag_resources.core.answer_metrics import AnswerFigures, Estimate
from rag_resources.core.comparison import HITS
from rag_resources.core.configuration import NamedConfiguration, Role
from rag_resources.core.gate import GateConfig, GateState
from rag_resources.core.metrics import SERVED
from rag_resources.evaluation.gates import Gates
from rag_resources.evaluation.summary import (
    GATE_WORDS,
    evidence_in_words,
    p_value_in_words,
)
from rag_resources.languages.messages import _, ngettext
from rag_resources.resources import RagResource

EXAMPLES = 10
WARN, ERROR = dg.AssetCheckSeverity.WARN, dg.AssetCheckSeverity.ERROR


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
    """A gate of every evaluation, as its check shows it.

    None is a blocking check: that would fail the whole run, and stop other candidates as well. The
    promotion reads the same verdicts and stops the candidate concerned.

    Attributes:
        name: The name of the check.
        description: What it asks for.
        blocks: Whether the settings let it keep a candidate from serving; otherwise it warns.
        state: Its verdict.
        said: The verdict in words.
        figures: What the verdict was made of.
    """

    name: str
    description: str
    blocks: Callable[[GateConfig], bool]
    state: Callable[[Gates], GateState]
    said: Callable[[Gates], str | None]
    figures: Callable[[Gates], Mapping[str, Any]]

    def judge(self, configuration: NamedConfiguration, gates: Gates) -> dg.AssetCheckEvaluation:
        """Return the verdict on an evaluation of a configuration; one on a reference only warns."""
        state = self.state(gates)
        stops = configuration.role is Role.CANDIDATE and self.blocks(gates.config)
        return dg.AssetCheckEvaluation(
            asset_key=evaluation_key(configuration.name),
            check_name=self.name,
            passed=state.allows_promotion,
            metadata=labelled({"state": GATE_WORDS[state], **self.figures(gates)}),
            severity=ERROR if stops else WARN,
            description=self.said(gates),
            blocking=False,
        )


def _hit_rate_figures(gates: Gates) -> dict[str, Any]:
    verdict = gates.hit_rate
    return {
        "hit_rate_at_10": verdict.hit_rate,
        "hit_rate_at_10_low": verdict.interval.low,
        "hit_rate_at_10_high": verdict.interval.high,
        "threshold": verdict.threshold,
        "queries_to_settle": verdict.queries_to_settle,
        "evidence": evidence_in_words(gates.evidence),
        "degraded_queries": gates.evaluation.degraded_queries,
    }


def _latency_figures(gates: Gates) -> dict[str, Any]:
    return {
        "latency_p50_ms": gates.evaluation.latency_p50_ms,
        "latency_p95_ms": gates.evaluation.latency_p95_ms,
        "limit_ms": gates.config.latency_p95_ms,
        "latency_queries": gates.evaluation.latency_queries,
        "late_queries": gates.evaluation.late_queries,
    }


def _share(answers: AnswerFigures | None, name: str, threshold: float) -> dict[str, Any]:
    found: Estimate | None = getattr(answers, name, None)
    if found is None:
        return {"state": _("not measured")}
    return {
        "share": found.mean,
        "share_low": found.low,
        "share_high": found.high,
        "threshold": threshold,
    }


def _regression_figures(gates: Gates) -> dict[str, Any]:
    if gates.against is None:
        return {}
    judged, served = gates.against.compared[HITS], gates.against.compared[SERVED]
    return {
        "difference_low": judged.interval.low,
        "difference_high": judged.interval.high,
        "served_difference_low": served.interval.low,
        "served_difference_high": served.interval.high,
        "margin": judged.margin,
        "queries": gates.against.found.comparison.queries,
    }


def _graph_state(gates: Gates) -> GateState:
    if gates.disturbance:
        return GateState.DISTURBED
    return GateState.PASS if gates.graph and gates.graph.has_won else GateState.FAIL


def _graph_figures(gates: Gates) -> dict[str, Any]:
    verdict = gates.graph
    if verdict is None or verdict.interval is None:
        return {}
    return {
        "recall_gain": verdict.gain,
        "recall_gain_low": verdict.interval.low,
        "recall_gain_high": verdict.interval.high,
        "p_value": p_value_in_words(verdict.p_value),
    }


_REGRESSION_GATE, _GRAPH_GATE = "no_regression", "graph_gate"
_GATES = (
    Gate(
        "hit_rate_gate",
        _(
            "Hit_Rate@10 reaches GATE__HIT_RATE_AT_10 (by default 0.85) on the questions of "
            "the set; with the 95 % Wilson interval."
        ),
        lambda _config: True,
        lambda gates: gates.hit_rate.state,
        lambda gates: gates.description,
        _hit_rate_figures,
    ),
    Gate(
        "latency_gate",
        _("p95 of a retrieval under GATE__LATENCY_P95_MS (by default 2000 ms)."),
        lambda _config: True,
        lambda gates: gates.latency,
        lambda gates: gates.disturbance,
        _latency_figures,
    ),
    Gate(
        "citation_gate",
        _(
            "Precision of the answers' citations, at least GATE__CITATION_PRECISION (by "
            "default 0.5)."
        ),
        lambda config: config.citations_block,
        lambda gates: gates.citations,
        lambda gates: gates.disturbance or gates.citations_in_words,
        lambda gates: _share(
            gates.evaluation.answers,
            "citation_precision",
            gates.config.citation_precision,
        ),
    ),
    Gate(
        "silence_gate",
        _("Questions answered without their notes, at most GATE__FALSE_ANSWERS (by default 0.5)."),
        lambda config: config.false_answers_block,
        lambda gates: gates.silence,
        lambda gates: gates.disturbance or gates.silence_in_words,
        lambda gates: _share(
            gates.evaluation.answers,
            "false_answers",
            gates.config.false_answers,
        ),
    ),
    Gate(
        _REGRESSION_GATE,
        _(
            "Nothing proves, question by question, that Hit_Rate@10 or Hit_Rate@final (what a "
            "user gets) are worse than those of what serves; a loss is tolerated that "
            "certainly is not above GATE__MARGIN (by default 2 points)."
        ),
        lambda _config: True,
        lambda gates: gates.regression,
        lambda gates: (
            gates.disturbance
            or (
                gates.against.in_words
                if gates.against
                else _("There is no other evaluation, that of what serves, to compare with.")
            )
        ),
        _regression_figures,
    ),
    Gate(
        _GRAPH_GATE,
        _(
            "The graph does not harm questions about a single note and gains on those "
            "about several, compared with the same configuration without it."
        ),
        lambda _config: True,
        _graph_state,
        lambda gates: gates.disturbance or (gates.graph and gates.graph.reason) or None,
        _graph_figures,
    ),
)


def gates_of(configuration: NamedConfiguration) -> list[Gate]:
    """Return the gates of a configuration; that of the graph is only for those that search it."""
    searches_graph = configuration.retrieval.searches_graph
    return [gate for gate in _GATES if searches_graph or gate.name != _GRAPH_GATE]


def build_gates(configuration: NamedConfiguration) -> list[dg.AssetChecksDefinition]:
    """Build the checks of `evaluation_results/<configuration>`."""
    return [_build_check(configuration, gate) for gate in gates_of(configuration)]


def _build_check(configuration: NamedConfiguration, gate: Gate) -> dg.AssetChecksDefinition:
    @dg.asset_check(
        asset=evaluation_key(configuration.name), name=gate.name, description=gate.description
    )
    def check(rag: RagResource) -> dg.AssetCheckResult:
        evaluation = rag.evaluations.latest(configuration.name)
        if evaluation is None:
            return dg.AssetCheckResult(
                passed=False, severity=WARN, description=_("There are no evaluations yet.")
            )
        gates = rag.evaluations.gates(evaluation)
        told = gate.judge(configuration, gates)
        compared = (
            labelled(comparison_metadata(rag.evaluations, gates.against.found))
            if gate.name == _REGRESSION_GATE and gates.against
            else {}
        )
        return dg.AssetCheckResult(
            passed=told.passed,
            metadata={**told.metadata, **compared},
            severity=told.severity,
            description=told.description,
        )

    return check
