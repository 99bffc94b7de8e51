"""The gates: of each batch of a migration, and of each evaluation.

A run with work reads the gate of its model, a check afterwards sets it; its rule is in
`rag_resources.core.migration_gate`.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import dagster as dg

from rag_assets.keys import GOLDEN_DATASET, embeddings_key, evaluation_key
from rag_assets.metadata import (
    comparison_metadata,
    evaluation_metadata,
    labelled,
    stage_metadata,
    stored_metadata,
)
from rag_assets.partitions import planned_batches, run_months, run_window
from rag_resources.application import Application
from rag_resources.core.answer_metrics import AnswerFigures, Estimate
from rag_resources.core.comparison import HITS
from rag_resources.core.configuration import NamedConfiguration, Role
from rag_resources.core.errors import InvalidGoldenDatasetError
from rag_resources.core.evaluation import Percentiles, StoredEvaluation
from rag_resources.core.gate import GateConfig, GateState
from rag_resources.core.metrics import SERVED
from rag_resources.core.migration_gate import BatchVerdict, serving_with
from rag_resources.evaluation.gates import Gates
from rag_resources.evaluation.runner import as_stored
from rag_resources.evaluation.summary import (
    GATE_WORDS,
    evidence_in_words,
    p_value_in_words,
)
from rag_resources.languages.messages import _
from rag_resources.resources import RagResource

WARN = dg.AssetCheckSeverity.WARN

NOTHING_DELETED = _(
    "nothing was deleted, because the model does not give its known vectors now: look at its "
    "server and repeat the check, or make the month again with “rag model rebuild”"
)


class Gate(NamedTuple):
    """A gate of every evaluation, as its check shows it.

    None is a blocking check: that would fail the whole run, and stop other candidates as well. The
    promotion reads the same verdicts and stops the candidate concerned.

    Attributes:
        name: The name of the check.
        description: What it asks for.
        blocks: Whether the settings let it keep a candidate from serving; otherwise it informs.
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
        """Return the verdict on an evaluation of a configuration; one on a reference informs."""
        state = self.state(gates)
        stops = configuration.role is Role.CANDIDATE and self.blocks(gates.config)
        return dg.AssetCheckEvaluation(
            asset_key=evaluation_key(configuration.name),
            check_name=self.name,
            # What only informs is told by its state and description, and never fails.
            passed=state.allows_promotion or not stops,
            metadata=labelled({"state": GATE_WORDS[state], **self.figures(gates)}),
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
                else _("There is no other evaluation to compare with.")
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
            description=told.description,
        )

    return check


def shown_evaluation(
    application: Application, evaluation: StoredEvaluation, configuration: NamedConfiguration
) -> Iterator[dg.AssetObservation | dg.AssetCheckEvaluation]:
    """Yield the observation of an evaluation and, if it is the latest, what its gates say.

    It is for evaluations that the run of their asset did not make. Not a materialisation: that
    would start what depends on it.
    """
    moment = dg.MetadataValue.timestamp(evaluation.created_at)
    metadata = labelled({**stored_metadata(evaluation), "evaluated_at": moment})
    yield dg.AssetObservation(evaluation_key(configuration.name), metadata=metadata)
    latest = application.evaluations.latest(configuration.name)
    if latest and latest.evaluation_id == evaluation.evaluation_id:
        gates = application.evaluations.gates(evaluation)
        yield from (gate.judge(configuration, gates) for gate in gates_of(configuration))


class BatchQuality(NamedTuple):
    """What was measured after a batch, the latencies by stage, and the verdict."""

    evaluation: StoredEvaluation
    stages: Mapping[str, Percentiles]
    verdict: BatchVerdict


def record_quality(
    context: dg.AssetExecutionContext | dg.AssetCheckExecutionContext, rag: RagResource, model: str
) -> BatchQuality | None:
    """Evaluate the serving configuration with a model after its batch, and set the model's gate.

    A second call in the same run measures again and replaces the verdict.

    Returns:
        None without golden questions, which leaves the gate as it is.
    """
    serving, window = rag.serving.now(), run_window(context.run.tags, rag.settings)
    try:
        config = serving_with(serving.config, model)
        evaluation = rag.evaluations.measure(serving.name, config)
    except InvalidGoldenDatasetError:
        return None
    verdict = rag.migration.record_batch(
        model,
        evaluation,
        run_id=context.run.run_id,
        months=run_months(context.run.tags, rag.settings),
        window=window,
        planned=planned_batches(rag.settings),
        vectors=rag.indexing.verify_vectors(model, window),
    )
    measured, _ = as_stored(evaluation)
    return BatchQuality(measured, evaluation.summary.stages, verdict)


def build_quality_check(model: str) -> dg.AssetChecksDefinition:
    """Build the check of retrieval quality after each batch of a model."""

    @dg.asset_check(
        asset=embeddings_key(model),
        name="retrieval_quality",
        additional_deps=[GOLDEN_DATASET],
        description=_("Quality of retrieval with this model after each batch: a point a run."),
    )
    def retrieval_quality(
        context: dg.AssetCheckExecutionContext, rag: RagResource
    ) -> dg.AssetCheckResult:
        measured = record_quality(context, rag, model)
        if measured is None:
            return dg.AssetCheckResult(
                passed=False,
                severity=WARN,
                description=_(
                    "There are no questions to measure with: materialise golden_dataset."
                ),
            )
        evaluation, stages, batch = measured
        next_batch = (
            _("The next batch may start") if batch.is_open else _("The next batch will not start")
        )
        return dg.AssetCheckResult(
            passed=batch.is_open,
            # An error that does not block: this run is over, and the next one reads the gate.
            severity=WARN if batch.is_open else dg.AssetCheckSeverity.ERROR,
            metadata=labelled(
                {
                    **evaluation_metadata(evaluation),
                    **stage_metadata(stages),
                    "configuration": evaluation.configuration,
                    "config_hash": evaluation.config_hash,
                    "next_batch": next_batch,
                    "level": batch.level,
                    "p_value": p_value_in_words(batch.drop.p_value) if batch.drop else "–",
                    "compared_queries": batch.drop.compared if batch.drop else 0,
                    "baseline_hit_rate_at_10": batch.drop.before if batch.drop else None,
                    "compared_hit_rate_at_10": batch.drop.now if batch.drop else None,
                }
            ),
            description=f"{next_batch}: {batch.reason}.",
        )

    return retrieval_quality
