"""Asks a language model which events of different notes are cause and effect.

Its proposals are stored by `graph.links`, for a person to confirm or refuse.
"""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, Field

from rag_resources.core.causal import Relation
from rag_resources.core.configuration import canonical_hash
from rag_resources.core.deadline import Deadline
from rag_resources.core.errors import (
    DeadlineExceededError,
    InvalidAnswerError,
    ModelMissingError,
    ProviderError,
    ProviderUnavailableError,
)
from rag_resources.core.messages import Message
from rag_resources.database.pool import Database
from rag_resources.graph.language_model import CALL_MS
from rag_resources.graph.links import Judged, Pair, StatedEvent, candidates, record
from rag_resources.languages.prompts import prompt
from rag_resources.providers.call_limit import MAX_CALLS
from rag_resources.providers.inputs import as_data
from rag_resources.providers.protocols import LanguageModel

REVISION = 1
"""Raise this after a change of this module that gives other proposals."""

_REASON_CHARS = 500
"""Most characters of a reason that are kept."""

Progress = Callable[[int], None]


class Direction(StrEnum):
    """Which of two events is the cause."""

    NEITHER = "NONE"
    FIRST = "FIRST"
    SECOND = "SECOND"


class Verdict(BaseModel):
    """What a model says of two events; it gives its reason before it decides."""

    reason: Annotated[str, Field(min_length=1)]
    verdict: Direction
    relation: Relation
    confidence: Annotated[float, Field(ge=0, le=1)]


@dataclass(frozen=True, slots=True)
class ProposingReport:
    """The outcome of asking the model.

    Attributes:
        asked: Pairs that the model was asked about.
        proposed: Pairs that it considers cause and effect.
        failed: Pairs without a usable answer.
    """

    asked: int
    proposed: int
    failed: int


def proposals_version(model: str) -> str:
    """Return the version of a model's proposals: its name, the prompt and this module's."""
    version = {"revision": REVISION, "model": model, "prompt": prompt("graph_links").version}
    return canonical_hash(version)


def propose_links(
    database: Database,
    tenant: str,
    model: LanguageModel,
    *,
    limit: int,
    timeout_ms: float = CALL_MS,
    progress: Progress = lambda _: None,
) -> ProposingReport:
    """Ask a model about pairs of events that it has not judged, and store its judgements.

    No lock is held while the model works. Judgements are stored after every few pairs, so that the
    next run continues where one was interrupted. An unusable answer is stored as "no link", because
    the model would repeat it. A pair that was not judged in time is asked about again by the next
    run.

    Args:
        database: Open.
        tenant: The events' tenant.
        model: Safe to use from several threads.
        limit: Most pairs to ask about.
        timeout_ms: Longest wait for one answer.
        progress: Called with the number of pairs just asked about.

    Raises:
        ProviderError: The model cannot be used, or judged none of several pairs in time.
    """
    version = proposals_version(model.name)
    with database.transaction() as connection:
        pairs = candidates(connection, tenant, version=version, limit=limit)
    asked = proposed = failed = 0
    with ThreadPoolExecutor(MAX_CALLS, thread_name_prefix="links") as threads:
        for start in range(0, len(pairs), MAX_CALLS):
            batch = pairs[start : start + MAX_CALLS]
            answers = list(threads.map(lambda pair: _judged(model, pair, timeout_ms), batch))
            judged = [answer for answer in answers if isinstance(answer, Judged)]
            with database.transaction() as connection:
                record(connection, tenant, judged, model=model.name, version=version)
            _stop_if_hopeless(answers)
            asked += len(batch)
            proposed += sum(answer.cause_id is not None for answer in judged)
            failed += len(batch) - sum(answer.is_usable for answer in judged)
            progress(len(batch))
    return ProposingReport(asked, proposed, failed)


def _judged(
    model: LanguageModel, pair: Pair, timeout_ms: float
) -> Judged | ProviderError | DeadlineExceededError:
    """Return a model's judgement of a pair, or why there is none."""
    first, second = sorted((pair.one, pair.other), key=lambda event: (event.written_at, event.id))
    try:
        said = model.answer(
            f"{_as_data('primero', first)}\n{_as_data('segundo', second)}\n{_task()}",
            Verdict,
            system=prompt("graph_links").system,
            deadline=Deadline.after(timeout_ms, time.monotonic),
        )
    except InvalidAnswerError:
        return Judged(pair, None, None, 0.0, "")
    except (ProviderError, DeadlineExceededError) as error:
        return error
    cause = {Direction.FIRST: first.id, Direction.SECOND: second.id}.get(said.verdict)
    relation = None if cause is None else said.relation
    reason = " ".join(said.reason.split())[:_REASON_CHARS]
    return Judged(pair, cause, relation, said.confidence, reason)


def _stop_if_hopeless(answers: Sequence[Judged | ProviderError | DeadlineExceededError]) -> None:
    """Raise an error if the model is not usable, or judged none of the pairs."""
    errors = [answer for answer in answers if not isinstance(answer, Judged)]
    for error in errors:
        if isinstance(error, ProviderUnavailableError | ModelMissingError):
            raise error
    if len(errors) < len(answers):
        return
    for error in errors:
        if isinstance(error, ProviderError):
            raise error
    raise ProviderUnavailableError(Message.GRAPH_LINKS_LATE.format(count=len(errors)))


def _as_data(place: str, event: StatedEvent) -> str:
    return (
        f'<hecho n="{place}" fecha="{event.written_at:%Y-%m-%d}">\n{as_data(event.name)}\n'
        f"<pasaje>\n{as_data(event.content)}\n</pasaje>\n</hecho>"
    )


def _task() -> str:
    return prompt("graph_links").task
