"""Decides which configuration may serve. The gate is in `core.gate`.

Going back to an earlier configuration, whatever its gate says, is `serving.rollback`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from rag_resources.core.comparison import Inferiority, NonInferiority
from rag_resources.core.configuration import NamedConfiguration, Role
from rag_resources.core.errors import (
    GateNotPassedError,
    InvalidConfigurationError,
    MigrationHeldError,
)
from rag_resources.core.evaluation import StoredEvaluation, judge_stored
from rag_resources.core.gate import GateConfig, GateState
from rag_resources.core.measurement import Versions
from rag_resources.core.messages import Message
from rag_resources.database.pool import Connection, Database
from rag_resources.evaluation.comparison import compare_with_serving
from rag_resources.evaluation.summary import inferiority_in_words
from rag_resources.store.evaluations import latest_evaluation
from rag_resources.store.holds import current_hold
from rag_resources.store.models import known_since
from rag_resources.store.promotions import lock_promotions, promote, withdrawn_at
from rag_resources.store.versions import read_present


@dataclass(frozen=True, slots=True)
class PromotionOutcome:
    """What serves now, the evaluation it was promoted on, and whether anything changed."""

    evaluation: StoredEvaluation
    changed: bool
    refused: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Against:
    """How an evaluation compares with the serving configuration, and that configuration's name."""

    name: str
    judged: NonInferiority


def promote_best(
    database: Database,
    configurations: Mapping[str, NamedConfiguration],
    *,
    gate: GateConfig | None = None,
    name: str | None = None,
    run_id: str | None = None,
) -> PromotionOutcome:
    """Promote the named candidate, or the best one that passed its gate.

    The latest evaluation is read in the promoting transaction, so no caller can bypass a gate.
    Best is highest Hit_Rate@10, then highest MRR, then lowest p95, then first name.

    Only a person who names a candidate ends a rollback. Without a name, nothing is promoted while
    the migration is rolled back, and a withdrawn candidate needs a newer evaluation.

    Args:
        database: Open.
        configurations: All configurations, by name.
        gate: What an evaluation must reach; None uses the defaults.
        name: The candidate to promote; None promotes the best.
        run_id: Dagster's run, if any.

    Raises:
        MigrationHeldError: The migration is rolled back and no candidate is named.
        InvalidConfigurationError: No candidate has this name.
        GateNotPassedError: The named candidate, or every candidate, fails its gate; the message
            gives names and numbers.
    """
    candidates = _candidates(configurations, name)
    gate = gate or GateConfig()
    with database.transaction() as connection:
        lock_promotions(connection)
        if name is None:
            _refuse_while_rolled_back(connection)
        present = read_present(connection)
        passed: list[StoredEvaluation] = []
        refused: dict[str, str] = {}
        for candidate in candidates:
            evaluation = latest_evaluation(connection, candidate.name)
            if evaluation is None:
                refused[candidate.name] = Message.REFUSED_NOT_EVALUATED
                continue
            reason = refusal(
                connection,
                candidate,
                evaluation,
                now=present.versions(candidate.retrieval),
                gate=gate,
                against=_against_serving(connection, evaluation, gate),
                by_itself=name is None,
            )
            if reason:
                refused[candidate.name] = reason
            else:
                passed.append(evaluation)
        if not passed:
            reasons = "; ".join(f"{key}: {reason}" for key, reason in refused.items())
            raise GateNotPassedError(Message.NOT_PROMOTED.format(reasons=reasons), **refused)
        best = min(passed, key=_preference)
        changed = _promote(connection, best, configurations, run_id)
    return PromotionOutcome(best, changed, refused)


def refusal(
    connection: Connection,
    candidate: NamedConfiguration,
    evaluation: StoredEvaluation,
    *,
    now: Versions,
    gate: GateConfig,
    against: Against | None,
    by_itself: bool,
) -> str | None:
    """Say in Spanish why a configuration may not serve on this evaluation; None if it may.

    Args:
        connection: Open.
        candidate: The configuration as it is now.
        evaluation: An evaluation of the candidate.
        now: The versions that a new evaluation of the candidate would have.
        gate: What an evaluation must reach.
        against: The comparison with the serving configuration; None if there is none.
        by_itself: Whether no person names the candidate; then a withdrawn one stays withdrawn.
    """
    return (
        _staleness(evaluation.versions, now)
        or _shortfall(evaluation, gate)
        or _retirement(connection, candidate, evaluation)
        or _regression(against, gate)
        or (_withdrawal(connection, evaluation) if by_itself else None)
    )


def _staleness(evaluated: Versions, now: Versions) -> str | None:
    if evaluated.config_hash != now.config_hash:
        return Message.REFUSED_CONFIG_CHANGED
    if evaluated.golden_hash != now.golden_hash:
        return Message.REFUSED_GOLDEN_CHANGED
    return None


def _shortfall(evaluation: StoredEvaluation, gate: GateConfig) -> str | None:
    if gate.hit_rate_blocks and judge_stored(evaluation, gate).state is GateState.FAIL:
        return Message.REFUSED_HIT_RATE.format(
            hit_rate=evaluation.hit_rate_at_10, threshold=gate.hit_rate_at_10
        )
    if gate.latency_blocks and evaluation.latency_p95_ms >= gate.latency_p95_ms:
        return Message.REFUSED_LATENCY.format(
            p95_ms=evaluation.latency_p95_ms, limit_ms=gate.latency_p95_ms
        )
    return None


def _retirement(
    connection: Connection, candidate: NamedConfiguration, evaluation: StoredEvaluation
) -> str | None:
    """The model was retired after the evaluation; if it came back, its vectors are new ones."""
    model = candidate.retrieval.model
    since = known_since(connection, model)
    if since is None:
        return Message.REFUSED_MODEL_RETIRED.format(model=model)
    return Message.REFUSED_MODEL_BACK.format(model=model) if since > evaluation.created_at else None


def _regression(against: Against | None, gate: GateConfig) -> str | None:
    """The evaluation is significantly worse than the serving configuration."""
    if against is None or not gate.regression_blocks:
        return None
    if against.judged.state is not Inferiority.INFERIOR:
        return None
    return Message.REFUSED_REGRESSION.format(
        name=against.name, verdict=inferiority_in_words(against.judged)
    )


def _withdrawal(connection: Connection, evaluation: StoredEvaluation) -> str | None:
    """The configuration was withdrawn, or everything was rolled back, after the evaluation."""
    since = withdrawn_at(connection, evaluation)
    return Message.REFUSED_WITHDRAWN if since and evaluation.created_at <= since else None


def _against_serving(
    connection: Connection, evaluation: StoredEvaluation, gate: GateConfig
) -> Against | None:
    compared = compare_with_serving(connection, evaluation) if gate.regression_blocks else None
    if compared is None:
        return None
    return Against(compared.before.configuration, compared.comparison.inferiority(gate.margin))


def _refuse_while_rolled_back(connection: Connection) -> None:
    hold = current_hold(connection)
    if hold and hold.kind == "rolled_back":
        raise MigrationHeldError(Message.PROMOTION_HELD.format(hold=hold.explanation))


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
