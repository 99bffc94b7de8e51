"""Reads the data of the evaluation report in one database snapshot.

Its size is bounded: the best configurations, the newest evaluations, the first questions.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import combinations
from uuid import UUID

from rag_resources.core.attribution import EvaluatedQuestion, flips
from rag_resources.core.comparison import compare_pairs, hit_changes
from rag_resources.core.configuration import NamedConfiguration
from rag_resources.core.counterfactuals import Attribution
from rag_resources.core.evaluation import StoredEvaluation
from rag_resources.core.evidence import Evidence, SearchSettings
from rag_resources.core.gate import GateConfig, GateState
from rag_resources.core.messages import Message
from rag_resources.core.metrics import SERVED
from rag_resources.database.pool import Database
from rag_resources.evaluation.comparison import comparable, query_metrics
from rag_resources.evaluation.evidence import EvidenceReader
from rag_resources.evaluation.gates import Against, Gates, judge_gates, outdated_reference, own_past
from rag_resources.evaluation.graph_gate import read_graph_verdict
from rag_resources.reporting.data import (
    SHOWN_HISTORY,
    SHOWN_NEWCOMERS,
    SHOWN_UNFOUND,
    ComparisonMatrix,
    Contrast,
    EvaluationReport,
    ReportedConfiguration,
)
from rag_resources.serving.promotion import refusal
from rag_resources.store.comparison import Questions, evaluated_questions
from rag_resources.store.contents import count_contents
from rag_resources.store.evaluations import fetch_evaluation
from rag_resources.store.migration import list_batches
from rag_resources.store.promotions import Promotion, evaluation_of_serving, list_promotions
from rag_resources.store.report import evaluation_details, history_of, note_openings
from rag_resources.store.status import read_status

Attribute = Callable[[StoredEvaluation, StoredEvaluation], Attribution]

LEADING = 12
"""Configurations that are drawn and compared; nobody reads more lines or columns."""
HISTORY = 500
EVENTS = 50


def read_report(
    database: Database,
    configurations: Mapping[str, NamedConfiguration],
    *,
    gate: GateConfig | None = None,
    settings: SearchSettings | None = None,
    attribute: Attribute | None = None,
) -> EvaluationReport:
    """Read everything in one snapshot with about a dozen statements, then compare.

    Args:
        database: Open.
        configurations: All present configurations, by name.
        gate: What a configuration must reach; None uses the defaults.
        settings: The settings that searches use; None is the defaults.
        attribute: Finds the causes of an evaluation's losses; called after the snapshot for
            evaluations that are worse than what serves. None leaves that out.
    """
    gate, settings = gate or GateConfig(), settings or SearchSettings()
    with database.transaction() as connection:
        count_contents(connection)
    with database.snapshot() as connection:
        status = read_status(connection)
        ordered = sorted(status.evaluations, key=_best_first)
        leading = _leading(ordered, status.promotion)
        history = history_of(connection, [item.configuration for item in leading], limit=HISTORY)
        references = {
            item.config_hash: evaluation_of_serving(connection, compared_hash=item.config_hash)
            for item in leading
        }
        befores = _befores(leading, history, references)
        questions = evaluated_questions(
            connection, {item.evaluation_id for item in (*leading, *befores.values())}
        )
        contrasts = _contrasts(leading, befores, questions)
        evidence_reader = EvidenceReader(connection, gate, settings)

        def evidence_of(item: StoredEvaluation) -> Evidence:
            named = configurations.get(item.configuration)
            return evidence_reader.judge(item, named.retrieval if named else None)

        def against(item: StoredEvaluation) -> Against | None:
            reference = references.get(item.config_hash)
            outdated = (
                outdated_reference(connection, reference, item, gate, settings)
                if reference
                else None
            )
            past = own_past(reference, item) if reference else None
            return _against(contrasts.get(item.evaluation_id), reference, gate, outdated, past)

        def judged(item: StoredEvaluation) -> Gates:
            graph = read_graph_verdict(connection, item, gate, settings)
            return judge_gates(item, gate, against(item), evidence_of(item), graph)

        gates = {item.evaluation_id: judged(item) for item in ordered}

        def refused(item: StoredEvaluation) -> str | None:
            named = configurations.get(item.configuration)
            if named is None:
                return Message.REPORT_CONFIGURATION_GONE
            return refusal(connection, named, gates[item.evaluation_id], by_itself=True)

        details = evaluation_details(connection, [item.evaluation_id for item in ordered])
        reported = tuple(
            ReportedConfiguration(
                evaluation=item,
                detail=details[item.evaluation_id],
                named=configurations.get(item.configuration),
                gates=gates[item.evaluation_id],
                refusal=refused(item),
                has_questions=bool(questions.get(item.evaluation_id)),
                contrast=contrasts.get(item.evaluation_id),
                found_in_vain=_found_in_vain(questions.get(item.evaluation_id, {})),
            )
            for item in ordered
        )
        compared = _asked_the_same(leading, questions)
        unfound = _unfound(compared.values())
        notes = note_openings(connection, _mentioned(contrasts.values(), unfound))
        promotions = list_promotions(connection, limit=EVENTS)
        batches = list_batches(connection, limit=EVENTS)
        promoted = (fetch_evaluation(connection, key) for key in _named_by(promotions))
        quoted = {
            item.evaluation_id: item
            for item in (*history[-SHOWN_HISTORY:], *promoted)
            if item is not None
        }
        evidence = {key: evidence_of(item) for key, item in quoted.items()}
    if attribute:
        reported = tuple(_with_causes(item, attribute) for item in reported)
    names = {item.configuration for item in leading}
    return EvaluationReport(
        read_at=datetime.now(UTC),
        status=status,
        golden=status.present.golden_hash,
        gate=gate,
        configurations=reported,
        leading=tuple(item for item in reported if item.name in names),
        history=tuple(history),
        evidence=evidence,
        promotions=tuple(promotions),
        batches=tuple(batches),
        matrix=_matrix(compared, unfound),
        notes=notes,
    )


def _named_by(promotions: Iterable[Promotion]) -> set[UUID]:
    return {item.evaluation_id for item in promotions if item.evaluation_id}


def _with_causes(item: ReportedConfiguration, attribute: Attribute) -> ReportedConfiguration:
    if item.contrast is None or item.gates.regression is not GateState.FAIL:
        return item
    return replace(item, causes=attribute(item.contrast.before, item.evaluation))


def _against(
    contrast: Contrast | None,
    serving: StoredEvaluation | None,
    gate: GateConfig,
    outdated: str | None,
    past: StoredEvaluation | None,
) -> Against | None:
    """Return the comparison with the serving configuration; None if it is with another one."""
    if contrast is None or serving is None:
        return None
    if contrast.before.evaluation_id != serving.evaluation_id:
        return None
    return Against(
        contrast.before.configuration,
        contrast.inferiority(gate.margin),
        contrast.served_inferiority(gate.margin),
        outdated,
        past,
    )


def _best_first(evaluation: StoredEvaluation) -> tuple[float, float, str]:
    return -evaluation.hit_rate_at_10, -evaluation.mrr, evaluation.configuration


def _leading(
    ordered: Sequence[StoredEvaluation], promotion: Promotion | None
) -> list[StoredEvaluation]:
    """Return the best evaluations; if the serving one is missing, it replaces the last."""
    serving = [
        item
        for item in ordered[LEADING:]
        if promotion and item.configuration == promotion.configuration
    ]
    return [*ordered[: LEADING - len(serving)], *serving]


def _befores(
    leading: Sequence[StoredEvaluation],
    history: Sequence[StoredEvaluation],
    references: Mapping[str, StoredEvaluation | None],
) -> dict[UUID, StoredEvaluation]:
    """Return what each is compared with, by id: what serves, or else its own predecessor.

    Disturbed evaluations are compared with nothing.
    """
    befores = {}
    for item in leading:
        if item.is_disturbed:
            continue
        before = references[item.config_hash]
        if before is None or before.evaluation_id == item.evaluation_id:
            own = [
                each
                for each in history
                if each.configuration == item.configuration
                and each.evaluation_id != item.evaluation_id
                and not each.is_disturbed
            ]
            before = own[-1] if own else None
        if before:
            befores[item.evaluation_id] = before
    return befores


def _contrasts(
    leading: Sequence[StoredEvaluation],
    befores: Mapping[UUID, StoredEvaluation],
    questions: Mapping[UUID, Questions],
) -> dict[UUID, Contrast]:
    """Compare evaluations with earlier ones that have stored questions in common with them."""
    found = {}
    for key, before in befores.items():
        known, asked = questions[before.evaluation_id], questions[key]
        first, second = comparable(known, asked)
        common = len(first.keys() & second.keys())
        if common:
            left_out = len(known.keys() | asked.keys()) - common
            served = hit_changes(query_metrics(first), query_metrics(second), SERVED)
            found[key] = Contrast(before, common, left_out, tuple(flips(first, second)), served)
    return found


def _asked_the_same(
    leading: Sequence[StoredEvaluation], questions: Mapping[UUID, Questions]
) -> dict[str, Questions]:
    """Return the questions by configuration, of those with the newest golden dataset only."""
    there = [item for item in leading if questions[item.evaluation_id] and not item.is_disturbed]
    if not there:
        return {}
    newest = max(there, key=lambda item: item.created_at)
    return {
        item.configuration: questions[item.evaluation_id]
        for item in there
        if item.golden_hash == newest.golden_hash
    }


def _unfound(compared: Iterable[Questions]) -> tuple[EvaluatedQuestion, ...]:
    """Return the questions that no configuration found, ordered by text."""
    asked = list(compared)
    missed = [
        question
        for key, question in (asked[0] if asked else {}).items()
        if all(key in other and other[key].rank is None for other in asked)
    ]
    return tuple(sorted(missed, key=lambda question: (question.query, question.golden_id)))


def _found_in_vain(asked: Questions) -> tuple[EvaluatedQuestion, ...]:
    """Return the questions found among the first ten but not for a user, ties by text."""
    found = (question for question in asked.values() if question.is_found_in_vain)
    return tuple(sorted(found, key=lambda each: (each.rank or 0, each.query, each.golden_id)))


def _mentioned(contrasts: Iterable[Contrast], unfound: Sequence[EvaluatedQuestion]) -> set[UUID]:
    """Return the notes that the shown questions mention."""
    found = {note for question in unfound[:SHOWN_UNFOUND] for note in question.relevant}
    for contrast in contrasts:
        for flip in contrast.shown:
            found.update(flip.after.relevant, flip.newcomers[:SHOWN_NEWCOMERS])
    return found


def _matrix(
    compared: Mapping[str, Questions], unfound: tuple[EvaluatedQuestion, ...]
) -> ComparisonMatrix:
    names = tuple(compared)
    pairs = list(combinations(names, 2))
    metrics = {name: query_metrics(asked) for name, asked in compared.items()}
    found = compare_pairs([(metrics[before], metrics[after]) for before, after in pairs])
    queries = len(compared[names[0]]) if names else 0
    return ComparisonMatrix(names, queries, dict(zip(pairs, found, strict=True)), unfound)
