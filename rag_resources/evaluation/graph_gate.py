"""Judges a configuration with the causal graph against the same without it; see `core.graph_gate`.

This module reads the figures; the rule is in the core.
"""

from rag_resources.core.configuration import usable_retrieval
from rag_resources.core.evaluation import StoredEvaluation
from rag_resources.core.evidence import SearchSettings
from rag_resources.core.gate import GateConfig
from rag_resources.core.graph_gate import MULTI, SINGLE, GraphVerdict, judge_graph
from rag_resources.core.messages import Message
from rag_resources.database.pool import Connection
from rag_resources.evaluation.comparison import query_metrics
from rag_resources.evaluation.evidence import read_evidence
from rag_resources.store.comparison import Questions, evaluated_questions
from rag_resources.store.evaluations import list_evaluations
from rag_resources.store.golden import list_golden


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
        return GraphVerdict(reason=Message.GRAPH_WITHOUT_REFERENCE.format())
    evidence = read_evidence(connection, found[0], without, gate=gate, settings=settings)
    if evidence.is_stale:
        return GraphVerdict(
            reason=Message.GRAPH_REFERENCE_STALE.format(
                name=found[0].configuration, reasons=evidence.explanation
            )
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
