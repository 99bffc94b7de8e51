"""The verdicts of an evaluation's gates; checks, tables and messages are made from them.

How a hit rate is judged is in `core.gate`, how two are compared in `core.comparison`. Whether a
configuration may serve also depends on what happened since; that is `serving.promotion`.
"""

from dataclasses import dataclass
from datetime import UTC
from typing import NamedTuple

from rag_resources.core.answer_metrics import Estimate
from rag_resources.core.comparison import HITS, Inferiority, NonInferiority
from rag_resources.core.configuration import usable_retrieval
from rag_resources.core.evaluation import StoredEvaluation, judge_stored
from rag_resources.core.evidence import Evidence, EvidenceState, SearchSettings
from rag_resources.core.gate import GateConfig, GateState, GateVerdict, Interval, judge_share
from rag_resources.core.graph_gate import MULTI, SINGLE, GraphVerdict, judge_graph
from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries
from rag_resources.evaluation.comparison import (
    EvaluationComparison,
    compare_with_serving,
    query_metrics,
)
from rag_resources.evaluation.evidence import read_evidence
from rag_resources.evaluation.summary import (
    citations_in_words,
    evidence_in_words,
    gate_in_words,
    inferiority_in_words,
    silence_in_words,
)
from rag_resources.languages.messages import _, joined
from rag_resources.store.comparison import Questions, evaluated_questions
from rag_resources.store.evaluations import list_evaluations
from rag_resources.store.golden import list_golden

FEW_NOTES = 200
"""With fewer, ten results are more than a twentieth of all notes, so that chance finds many."""


class AmongFew(NamedTuple):
    """How an evaluation did among the first twentieth of few notes."""

    notes: int
    cutoff: int
    hits: int
    queries: int


@dataclass(frozen=True, slots=True)
class Against:
    """How an evaluation compares with the serving configuration.

    Attributes:
        found: The two, the one that serves first.
        margin: Share of questions by which a hit rate may be lower.
        outdated: Why the figures of what serves are stale, in Spanish; None if they are not, or if
            what serves is compared with its own past.
    """

    found: EvaluationComparison
    margin: float
    outdated: str | None = None

    @property
    def name(self) -> str:
        """The serving configuration's name."""
        return self.found.before.configuration

    @property
    def compared(self) -> dict[str, NonInferiority]:
        """Both hit rates, judged, by metric."""
        return self.found.inferiorities(self.margin)

    @property
    def state(self) -> GateState:
        """Failed if one metric is worse; inconclusive if that is undecided for one."""
        if self.outdated:
            return GateState.INCONCLUSIVE
        states = {item.state for item in self.compared.values()}
        if Inferiority.INFERIOR in states:
            return GateState.FAIL
        return GateState.INCONCLUSIVE if Inferiority.UNDECIDED in states else GateState.PASS

    @property
    def losses(self) -> list[str]:
        """Say in Spanish by how much each hit rate is worse."""
        return [
            inferiority_in_words(item, metric)
            for metric, item in self.compared.items()
            if item.state is Inferiority.INFERIOR
        ]

    @property
    def in_words(self) -> str:
        """Say in Spanish what it is compared with, and with which result for each metric."""
        if self.outdated:
            return _("For now it {reason}.").format(reason=self.outdated)
        hits = self.found.hits(HITS)
        counted = _("Among the first ten, questions lost: {lost}; gained: {gained}.").format(
            lost=hits.lost, gained=hits.gained
        )
        said = [inferiority_in_words(item, metric) for metric, item in self.compared.items()]
        return _("Against “{name}” of {moment:%Y-%m-%d %H:%M} UTC, which serves: {verdict}").format(
            name=self.name,
            moment=self.found.before.created_at.astimezone(UTC),
            verdict=joined(" ", [counted, *said]),
        )


