"""Checks of the golden dataset, and the gates on every evaluation."""

import dagster as dg

from rag_assets.assets.evaluation import evaluation_key, golden_dataset
from rag_assets.configured import configurations
from rag_resources.core.configuration import NamedConfiguration, Role
from rag_resources.core.evaluation import StoredEvaluation
from rag_resources.core.gate import LATENCY_P95_LIMIT_MS, GateState, GateVerdict, judge
from rag_resources.core.messages import Message
from rag_resources.evaluation.report import GATE_WORDS
from rag_resources.resources import RagResource
from rag_resources.store.evaluations import latest_evaluation
from rag_resources.store.golden import find_broken, list_golden

EXAMPLES = 10


@dg.asset_check(asset=golden_dataset, blocking=True, description=Message.CHECK_GOLDEN)
def golden_valid(rag: RagResource) -> dg.AssetCheckResult:
    """There are questions and their notes exist; the table's own constraints do the rest."""
    with rag.application.database.transaction() as connection:
        count = len(list_golden(connection))
        broken = find_broken(connection)
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


def build_gates(configuration: NamedConfiguration) -> list[dg.AssetChecksDefinition]:
    """Make the gates of `evaluation_results/<configuration>`; a reference's only warn.

    Whether the evidence settles the matter is a check of its own, which warns: to automation a
    blocking check that warns has failed.
    """
    blocking = configuration.role is Role.CANDIDATE
    severity = dg.AssetCheckSeverity.ERROR if blocking else dg.AssetCheckSeverity.WARN

    @dg.asset_check(
        asset=evaluation_key(configuration.name),
        name="hit_rate_gate",
        blocking=blocking,
        description=Message.CHECK_HIT_RATE,
    )
    def hit_rate_gate(rag: RagResource) -> dg.AssetCheckResult:
        evaluation = _latest(rag, configuration.name)
        if evaluation is None:
            return _not_evaluated(severity)
        verdict = _verdict(evaluation)
        return dg.AssetCheckResult(
            passed=verdict.state is not GateState.FAIL,
            severity=severity,
            metadata={
                "hit_rate_at_10": verdict.hit_rate,
                "hit_rate_at_10_low": verdict.interval.low,
                "hit_rate_at_10_high": verdict.interval.high,
                "threshold": verdict.threshold,
                "state": verdict.state.value,
            },
            description=gate_description(verdict, evaluation.total_queries),
        )

    @dg.asset_check(
        asset=evaluation_key(configuration.name),
        name="hit_rate_settled",
        description=Message.CHECK_SETTLED,
    )
    def hit_rate_settled(rag: RagResource) -> dg.AssetCheckResult:
        evaluation = _latest(rag, configuration.name)
        if evaluation is None:
            return _not_evaluated(dg.AssetCheckSeverity.WARN)
        verdict = _verdict(evaluation)
        return dg.AssetCheckResult(
            passed=verdict.state is not GateState.INCONCLUSIVE,
            severity=dg.AssetCheckSeverity.WARN,
            metadata={"queries_to_settle": verdict.queries_to_settle},
            description=gate_description(verdict, evaluation.total_queries),
        )

    @dg.asset_check(
        asset=evaluation_key(configuration.name),
        name="latency_gate",
        blocking=blocking,
        description=Message.CHECK_LATENCY,
    )
    def latency_gate(rag: RagResource) -> dg.AssetCheckResult:
        evaluation = _latest(rag, configuration.name)
        if evaluation is None:
            return _not_evaluated(severity)
        return dg.AssetCheckResult(
            passed=evaluation.latency_p95_ms < LATENCY_P95_LIMIT_MS,
            severity=severity,
            metadata={
                "latency_p50_ms": evaluation.latency_p50_ms,
                "latency_p95_ms": evaluation.latency_p95_ms,
                "limit_ms": LATENCY_P95_LIMIT_MS,
            },
        )

    return [hit_rate_gate, hit_rate_settled, latency_gate]


def gate_description(verdict: GateVerdict, queries: int) -> str:
    """Put a verdict into words."""
    described = Message.GATE_DESCRIPTION.format(
        state=GATE_WORDS[verdict.state.value],
        hit_rate=verdict.hit_rate,
        low=verdict.interval.low,
        high=verdict.interval.high,
        queries=queries,
        threshold=verdict.threshold,
    )
    if verdict.queries_to_settle:
        described += Message.GATE_MORE_QUERIES.format(more=verdict.queries_to_settle)
    return described


def _verdict(evaluation: StoredEvaluation) -> GateVerdict:
    return judge(
        round(evaluation.hit_rate_at_10 * evaluation.total_queries), evaluation.total_queries
    )


def _not_evaluated(severity: dg.AssetCheckSeverity) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(passed=False, severity=severity, description=Message.NOT_EVALUATED)


def _latest(rag: RagResource, name: str) -> StoredEvaluation | None:
    with rag.application.database.transaction() as connection:
        return latest_evaluation(connection, name)


gates = [gate for item in configurations().values() for gate in build_gates(item)]
