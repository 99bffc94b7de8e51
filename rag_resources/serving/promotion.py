"""Decides which configuration may serve. The gates are in `evaluation.gates`.

Rolling back to an earlier configuration, whatever its gate says, is in `serving.rollback`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from rag_resources.configurations import DEFAULT_CONFIGURATION
from rag_resources.core.configuration import NamedConfiguration, Role, parse_retrieval
from rag_resources.core.errors import (
    GateNotPassedError,
    InvalidConfigurationError,
    MigrationHeldError,
    OvertakenPromotionError,
)
from rag_resources.core.evaluation import StoredEvaluation
from rag_resources.core.evidence import Evidence, SearchSettings
from rag_resources.core.gate import GateConfig
from rag_resources.core.serving_choice import Passed, ahead_in_mrr, best_to_serve, losers
from rag_resources.database.pool import Connection, Database
from rag_resources.evaluation.comparison import query_metrics
from rag_resources.evaluation.evidence import read_evidence
from rag_resources.evaluation.gates import Gates, read_gates
from rag_resources.languages.messages import Text, _, joined
from rag_resources.store.comparison import evaluated_questions
from rag_resources.store.contents import count_contents
from rag_resources.store.evaluations import latest_evaluation
from rag_resources.store.holds import current_hold
from rag_resources.store.models import fetch_model
from rag_resources.store.promotions import (
    Promotion,
    current_promotion,
    evaluation_of_serving,
    is_withdrawn,
    lock_promotions,
    promote,
    rolled_back_at,
)


@dataclass(frozen=True, slots=True)
class PromotionOutcome:
    """The result of a promotion: what serves now.

    Attributes:
        evaluation: The evaluation it was promoted on.
        evidence: Whether that evaluation is current, aged or stale.
        changed: Whether this promotion was recorded; also of what served already, on newer figures.
        refused: Why other candidates may not serve, or do not for all their MRR, by name.
        served_already: Whether the same configuration served before.
        evaluated_again: The configurations evaluated for this decision.
    """

    evaluation: StoredEvaluation
    evidence: Evidence
    changed: bool
    refused: Mapping[str, str]
    served_already: bool
    evaluated_again: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ServingVerdict:
    """The verdict on the serving configuration by its latest evaluation, in Spanish.

    Attributes:
        fallen: Why it would no longer be promoted, or could not be measured; None if it would be.
        unjudged: Why the evaluation is not valid for what is searched now; None if it is.
    """

    fallen: str | None = None
    unjudged: str | None = None


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

    The latest evaluation, and whether it is current, aged or stale, are read in the promoting
    transaction, so no caller can bypass a gate. `best_to_serve` decides which is best.

    Only a person who names a candidate ends a rollback or a withdrawal. Without a name, nothing is
    promoted while the migration is rolled back. Nor is a withdrawn configuration promoted, or one
    whose evaluation is older than a rollback.

    Args:
        database: Open.
        configurations: All configurations, by name.
        gate: The thresholds; None uses the defaults.
        settings: The settings that searches use; None is the defaults.
        name: The candidate to promote; None promotes the best.
        run_id: Dagster's run, if any.

    Raises:
        MigrationHeldError: The migration is rolled back and no candidate is named.
        InvalidConfigurationError: No candidate has this name.
        GateNotPassedError: The named candidate, or every candidate, fails its gate; the message
            gives names and numbers.
        OvertakenPromotionError: One of them fails because its evaluation is stale.
    """
    candidates = _candidates(configurations, name)
    gate, settings = gate or GateConfig(), settings or SearchSettings()
    with database.transaction() as connection:
        lock_promotions(connection)
        if name is None:
            _refuse_while_rolled_back(connection)
        count_contents(connection)
        judged = _judge(connection, candidates, gate, settings, by_itself=name is None)
        passed, refused = judged.passed, judged.refused
        if not passed:
            reasons = "; ".join(f"{key}: {reason}" for key, reason in refused.items())
            reasons = reasons or _(
                "there is no candidate (role: candidate) with a model that is switched on: add "
                "that of an included one (e5_small) to EMBEDDING_MODELS, or write one of your own "
                "with “role: candidate” and a model of EMBEDDING_MODELS into the folder "
                "RAG_CONFIGURATIONS (docs/configuration.md)"
            )
            message: Text = _("No configuration is promoted: {reasons}.").format(reasons=reasons)
            if judged.is_stale:
                message = joined(
                    " ",
                    (
                        message,
                        _(
                            "What is stale is evaluated before a promotion, so it changed "
                            "meanwhile: repeat the promotion when nothing is being indexed."
                        ),
                    ),
                )
                raise OvertakenPromotionError(message, **refused)
            raise GateNotPassedError(message, **refused)
        serving = _serving(connection, configurations)
        able = _with_questions(connection, judged)
        best = best_to_serve(
            able,
            serving=serving.retrieval.config_hash if serving else None,
            name=serving.name if serving else "",
        )
        refused |= _not_chosen(able, best.configuration)
        before = current_promotion(connection)
        config = configurations[best.configuration].retrieval
        changed = promote(connection, best, config, run_id=run_id)
    evidence = passed[best.evaluation_id][1]
    served_already = before is not None and _is_of(before, best)
    return PromotionOutcome(best, evidence, changed, refused, served_already)