@dataclass(frozen=True, slots=True)
class Gates:
    """The verdict of each gate on one evaluation.

    Attributes:
        evaluation: What is judged.
        config: What it must reach.
        against: The comparison with what serves; None if there is nothing to compare with.
        evidence: Whether the evaluation still stands for what it measured.
        graph: How the causal graph changed the results; None if no graph is searched.
        few: The hits among a twentieth of the notes; None if these are not few.
    """

    evaluation: StoredEvaluation
    config: GateConfig
    against: Against | None
    evidence: Evidence
    graph: GraphVerdict | None = None
    few: AmongFew | None = None

    @property
    def hit_rate(self) -> GateVerdict:
        """Hit_Rate@10 against the threshold."""
        return judge_stored(self.evaluation, self.config)

    @property
    def latency(self) -> GateState:
        """Whether the p95 latency is under its limit."""
        if self.evaluation.is_disturbed:
            return GateState.DISTURBED
        under = self.evaluation.latency_p95_ms < self.config.latency_p95_ms
        return GateState.PASS if under else GateState.FAIL

    @property
    def citations(self) -> GateState:
        """Whether enough of an answer's citations are right."""
        found = self.evaluation.answers and self.evaluation.answers.citation_precision
        return self._of_answers(found or None, self.config.citation_precision)

    @property
    def silence(self) -> GateState:
        """Whether few enough questions are answered while their notes are hidden."""
        found = self.evaluation.answers and self.evaluation.answers.false_answers
        kept = (
            Estimate(mean=1 - found.mean, low=1 - found.high, high=1 - found.low) if found else None
        )
        return self._of_answers(kept, 1 - self.config.false_answers)

    def _of_answers(self, share: Estimate | None, lowest: float) -> GateState:
        if self.evaluation.is_disturbed:
            return GateState.DISTURBED
        if share is None:
            return GateState.INCONCLUSIVE
        return judge_share(share.mean, Interval(share.low, share.high), lowest=lowest)

    @property
    def citations_in_words(self) -> str:
        """Say in Spanish how many of the citations are right."""
        return citations_in_words(self.evaluation.answers, self.config)

    @property
    def silence_in_words(self) -> str:
        """Say in Spanish how often an answer is false or missing."""
        return silence_in_words(self.evaluation.answers, self.config)

    @property
    def regression(self) -> GateState:
        """Whether it is worse than what serves."""
        if self.evaluation.is_disturbed:
            return GateState.DISTURBED
        return self.against.state if self.against else GateState.PASS

    @property
    def disturbance(self) -> str | None:
        """Say in Spanish why nothing can be concluded; None if every question was asked in full."""
        if not self.evaluation.is_disturbed:
            return None
        return _(
            "the evaluation was disturbed: questions that lacked a stage, also when repeated: "
            "{count}; it decides nothing. If windows or vectors of its model are missing, “rag "
            "run” makes them; otherwise evaluate again"
        ).format(count=self.evaluation.degraded_queries)

    @property
    def description(self) -> str:
        """Explain in Spanish the verdict on Hit_Rate@10; says if its figures are old or easy."""
        said = gate_in_words(self.hit_rate, self.evaluation.total_queries)
        if self.few:
            easy = _(
                "Ten results are a large part of {notes} notes. Among the first {cutoff} (5 % of "
                "the notes): Hit_Rate@{cutoff} = {hit_rate:.3f}"
            ).format(
                notes=self.few.notes,
                cutoff=self.few.cutoff,
                hit_rate=self.few.hits / self.few.queries,
            )
            said = joined(". ", [said, easy])
        if self.evidence.is_current:
            return said
        return _("Evaluation {evidence}. Then: {verdict}").format(
            evidence=evidence_in_words(self.evidence), verdict=said
        )

    @property
    def staleness(self) -> str | None:
        """Say in Spanish why the figures are stale; None if they are not."""
        if self.evidence.state is not EvidenceState.STALE:
            return None
        return _("its last evaluation is stale: {reasons}").format(
            reasons=self.evidence.explanation
        )

    @property
    def shortfall(self) -> str | None:
        """Say in Spanish which blocking threshold is not reached; None if all are."""
        gate, own = self.config, self.evaluation
        rate, limit = self.hit_rate.hit_rate, self.hit_rate.threshold
        p95 = f"p95 = {own.latency_p95_ms:.0f} ms ≥ {gate.latency_p95_ms:.0f} ms"
        conditions = (
            (True, self.hit_rate.state, f"Hit_Rate@10 = {rate:.3f} < {limit:g}"),
            (True, self.latency, p95),
            (gate.citations_block, self.citations, self.citations_in_words),
            (gate.false_answers_block, self.silence, self.silence_in_words),
        )
        for blocks, state, reason in conditions:
            if blocks and state is GateState.FAIL:
                return _("it does not pass the gate, {reason}").format(reason=reason)
        return None

    @property
    def loss(self) -> str | None:
        """Say in Spanish how it is worse than what serves; None if it is not."""
        if self.against is None or self.regression is not GateState.FAIL:
            return None
        return _("it is worse than “{name}”, which serves: {verdict}").format(
            name=self.against.name, verdict=" ".join(self.against.losses)
        )

    @property
    def incomparable(self) -> str | None:
        """Say in Spanish why it cannot be compared with what serves."""
        return self.against.outdated if self.against else None

    @property
    def graph_loss(self) -> str | None:
        """Say in Spanish why the graph does not improve the results; None if it does."""
        if self.graph is None or self.graph.reason is None:
            return None
        return _("it does not pass the gate of the graph: {reason}").format(
            reason=self.graph.reason
        )

    @property
    def obstacle(self) -> str | None:
        """Say in Spanish which gate keeps it from serving; None if it passes them all."""
        return (
            self.disturbance or self.shortfall or self.loss or self.incomparable or self.graph_loss
        )


