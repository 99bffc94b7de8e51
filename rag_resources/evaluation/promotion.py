"""Which configuration may serve. The gate is `core.gate`, its rows are `store.evaluations`."""

from collections.abc import Mapping
from dataclasses import dataclass

from rag_resources.core.configuration import NamedConfiguration, Role
from rag_resources.core.errors import GateNotPassedError, InvalidConfigurationError
from rag_resources.core.evaluation import StoredEvaluation
from rag_resources.core.gate import LATENCY_P95_LIMIT_MS, GateState
from rag_resources.core.golden import golden_hash
from rag_resources.core.messages import Message
from rag_resources.database.pool import Connection, Database
from rag_resources.store.evaluations import latest_evaluation, promote
from rag_resources.store.golden import list_golden


@dataclass(frozen=True, slots=True)
class PromotionOutcome:
    """What serves now, on which evidence, and whether that changed."""

    evaluation: StoredEvaluation
    changed: bool
    refused: Mapping[str, str]


def promote_best(
    database: Database,
    configurations: Mapping[str, NamedConfiguration],
    *,
    name: str | None = None,
    run_id: str | None = None,
) -> PromotionOutcome:
    """Promote the candidate named, or the best that passed its gate.

    The latest evaluation is read from the database in the transaction that promotes: nothing that
    calls this gets past a gate. Best is highest Hit_Rate@10, then MRR, then lowest p95, then name.

    Raises:
        InvalidConfigurationError: There is no candidate of that name.
        GateNotPassedError: The gate of the one named, or of every candidate, is not passed; the
            message names them with their numbers.
    """
    candidates = _candidates(configurations, name)
    with database.transaction() as connection:
        golden = golden_hash(list_golden(connection))
        passed: list[StoredEvaluation] = []
        refused: dict[str, str] = {}
        for candidate in candidates:
            evaluation = latest_evaluation(connection, candidate.name)
            reason = refusal(candidate, evaluation, golden)
            if reason:
                refused[candidate.name] = reason
            elif evaluation:
                passed.append(evaluation)
        if not passed:
            reasons = "; ".join(f"{key}: {reason}" for key, reason in refused.items())
            raise GateNotPassedError(Message.NOT_PROMOTED.format(reasons=reasons), **refused)
        best = min(passed, key=_preference)
        changed = _promote(connection, best, configurations, run_id)
    return PromotionOutcome(best, changed, refused)


def refusal(
    candidate: NamedConfiguration, evaluation: StoredEvaluation | None, golden: str
) -> str | None:
    """Say in Spanish why a candidate may not serve on its latest evaluation; None if it may."""
    if evaluation is None:
        return Message.REFUSED_NOT_EVALUATED
    if evaluation.config_hash != candidate.retrieval.config_hash:
        return Message.REFUSED_CONFIG_CHANGED
    if evaluation.golden_hash != golden:
        return Message.REFUSED_GOLDEN_CHANGED
    if evaluation.gate == GateState.FAIL:
        return Message.REFUSED_HIT_RATE.format(hit_rate=evaluation.hit_rate_at_10)
    if evaluation.latency_p95_ms >= LATENCY_P95_LIMIT_MS:
        return Message.REFUSED_LATENCY.format(p95_ms=evaluation.latency_p95_ms)
    return None


def _candidates(
    configurations: Mapping[str, NamedConfiguration], name: str | None
) -> list[NamedConfiguration]:
    candidates = [item for item in configurations.values() if item.role is Role.CANDIDATE]
    if name is None:
        return candidates
    named = [candidate for candidate in candidates if candidate.name == name]
    if not named:
        known = ", ".join(candidate.name for candidate in candidates)
        raise InvalidConfigurationError(
            Message.CANDIDATE_NOT_FOUND.format(name=name, known=known), []
        )
    return named


def _preference(evaluation: StoredEvaluation) -> tuple[float, float, float, str]:
    return (
        -evaluation.hit_rate_at_10,
        -evaluation.mrr,
        evaluation.latency_p95_ms,
        evaluation.configuration,
    )


def _promote(
    connection: Connection,
    best: StoredEvaluation,
    configurations: Mapping[str, NamedConfiguration],
    run_id: str | None,
) -> bool:
    return promote(connection, best, configurations[best.configuration].retrieval, run_id=run_id)