@dataclass(frozen=True, slots=True)
class _Judged:
    """The candidates with their latest evaluation, by whether they may serve.

    Attributes:
        passed: Each evaluation with whether it is current, by its id.
        refused: Why the others may not serve, by name.
        is_stale: Whether one of these is refused because its evaluation is stale.
    """

    passed: dict[UUID, tuple[StoredEvaluation, Evidence]]
    refused: dict[str, str]
    is_stale: bool


def _with_questions(connection: Connection, judged: _Judged) -> list[Passed]:
    """Return the candidates that may serve, with the questions of their evaluations."""
    questions = evaluated_questions(connection, judged.passed.keys())
    return [
        Passed(evaluation, query_metrics(questions[key]))
        for key, (evaluation, __) in judged.passed.items()
    ]


def _not_chosen(able: Sequence[Passed], serving: str) -> dict[str, str]:
    """Say of those with a higher MRR than what serves why they do not serve."""
    losing = losers(able)
    ahead = ahead_in_mrr([item.evaluation for item in able], serving)
    return {
        name: _("its MRR is higher, but it loses more questions than another, and not by chance")
        if name in losing
        else _(
            "its MRR is higher, but with these questions what sets it apart from what served "
            "already (at first, the default) may be chance"
        )
        for name in ahead
    }


