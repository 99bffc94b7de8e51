"""Decides which configuration may serve. The gates are in `evaluation.gates`.

Going back to an earlier configuration, whatever its gate says, is `serving.rollback`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from rag_resources.configurations import DEFAULT_CONFIGURATION
from rag_resources.core.configuration import NamedConfiguration, Role
from rag_resources.core.errors import (
    GateNotPassedError,
    InvalidConfigurationError,
    MigrationHeldError,
)
from rag_resources.core.evaluation import StoredEvaluation, best_to_serve
from rag_resources.core.gate import GateConfig
from rag_resources.core.measurement import Versions
from rag_resources.core.messages import Message
from rag_resources.database.pool import Connection, Database
from rag_resources.evaluation.gates import Gates, read_gates
from rag_resources.store.evaluations import latest_evaluation
from rag_resources.store.holds import current_hold
from rag_resources.store.models import known_since
from rag_resources.store.promotions import (
    current_promotion,
    is_withdrawn,
    lock_promotions,
    promote,
    rolled_back_at,
)
from rag_resources.store.versions import read_present


@dataclass(frozen=True, slots=True)
class PromotionOutcome:
    """What serves now, the evaluation it was promoted on, and whether anything changed."""

    evaluation: StoredEvaluation
    changed: bool
    refused: Mapping[str, str]


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
    Which is best is decided by `best_to_serve`.

    Only a person who names a candidate ends a rollback or a withdrawal. Without a name, nothing is
    promoted while the migration is rolled back, nothing that was withdrawn, and nothing on an
    evaluation from before a rollback.

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
                read_gates(connection, evaluation, gate),
                now=present.versions(candidate.retrieval),
                by_itself=name is None,
            )
            if reason:
                refused[candidate.name] = reason
            else:
                passed.append(evaluation)
        if not passed:
            reasons = "; ".join(f"{key}: {reason}" for key, reason in refused.items())
            reasons = reasons or Message.REFUSED_NO_CANDIDATES
            raise GateNotPassedError(Message.NOT_PROMOTED.format(reasons=reasons), **refused)
        best = best_to_serve(passed, serving=_serving_hash(connection, configurations))
        changed = _promote(connection, best, configurations, run_id)
    return PromotionOutcome(best, changed, refused)


def refusal(
    connection: Connection,
    candidate: NamedConfiguration,
    gates: Gates,
    *,
    now: Versions,
    by_itself: bool,
) -> str | None:
    """Say in Spanish why a configuration may not serve on this evaluation; None if it may.

    Args:
        connection: Open.
        candidate: The configuration as it is now.
        gates: The verdicts on an evaluation of the candidate.
        now: The versions that a new evaluation of the candidate would have.
        by_itself: Whether no person names the candidate; then a withdrawn one stays withdrawn.
    """
    evaluation = gates.evaluation
    return (
        _staleness(evaluation.versions, now)
        or _gap(evaluation)
        or gates.disturbance
        or gates.shortfall
        or _retirement(connection, candidate, evaluation)
        or gates.loss
        or (_withdrawal(connection, evaluation) if by_itself else None)
    )


def fallen(connection: Connection, gate: GateConfig) -> str | None:
    """Say in Spanish why what serves would not be promoted on its latest evaluation.

    A disturbed evaluation does not tell whether it would, and is named as such.

    Returns:
        None if it would, or nothing was promoted, or it was not evaluated as it is. What a person
        went back to need not reach the thresholds, only not get worse.
    """
    promotion = current_promotion(connection)
    evaluation = latest_evaluation(connection, promotion.configuration) if promotion else None
    if promotion is None or evaluation is None or evaluation.config_hash != promotion.config_hash:
        return None
    gates = read_gates(connection, evaluation, gate)
    if gates.disturbance:
        return Message.SERVING_UNMEASURED.format(
            name=promotion.configuration, reason=gates.disturbance
        )
    reason = gates.loss or (None if promotion.reason else gates.shortfall)
    if reason is None:
        return None
    return Message.SERVING_FELL.format(name=promotion.configuration, reason=reason)


def _staleness(evaluated: Versions, now: Versions) -> str | None:
    if evaluated.config_hash != now.config_hash:
        return Message.REFUSED_CONFIG_CHANGED
    if evaluated.golden_hash != now.golden_hash:
        return Message.REFUSED_GOLDEN_CHANGED
    return None


def _gap(evaluation: StoredEvaluation) -> str | None:
    """What users get was not measured."""
    return Message.REFUSED_UNMEASURED if evaluation.served_hit_rate is None else None


def _retirement(
    connection: Connection, candidate: NamedConfiguration, evaluation: StoredEvaluation
) -> str | None:
    """The model was retired after the evaluation; if it came back, its vectors are new ones."""
    model = candidate.retrieval.model
    since = known_since(connection, model)
    if since is None:
        return Message.REFUSED_MODEL_RETIRED.format(model=model)
    return Message.REFUSED_MODEL_BACK.format(model=model) if since > evaluation.created_at else None


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
