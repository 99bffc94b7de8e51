"""Decides which configuration may serve. The gates are in `evaluation.gates`.

Going back to an earlier configuration, whatever its gate says, is `serving.rollback`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from rag_resources.configurations import DEFAULT_CONFIGURATION
from rag_resources.core.configuration import NamedConfiguration, Role, parse_retrieval
from rag_resources.core.errors import (
    GateNotPassedError,
    InvalidConfigurationError,
    MigrationHeldError,
)
from rag_resources.core.evaluation import StoredEvaluation, best_to_serve
from rag_resources.core.evidence import Evidence, EvidenceState, SearchSettings
from rag_resources.core.gate import GateConfig
from rag_resources.core.messages import Message
from rag_resources.database.pool import Connection, Database
from rag_resources.evaluation.evidence import read_evidence
from rag_resources.evaluation.gates import Gates, read_gates
from rag_resources.store.contents import count_contents
from rag_resources.store.evaluations import latest_evaluation
from rag_resources.store.holds import current_hold
from rag_resources.store.models import fetch_model
from rag_resources.store.promotions import (
    current_promotion,
    is_withdrawn,
    lock_promotions,
    promote,
    rolled_back_at,
)


@dataclass(frozen=True, slots=True)
class PromotionOutcome:
    """What serves now.

    Attributes:
        evaluation: What it was promoted on.
        evidence: Whether that stands for what is searched now.
        changed: Whether this changed it.
        refused: Why other candidates may not serve, by name.
        evaluated_again: The candidates that were evaluated for this decision.
    """

    evaluation: StoredEvaluation
    evidence: Evidence
    changed: bool
    refused: Mapping[str, str]
    evaluated_again: tuple[str, ...] = ()


def promote_best(
    database: Database,
    configurations: Mapping[str, NamedConfiguration],
    *,
    gate: GateConfig | None = None,
    settings: SearchSettings | None = None,
    name: str | None = None,
    run_id: str | None = None,
) -> PromotionOutcome:
    """Promote the named candidate, or the best one that passed its gate.

    The latest evaluation, and whether it still stands for what it measured, are read in the
    promoting transaction, so no caller can bypass a gate. `best_to_serve` decides which is best.

    Only a person who names a candidate ends a rollback or a withdrawal. Without a name, nothing is
    promoted while the migration is rolled back, nothing that was withdrawn, and nothing on an
    evaluation from before a rollback.

    Args:
        database: Open.
        configurations: All configurations, by name.
        gate: What an evaluation must reach; None uses the defaults.
        settings: Those that are searched with; None is the defaults.
        name: The candidate to promote; None promotes the best.
        run_id: Dagster's run, if any.

    Raises:
        MigrationHeldError: The migration is rolled back and no candidate is named.
        InvalidConfigurationError: No candidate has this name.
        GateNotPassedError: The named candidate, or every candidate, fails its gate; the message
            gives names and numbers.
    """
    candidates = _candidates(configurations, name)
    gate, settings = gate or GateConfig(), settings or SearchSettings()
    with database.transaction() as connection:
        lock_promotions(connection)
        if name is None:
            _refuse_while_rolled_back(connection)
        count_contents(connection)
        passed: dict[UUID, tuple[StoredEvaluation, Evidence]] = {}
        refused: dict[str, str] = {}
        for candidate in candidates:
            evaluation = latest_evaluation(connection, candidate.name)
            if evaluation is None:
                refused[candidate.name] = Message.REFUSED_NOT_EVALUATED
                continue
            evidence = read_evidence(
                connection, evaluation, candidate.retrieval, gate=gate, settings=settings
            )
            gates = read_gates(connection, evaluation, gate, evidence)
            reason = refusal(connection, candidate, gates, by_itself=name is None)
            if reason:
                refused[candidate.name] = reason
            else:
                passed[evaluation.evaluation_id] = evaluation, evidence
        if not passed:
            reasons = "; ".join(f"{key}: {reason}" for key, reason in refused.items())
            reasons = reasons or Message.REFUSED_NO_CANDIDATES
            raise GateNotPassedError(Message.NOT_PROMOTED.format(reasons=reasons), **refused)
        best = best_to_serve(
            [evaluation for evaluation, _ in passed.values()],
            serving=_serving_hash(connection, configurations),
        )
        changed = _promote(connection, best, configurations, run_id)
    return PromotionOutcome(best, passed[best.evaluation_id][1], changed, refused)


def refusal(
    connection: Connection,
    candidate: NamedConfiguration,
    gates: Gates,
    *,
    by_itself: bool,
) -> str | None:
    """Say in Spanish why a configuration may not serve on this evaluation; None if it may.

    Args:
        connection: Open.
        candidate: The configuration as it is now.
        gates: The verdicts on an evaluation of the candidate.
        by_itself: Whether no person names the candidate; then a withdrawn one stays withdrawn.
    """
    evaluation = gates.evaluation
    return (
        _retirement(connection, candidate)
        or gates.staleness
        or _gap(evaluation)
        or gates.disturbance
        or gates.shortfall
        or gates.loss
        or (_withdrawal(connection, evaluation) if by_itself else None)
    )


def needing_evaluation(
    database: Database,
    configurations: Mapping[str, NamedConfiguration],
    *,
    gate: GateConfig,
    settings: SearchSettings,
    name: str | None,
) -> list[str]:
    """Return the candidates that a promotion has to evaluate again before it decides.

    These were evaluated, but what they searched has changed since. One that is refused whatever an
    evaluation says is left out: its model was retired, or a person withdrew it and names no other.

    Raises:
        MigrationHeldError: As `promote_best`.
        InvalidConfigurationError: As `promote_best`.
    """
    found = []
    with database.transaction() as connection:
        if name is None:
            _refuse_while_rolled_back(connection)
        count_contents(connection)
        for candidate in _candidates(configurations, name):
            evaluation = latest_evaluation(connection, candidate.name)
            if evaluation is None or _retirement(connection, candidate):
                continue
            if name is None and is_withdrawn(connection, candidate.retrieval.config_hash):
                continue
            evidence = read_evidence(
                connection, evaluation, candidate.retrieval, gate=gate, settings=settings
            )
            outdated = name is None and _withdrawal(connection, evaluation) is not None
            if not evidence.is_current or evaluation.is_disturbed or _gap(evaluation) or outdated:
                found.append(candidate.name)
    return found


def fallen(connection: Connection, gate: GateConfig, settings: SearchSettings) -> str | None:
    """Say in Spanish why what serves would not be promoted on its latest evaluation.

    A disturbed evaluation does not tell whether it would, and is named as such.

    Returns:
        None if it would, or nothing was promoted, or it was not evaluated as it is, here and now.
        What a person went back to need not reach the thresholds, only not get worse.
    """
    promotion = current_promotion(connection)
    evaluation = latest_evaluation(connection, promotion.configuration) if promotion else None
    if promotion is None or evaluation is None or evaluation.config_hash != promotion.config_hash:
        return None
    config = parse_retrieval(promotion.config, origin=promotion.configuration)
    evidence = read_evidence(connection, evaluation, config, gate=gate, settings=settings)
    if evidence.state is EvidenceState.STALE:
        return None
    gates = read_gates(connection, evaluation, gate, evidence)
    if gates.disturbance:
        return Message.SERVING_UNMEASURED.format(
            name=promotion.configuration, reason=gates.disturbance
        )
    reason = gates.loss or (None if promotion.reason else gates.shortfall)
    if reason is None:
        return None
    return Message.SERVING_FELL.format(name=promotion.configuration, reason=reason)


def _gap(evaluation: StoredEvaluation) -> str | None:
    """What users get was not measured."""
    return Message.REFUSED_UNMEASURED if evaluation.served_hit_rate is None else None


def _retirement(connection: Connection, candidate: NamedConfiguration) -> str | None:
    """The model was retired; if it came back, the evidence tells that it is another one."""
    model = candidate.retrieval.model
    if fetch_model(connection, model) is None:
        return Message.REFUSED_MODEL_RETIRED.format(model=model)
    return None


def _withdrawal(connection: Connection, evaluation: StoredEvaluation) -> str | None:
    """A person withdrew the configuration, or everything was rolled back after the evaluation."""
    if is_withdrawn(connection, evaluation.config_hash):
        return Message.REFUSED_WITHDRAWN
    since = rolled_back_at(connection)
    return Message.REFUSED_ROLLED_BACK if since and evaluation.created_at <= since else None


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


def _serving_hash(
    connection: Connection, configurations: Mapping[str, NamedConfiguration]
) -> str | None:
    """Return the hash of what serves: the promoted configuration, or the default one."""
    promotion = current_promotion(connection)
    if promotion is not None:
        return promotion.config_hash
    default = configurations.get(DEFAULT_CONFIGURATION)
    return default.retrieval.config_hash if default else None


def _promote(
    connection: Connection,
    best: StoredEvaluation,
    configurations: Mapping[str, NamedConfiguration],
    run_id: str | None,
) -> bool:
    return promote(connection, best, configurations[best.configuration].retrieval, run_id=run_id)