def _judge(
    connection: Connection,
    candidates: Sequence[NamedConfiguration],
    gate: GateConfig,
    settings: SearchSettings,
    *,
    by_itself: bool,
) -> _Judged:
    """Judge candidates by their gates; call `count_contents` before."""
    passed: dict[UUID, tuple[StoredEvaluation, Evidence]] = {}
    refused: dict[str, str] = {}
    is_stale = False
    for candidate in candidates:
        evaluation = latest_evaluation(connection, candidate.name)
        if evaluation is None:
            refused[candidate.name] = _("it has not been evaluated yet")
            continue
        evidence = read_evidence(connection, evaluation, candidate.retrieval, settings=settings)
        gates = read_gates(connection, evaluation, gate, evidence, settings)
        reason = refusal(connection, candidate, gates, by_itself=by_itself)
        if reason:
            refused[candidate.name] = reason
            is_stale |= reason == gates.staleness
        else:
            passed[evaluation.evaluation_id] = evaluation, evidence
    return _Judged(passed, refused, is_stale)


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
        by_itself: Whether no person has named the candidate; a withdrawn one then stays withdrawn.
    """
    evaluation = gates.evaluation
    return (
        _retirement(connection, candidate)
        or (_withdrawal(connection, evaluation) if by_itself else None)
        or gates.staleness
        or gates.obstacle
    )


def needing_evaluation(
    database: Database,
    configurations: Mapping[str, NamedConfiguration],
    *,
    gate: GateConfig,
    settings: SearchSettings,
    name: str | None,
) -> list[NamedConfiguration]:
    """Return the configurations that a promotion must evaluate before it decides, in order.

    They were evaluated, but what they searched has changed since; or a person names a candidate
    that was never evaluated. A candidate that is refused in any case is left out: its model was
    retired, or it was withdrawn and no person names it. If another candidate is compared with what
    serves, what serves comes first, even if it was never evaluated.

    Raises:
        MigrationHeldError: As for `promote_best`.
        InvalidConfigurationError: As for `promote_best`.
    """
    found: list[NamedConfiguration] = []
    with database.transaction() as connection:
        if name is None:
            _refuse_while_rolled_back(connection)
        count_contents(connection)

        def is_outdated(item: NamedConfiguration, evaluation: StoredEvaluation | None) -> bool:
            if evaluation is None:
                return True
            evidence = read_evidence(connection, evaluation, item.retrieval, settings=settings)
            return evaluation.is_disturbed or not evidence.is_current

        candidates = [
            (candidate, evaluation)
            for candidate in _candidates(configurations, name)
            if ((evaluation := latest_evaluation(connection, candidate.name)) or name is not None)
            and _retirement(connection, candidate) is None
            and not (name is None and is_withdrawn(connection, candidate.retrieval.config_hash))
        ]
        serving = _serving(connection, configurations)
        hashes = {item.retrieval.config_hash for item, _ in candidates}
        others = hashes - {serving.retrieval.config_hash} if serving else set()
        if serving and others:
            reference = evaluation_of_serving(connection, compared_hash=min(others))
            if is_outdated(serving, reference) and _retirement(connection, serving) is None:
                found.append(serving)
        for candidate, evaluation in candidates:
            by_itself = evaluation if name is None else None
            withdrawn = by_itself is not None and _withdrawal(connection, by_itself) is not None
            if candidate in found:
                continue
            # The latest evaluation under a name must be of its file, not of what serves.
            hidden = any(item.name == candidate.name for item in found)
            if hidden or withdrawn or is_outdated(candidate, evaluation):
                found.append(candidate)
    return found


def judge_serving(
    connection: Connection, gate: GateConfig, settings: SearchSettings | None = None
) -> ServingVerdict:
    """Judge what serves by its latest evaluation, as if it were to be promoted on it.

    A rollback target need not reach the thresholds; it must only not get worse.

    Args:
        connection: Any, after `store.contents.count_contents`.
        gate: The thresholds.
        settings: The settings that searches use; None is the defaults.
    """
    promotion = current_promotion(connection)
    if promotion is None:
        return ServingVerdict()
    name, settings = promotion.configuration, settings or SearchSettings()

    def unjudged(reason: str) -> ServingVerdict:
        return ServingVerdict(
            unjudged=_("“{name}”, which serves, could not be judged: {reason}.").format(
                name=name, reason=reason
            )
        )

    evaluation = latest_evaluation(connection, name)
    if evaluation is None:
        return unjudged(_("it has not been evaluated yet"))
    config = parse_retrieval(promotion.config, origin=name)
    evidence = read_evidence(connection, evaluation, config, settings=settings)
    gates = read_gates(connection, evaluation, gate, evidence, settings)
    if gates.staleness:
        return unjudged(gates.staleness)
    reason = gates.disturbance or gates.loss or (None if promotion.reason else gates.shortfall)
    if reason is None:
        return ServingVerdict()
    return ServingVerdict(
        fallen=_("“{name}”, which serves, no longer passes: {reason}.").format(
            name=name, reason=reason
        )
    )


def _retirement(connection: Connection, candidate: NamedConfiguration) -> str | None:
    """Return the refusal if the model was retired; the evidence shows if another replaced it."""
    model = candidate.retrieval.model
    if candidate.retrieval.needs_vectors and fetch_model(connection, model) is None:
        return _("its model, “{model}”, was retired").format(model=model)
    return None


def _withdrawal(connection: Connection, evaluation: StoredEvaluation) -> str | None:
    """Return the refusal if a person withdrew it, or everything was rolled back since."""
    if is_withdrawn(connection, evaluation.config_hash):
        return _("somebody withdrew it; it comes back only if it is promoted by its name")
    since = rolled_back_at(connection)
    return (
        _(
            "whole notes came back after its last evaluation; evaluate it again or promote it by "
            "its name"
        )
        if since and evaluation.created_at <= since
        else None
    )


def _refuse_while_rolled_back(connection: Connection) -> None:
    hold = current_hold(connection)
    if hold and hold.kind == "rolled_back":
        raise MigrationHeldError(
            _(
                "Nothing is promoted by itself. {hold} Until then a candidate is promoted only by "
                "its name."
            ).format(hold=hold.explanation)
        )


def _candidates(
    configurations: Mapping[str, NamedConfiguration], name: str | None
) -> list[NamedConfiguration]:
    candidates = [item for item in configurations.values() if item.role is Role.CANDIDATE]
    if name is None:
        return candidates
    named = [candidate for candidate in candidates if candidate.name == name]
    if not named:
        known = ", ".join(candidate.name for candidate in candidates)
        exists = name in configurations
        template = (
            _(
                "“{name}” cannot be promoted: it is a reference (role: reference), only measured "
                "to compare with. The candidates are: {known}."
            )
            if exists
            else _("“{value}” is not one of the options: {expected}")
        )
        raise InvalidConfigurationError(
            template.format(name=name, value=name, known=known, expected=known), []
        )
    return named


def _serving(
    connection: Connection, configurations: Mapping[str, NamedConfiguration]
) -> NamedConfiguration | None:
    """Return the serving configuration as promoted; before the first promotion, the default."""
    promotion = current_promotion(connection)
    if promotion is None:
        return configurations.get(DEFAULT_CONFIGURATION)
    name = promotion.configuration
    own = configurations.get(name)
    if own and own.retrieval.config_hash == promotion.config_hash:
        return own
    config = parse_retrieval(promotion.config, origin=name)
    return NamedConfiguration(name=name, description=name, retrieval=config)


def _is_of(promotion: Promotion, evaluation: StoredEvaluation) -> bool:
    """Whether an evaluation is of the configuration that was promoted, unedited."""
    return (promotion.configuration, promotion.config_hash) == (
        evaluation.configuration,
        evaluation.config_hash,
    )
