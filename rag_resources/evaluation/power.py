"""Says how small a difference the golden dataset can detect; the statistics are in `core.power`."""

from collections.abc import Sequence
from dataclasses import replace

from rag_resources.core.errors import InvalidGoldenDatasetError
from rag_resources.core.evaluation import StoredEvaluation
from rag_resources.core.messages import Message
from rag_resources.core.power import GoldenPower, golden_power, observed
from rag_resources.database.pool import Connection
from rag_resources.evaluation.comparison import comparable, query_metrics
from rag_resources.store.comparison import evaluated_questions
from rag_resources.store.evaluations import latest_evaluations
from rag_resources.store.golden import list_golden
from rag_resources.store.promotions import evaluation_of_serving


def read_power(connection: Connection, *, difference: float) -> GoldenPower:
    """Return the power of the golden dataset to tell the evaluated configurations apart.

    The reference is the evaluation of what serves, or else the best one. The latest evaluation of
    each other configuration is compared with it, on the questions that both have.

    Args:
        connection: In a snapshot.
        difference: The difference that the dataset should be able to detect, in (0, 1].

    Raises:
        InvalidGoldenDatasetError: There are no golden questions.
        InvalidParameterError: The difference is out of range.
    """
    queries = len(list_golden(connection))
    if not queries:
        raise InvalidGoldenDatasetError(Message.GOLDEN_EMPTY, [])
    latest = [each for each in latest_evaluations(connection) if not each.is_disturbed]
    best = max(latest, key=lambda evaluation: evaluation.quality, default=None)
    reference = _newest_of_serving(connection, latest) or best
    if reference is None:
        return golden_power(queries, None, {}, difference=difference)
    others = [each for each in latest if each.configuration != reference.configuration]
    ids = {each.evaluation_id for each in (reference, *others)}
    questions = evaluated_questions(connection, ids)
    discordances = {}
    for other in others:
        before, after = comparable(
            questions[reference.evaluation_id], questions[other.evaluation_id]
        )
        discordance = observed(query_metrics(before), query_metrics(after))
        if discordance:
            discordances[other.configuration] = discordance
    found = golden_power(queries, reference.configuration, discordances, difference=difference)
    same = [each.configuration for each in others if each.configuration not in discordances]
    return replace(found, same=tuple(sorted(same)))


def _newest_of_serving(
    connection: Connection, latest: Sequence[StoredEvaluation]
) -> StoredEvaluation | None:
    """Return the evaluation of what serves that the others are compared with, if there is one."""
    serving = evaluation_of_serving(connection)
    if serving is None:
        return None
    others = {each.config_hash for each in latest} - {serving.config_hash}
    if not others:
        return serving
    return evaluation_of_serving(connection, compared_hash=min(others))
