"""What a user is told of a retrieval in which something failed. Property 36.

What else can be read of it, in `degraded` and in the log, is `retrieval.stages`.
"""

from collections.abc import Collection, Mapping

from rag_resources.core.configuration import Strategy
from rag_resources.core.errors import (
    DatabaseTimeoutError,
    DeadlineExceededError,
    ModelMissingError,
)
from rag_resources.core.messages import Message
from rag_resources.retrieval.searching import Half

_UNAVAILABLE = {
    Half.SEMANTIC: Message.SEMANTIC_UNAVAILABLE,
    Half.FULLTEXT: Message.FULLTEXT_UNAVAILABLE,
}
# Without them something is not found; the other stages only change the order or what is shown.
_SEARCHING = ("embed", *Half)


def messages(
    strategy: Strategy,
    worked: Collection[Half],
    error: str | None,
    failures: Mapping[str, BaseException],
) -> tuple[str, ...]:
    """Say in Spanish what is missing and why, and what can be done about it.

    Args:
        strategy: What was asked for.
        worked: The searches that answered.
        error: Why none did.
        failures: The first error of each stage that failed.
    """
    told = [
        failure.message for failure in failures.values() if isinstance(failure, ModelMissingError)
    ]
    if error:
        return (error, *told)
    missing = [half for half in Half if half.belongs_to(strategy) and half not in worked]
    if missing:
        told.insert(0, _UNAVAILABLE[missing[0]])
    if any(
        isinstance(failures.get(stage), DeadlineExceededError | DatabaseTimeoutError)
        for stage in _SEARCHING
    ):
        told.append(Message.PARTIAL_RESULTS)
    return tuple(told)
