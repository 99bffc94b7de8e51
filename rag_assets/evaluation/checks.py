"""Checks of the golden dataset, and the gates of every evaluation."""

from collections.abc import Callable

import dagster as dg

from rag_assets.evaluation.attribution import attribution_metadata
from rag_assets.keys import GOLDEN_DATASET, evaluation_key
from rag_resources.application.evaluations import Evaluations
from rag_resources.core.comparison import Inferiority
from rag_resources.core.configuration import NamedConfiguration, Role
from rag_resources.core.evaluation import StoredEvaluation, judge_stored
from rag_resources.core.gate import GateConfig, GateState
from rag_resources.core.messages import Message
from rag_resources.evaluation.summary import gate_in_words, inferiority_in_words
from rag_resources.resources import RagResource

EXAMPLES = 10

Judged = Callable[[dg.DagsterInstance, Evaluations, StoredEvaluation], dg.AssetCheckResult]


@dg.asset_check(asset=GOLDEN_DATASET, blocking=True, description=Message.CHECK_GOLDEN)
def golden_valid(rag: RagResource) -> dg.AssetCheckResult:
    """Check that there are questions and that their notes exist; the table ensures the rest."""
    count, broken = len(rag.golden.entries()), rag.golden.broken()
    if not count:
        return dg.AssetCheckResult(passed=False, description=Message.GOLDEN_EMPTY)
    examples = "; ".join(f"«{entry.query}»" for entry in broken[:EXAMPLES])
    return dg.AssetCheckResult(
        passed=not broken,
        metadata={"questions": count, "broken": len(broken)},
        description=Message.GOLDEN_BROKEN.format(examples=examples)
        if broken
        else Message.GOLDEN_SOUND.format(count=count),
    )


@dg.asset_check(asset=GOLDEN_DATASET, description=Message.CHECK_GOLDEN_DRIFT)
def golden_drift(rag: RagResource) -> dg.AssetCheckResult:
    """Name the questions that need review; this check blocks nothing."""
    drift = rag.golden.drift()
    findings = drift.findings
    return dg.AssetCheckResult(
        passed=not findings,
        severity=dg.AssetCheckSeverity.WARN,
        metadata={
            "notes_gone": len(drift.gone),
            "notes_edited": len(drift.edited),
            "near_duplicates": len(drift.near_duplicates),
            "category_mix_distance": drift.mix.distance if drift.mix else 0.0,
            "every_configuration_right": len(drift.ceiling),
            "no_configuration_right": len(drift.floor),
            "deciding_questions": drift.deciding,
            "findings": dg.MetadataValue.md(
                "\n".join(f"- {line}" for line in findings[:EXAMPLES]) or "–"
            ),
        },
        description=drift.summary,
    )


def build_gates(
    configuration: NamedConfiguration, gate: GateConfig
) -> list[dg.AssetChecksDefinition]:
    """Build the gates of `evaluation_results/<configuration>`; those of a reference only warn.

    Whether the evidence is conclusive is a separate check, because automation treats a blocking
    check that warns as failed. A regression does not block here, because that would stop other
    candidates as well; the promotion stops the candidate concerned.
    """
    is_candidate = configuration.role is Role.CANDIDATE

    def build(
        name: str, judged: Judged, description: str, *, stops: bool = False, blocking: bool = False
    ) -> dg.AssetChecksDefinition:
        severity = dg.AssetCheckSeverity.ERROR if stops else dg.AssetCheckSeverity.WARN

        @dg.asset_check(
            asset=evaluation_key(configuration.name),
            name=name,
            blocking=blocking,
            description=description,
        )
        def check(context: dg.AssetCheckExecutionContext, rag: RagResource) -> dg.AssetCheckResult:
            evaluation = rag.evaluations.latest(configuration.name)
            if evaluation is None:
                result = dg.AssetCheckResult(passed=False, description=Message.NOT_EVALUATED)
            else:
                result = judged(context.instance, rag.evaluations, evaluation)
            return result._replace(severity=severity)

        return check

    stops_hits = is_candidate and gate.hit_rate_blocks
    stops_latency = is_candidate and gate.latency_blocks
    return [
        build(
            "hit_rate_gate",
            _hit_rate,
            Message.CHECK_HIT_RATE,
            stops=stops_hits,
            blocking=stops_hits,
        ),
        build("hit_rate_settled", _settled, Message.CHECK_SETTLED),
        build(
            "latency_gate",
            _latency,
            Message.CHECK_LATENCY,
            stops=stops_latency,
            blocking=stops_latency,
        ),
        build(
            "no_regression",
            _regression,
            Message.CHECK_REGRESSION,
            stops=is_candidate and gate.regression_blocks,
        ),
    ]


def _hit_rate(
    _: dg.DagsterInstance, evaluations: Evaluations, evaluation: StoredEvaluation
) -> dg.AssetCheckResult:
    verdict = judge_stored(evaluation, evaluations.gate)
    return dg.AssetCheckResult(
        passed=verdict.state is not GateState.FAIL,
        metadata={
            "hit_rate_at_10": verdict.hit_rate,
            "hit_rate_at_10_low": verdict.interval.low,
            "hit_rate_at_10_high": verdict.interval.high,
            "threshold": verdict.threshold,
            "state": verdict.state.value,
        },
        description=gate_in_words(verdict, evaluation.total_queries),
    )


def _settled(
    _: dg.DagsterInstance, evaluations: Evaluations, evaluation: StoredEvaluation
) -> dg.AssetCheckResult:
    verdict = judge_stored(evaluation, evaluations.gate)
    return dg.AssetCheckResult(
        passed=verdict.state is not GateState.INCONCLUSIVE,
        metadata={"queries_to_settle": verdict.queries_to_settle},
        description=gate_in_words(verdict, evaluation.total_queries),
    )


def _latency(
    _: dg.DagsterInstance, evaluations: Evaluations, evaluation: StoredEvaluation
) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        passed=evaluation.latency_p95_ms < evaluations.gate.latency_p95_ms,
        metadata={
            "latency_p50_ms": evaluation.latency_p50_ms,
            "latency_p95_ms": evaluation.latency_p95_ms,
            "limit_ms": evaluations.gate.latency_p95_ms,
        },
    )


def _regression(
    instance: dg.DagsterInstance, evaluations: Evaluations, evaluation: StoredEvaluation
) -> dg.AssetCheckResult:
    compared = evaluations.compare_with_serving(evaluation)
    if compared is None:
        return dg.AssetCheckResult(passed=True, description=Message.REGRESSION_NOTHING)
    judged = compared.comparison.inferiority(evaluations.gate.margin)
    return dg.AssetCheckResult(
        passed=judged.state is not Inferiority.INFERIOR,
        metadata={
            "state": judged.state.value,
            "difference_low": judged.interval.low,
            "difference_high": judged.interval.high,
            "margin": judged.margin,
            "queries": compared.comparison.queries,
            **attribution_metadata(instance, compared),
        },
        description=Message.REGRESSION_AGAINST.format(
            name=compared.before.configuration, verdict=inferiority_in_words(judged)
        ),
    )
