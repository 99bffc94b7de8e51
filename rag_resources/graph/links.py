"""Links between events of different notes: proposals of a language model, and people's decisions.

Search follows only confirmed links; a proposal waits for a person. Asking the model is in
`graph.proposing`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from rag_resources.core.causal import Relation
from rag_resources.core.errors import InvalidParameterError
from rag_resources.core.mentions import EntityKind
from rag_resources.core.messages import Message
from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries
from rag_resources.graph.people import Entity, find_entity

MOST_EVENTS = 40
"""A word or name that more events than this share is not rare, and makes no candidates."""

MOST_PAIRS = 5
"""Most candidates of an event."""

_WORK_MEMORY = "64MB"


@dataclass(frozen=True, slots=True)
class StatedEvent:
    """An event with the passage that states it.

    Attributes:
        written_at: When its note was made.
    """

    id: UUID
    name: str
    chunk_id: UUID
    content: str
    written_at: datetime


@dataclass(frozen=True, slots=True)
class Pair:
    """Two events of different notes, of which one may be the cause of the other."""

    one: StatedEvent
    other: StatedEvent


@dataclass(frozen=True, slots=True)
class Judged:
    """A language model's judgement of a pair.

    Attributes:
        cause_id: Id of the event that is the cause of the other one; None if neither is.
        relation: None if neither is.
        confidence: In [0, 1], as the model says.
        reason: In the words of the model; empty if its answer could not be used.
    """

    pair: Pair
    cause_id: UUID | None
    relation: Relation | None
    confidence: float
    reason: str

    @property
    def is_usable(self) -> bool:
        """Whether the model's answer could be used."""
        return bool(self.reason)


@dataclass(frozen=True, slots=True)
class Proposal:
    """A link that a language model proposes and nobody has decided on."""

    cause_id: UUID
    cause: str
    cause_note: str
    cause_chunk_id: UUID
    cause_content: str
    effect_id: UUID
    effect: str
    effect_note: str
    effect_chunk_id: UUID
    effect_content: str
    relation: str
    confidence: float
    reason: str
    model: str
    version: str
    judged_at: datetime


def candidates(connection: Connection, tenant: str, *, version: str, limit: int) -> list[Pair]:
    """Return pairs that a model was not asked about yet; those that share most come first.

    Args:
        connection: To the database.
        tenant: The events' tenant.
        version: The judge's version; pairs judged by another version are candidates again.
        limit: Most pairs.
    """
    # Words and names of all events are counted; the default work_mem would spill them to disk.
    queries().set_transaction(connection, name="work_mem", value=_WORK_MEMORY)
    rows = queries().list_link_candidates(
        connection,
        tenant=tenant,
        version=version,
        most_events=MOST_EVENTS,
        most_pairs=MOST_PAIRS,
        row_limit=limit,
    )
    return [Pair(StatedEvent(*row[:5]), StatedEvent(*row[5:])) for row in rows]


def record(
    connection: Connection, tenant: str, judged: Sequence[Judged], *, model: str, version: str
) -> None:
    """Store a model's judgements of pairs; pairs whose events or passages are gone are left out."""
    for item in judged:
        queries().record_link_proposal(
            connection,
            tenant=tenant,
            one_id=item.pair.one.id,
            other_id=item.pair.other.id,
            one_chunk_id=item.pair.one.chunk_id,
            other_chunk_id=item.pair.other.chunk_id,
            cause_id=item.cause_id,
            type=item.relation,
            confidence=item.confidence,
            reason=item.reason,
            model=model,
            version=version,
        )


def proposals(connection: Connection, tenant: str, *, limit: int) -> list[Proposal]:
    """Return the links that wait for a person, those of highest confidence first."""
    rows = queries().list_link_proposals(connection, tenant=tenant, row_limit=limit)
    return [Proposal(*row) for row in rows]


def decide_link(
    connection: Connection,
    tenant: str,
    cause: str,
    effect: str,
    relation: Relation,
    *,
    confirmed: bool = True,
) -> tuple[Entity, Entity]:
    """Record that an event is, or is not, the cause of another one, whichever notes they are in.

    Raises:
        InvalidParameterError: One is unknown or no event, or both are the same.
    """
    one, other = (find_entity(connection, tenant, name) for name in (cause, effect))
    if one.id == other.id or {one.kind, other.kind} != {EntityKind.EVENT}:
        raise InvalidParameterError(Message.GRAPH_LINK_REFUSED)
    queries().decide_link(
        connection,
        tenant=tenant,
        source_id=one.id,
        target_id=other.id,
        type=relation.value,
        state="confirmed" if confirmed else "rejected",
    )
    return one, other


def withdraw_link(connection: Connection, tenant: str, cause: str, effect: str) -> bool:
    """Withdraw a decision about two events; False if there was none."""
    one, other = (find_entity(connection, tenant, name) for name in (cause, effect))
    found = queries().withdraw_link(connection, tenant=tenant, source_id=one.id, target_id=other.id)
    return found is not None