def read_gates(
    connection: Connection,
    evaluation: StoredEvaluation,
    gate: GateConfig,
    evidence: Evidence,
    settings: SearchSettings,
    asked: Questions | None = None,
) -> Gates:
    """Judge an evaluation by every gate, against what serves now.

    Args:
        connection: Any, after `store.contents.count_contents`.
        evaluation: To judge.
        gate: The thresholds.
        evidence: Whether the evaluation is current, aged or stale.
        settings: The present ones.
        asked: The evaluation's questions if it is not stored.
    """
    compared = compare_with_serving(connection, evaluation, asked)
    few = queries().judged_among_few(
        connection, evaluation_id=evaluation.evaluation_id, few=FEW_NOTES
    )
    against = (
        Against(
            compared,
            gate.margin,
            outdated_reference(connection, compared.before, evaluation, gate, settings),
        )
        if compared
        else None
    )
    return Gates(
        evaluation,
        gate,
        against,
        evidence,
        read_graph_verdict(connection, evaluation, gate, settings, asked),
        AmongFew(*few) if few else None,
    )


def outdated_reference(
    connection: Connection,
    serving: StoredEvaluation,
    evaluation: StoredEvaluation,
    gate: GateConfig,
    settings: SearchSettings,
) -> str | None:
    """Say in Spanish why another configuration cannot be compared with what serves.

    What serves is compared with its own past on purpose: else its quality could drift.

    Args:
        connection: Any, after `store.contents.count_contents`.
        serving: The evaluation that stands for what serves.
        evaluation: The one to compare with it.
        gate: How much may have changed since.
        settings: The present ones.

    Returns:
        None if it can be.
    """
    if serving.config_hash == evaluation.config_hash:
        return None
    # If it cannot be used any more, it cannot be measured again either.
    config = usable_retrieval(serving.config, origin=serving.configuration)
    evidence = read_evidence(connection, serving, config, settings=settings)
    if evidence.state is not EvidenceState.STALE:
        return None
    return _(
        "cannot be compared with “{name}”, which serves, because the figures of that "
        "configuration are stale ({reasons}); a promotion (“rag promote”) measures them again "
        "before it decides"
    ).format(name=serving.configuration, reasons=evidence.explanation)


def read_graph_verdict(
    connection: Connection,
    evaluation: StoredEvaluation,
    gate: GateConfig,
    settings: SearchSettings,
    asked: Questions | None = None,
) -> GraphVerdict | None:
    """Judge an evaluation against the newest one of the same configuration without the graph.

    Args:
        connection: Any, after `store.contents.count_contents`.
        evaluation: To judge.
        gate: How much may be lost, and may have changed.
        settings: The present ones.
        asked: The evaluation's questions if it is not stored.

    Returns:
        None if its configuration does not search the graph.
    """
    config = usable_retrieval(evaluation.config, origin=evaluation.configuration)
    if config is None or not config.searches_graph:  # Unusable, it cannot be promoted either.
        return None
    without = config.without_graph
    found = list_evaluations(connection, config_hash=without.config_hash, limit=1)
    if not found or found[0].is_disturbed or found[0].golden_hash != evaluation.golden_hash:
        return GraphVerdict(
            reason=_(
                "there is nothing to compare the graph with: first evaluate, with the same "
                "questions, the same configuration with graph.enabled: false"
            ).format()
        )
    evidence = read_evidence(connection, found[0], without, settings=settings)
    if evidence.is_stale:
        return GraphVerdict(
            reason=_(
                "the evaluation without the graph (“{name}”) no longer holds, evaluate it again: "
                "{reasons}"
            ).format(name=found[0].configuration, reasons=evidence.explanation)
        )
    ids = (found[0].evaluation_id, evaluation.evaluation_id)
    questions = evaluated_questions(connection, ids)
    tags = {entry.golden_id: set(entry.tags) for entry in list_golden(connection)}
    single, multi = (
        {key for key, own in tags.items() if key is not None and tag in own}
        for tag in (SINGLE, MULTI)
    )
    return judge_graph(
        query_metrics(questions[ids[0]]),
        query_metrics(questions[ids[1]] if asked is None else asked),
        single=single,
        multi=multi,
        margin=gate.margin,
    )
