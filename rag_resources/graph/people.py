"""The graph for people: neighbourhoods to look at; aliases and reviews to decide.

Links between notes are in `graph.links`.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import date, datetime
from statistics import median
from uuid import UUID

from rag_resources.core.errors import InvalidParameterError
from rag_resources.core.gate import Interval, wilson_interval
from rag_resources.core.mentions import EntityKind, alike, lookup_keys
from rag_resources.core.messages import Message
from rag_resources.core.quoting import shown
from rag_resources.core.texts import Text
from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries
from rag_resources.store.ranked_lists import HUB_CAP

MOST_LONELY = 0.9
"""Share of names that occur in a single note, above which the graph is too sparse to be useful."""
ODD_FACTOR = 3.0
"""A month is odd if it has this many times more, or fewer, mentions per note than the median."""
FEWEST_NOTES = 5
"""A month of fewer notes is not compared with the others: its mean is chance."""


@dataclass(frozen=True, slots=True)
class Entity:
    """An entity with the name that people know it by."""

    id: UUID
    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class NamedIn:
    """A note that names an entity, and how often."""

    note: str
    title: str
    created_at: datetime
    mentions: int


@dataclass(frozen=True, slots=True)
class Statement:
    """A cause and its effect; `marker` is empty for a link that a person confirmed."""

    cause_id: UUID
    cause: str
    relation: str
    effect_id: UUID
    effect: str
    marker: str


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """What surrounds an entity.

    Attributes:
        company: Names of the entities that share most chunks with it, with the number of chunks.
    """

    entity: Entity
    notes: Sequence[NamedIn]
    company: Sequence[tuple[str, int]]
    statements: Sequence[Statement]


@dataclass(frozen=True, slots=True)
class ToReview:
    """A statement that nobody has judged yet, with the text that says it."""

    id: UUID
    note_id: UUID
    note: str
    cause: str
    relation: str
    marker: str
    effect: str
    content: str


@dataclass(frozen=True, slots=True)
class Precision:
    """How many of the judged statements were right; the Wilson interval if any were judged."""

    judged: int
    good: int
    interval: Interval | None

    @property
    def in_words(self) -> Text:
        """The same in a sentence."""
        if self.interval is None:
            return Message.GRAPH_UNJUDGED
        return Message.GRAPH_PRECISION.format(
            good=self.good, judged=self.judged, low=self.interval.low, high=self.interval.high
        )


@dataclass(frozen=True, slots=True)
class Shape:
    """What the graph of a tenant looks like; see the query `graph_shape`."""

    names: int
    lonely: int
    hubs: int
    widest_name: str | None
    widest: int
    mentions: int
    events: int
    statements: int
    links: int
    aliases: int
    proposals: int

    @property
    def orphan_share(self) -> float:
        """Share of the names that occur in only one note, and so connect nothing."""
        return self.lonely / self.names if self.names else 0.0


@dataclass(frozen=True, slots=True)
class MonthGrowth:
    """What a month's notes added to the graph."""

    month: date
    notes: int
    mentions: int
    statements: int


@dataclass(frozen=True, slots=True)
class Overview:
    """The whole graph, for people.

    Attributes:
        months: Oldest first.
        widest: The neighbourhood of the name that occurs in most notes; None without names.
    """

    shape: Shape
    precision: Precision
    months: Sequence[MonthGrowth]
    widest: Neighbourhood | None

    @property
    def is_empty(self) -> bool:
        """Whether the graph has nothing in it."""
        return not self.shape.names and not self.shape.statements

    @property
    def problems(self) -> list[Text]:
        """What is odd about it, in sentences."""
        rates = {
            item.month: item.mentions / item.notes
            for item in self.months
            if item.notes >= FEWEST_NOTES
        }
        usual = median(rates.values()) if rates else 0.0
        odd = [
            f"{month:%Y-%m}"
            for month, rate in rates.items()
            if usual and not usual / ODD_FACTOR <= rate <= usual * ODD_FACTOR
        ]
        found = []
        if odd:
            found.append(Message.GRAPH_ODD_MONTHS.format(months=", ".join(odd)))
        if self.shape.orphan_share > MOST_LONELY:
            found.append(Message.GRAPH_LONELY.format(share=self.shape.orphan_share))
        return found

    @property
    def in_words(self) -> Text:
        """The size of the graph, and how well it connects notes, in a sentence."""
        shape = self.shape
        if not (shape.mentions or shape.events):
            return Message.GRAPH_EMPTY.format()
        counts = {**asdict(shape), "widest_name": shape.widest_name or "–"}
        return Message.GRAPH_STATUS.format(**counts, orphan_share=shape.orphan_share)


@dataclass(frozen=True, slots=True)
class Suggestion:
    """Two names that may be one, with how many notes name each."""

    alias: Entity
    entity: Entity
    alias_notes: int
    entity_notes: int


def find_entity(connection: Connection, tenant: str, name: str) -> Entity:
    """Return the entity with a name, tag, date or id, looked up in this order.

    Raises:
        InvalidParameterError: There is none.
    """
    try:
        wanted: UUID | None = UUID(name)
    except ValueError:
        wanted = None
    keys = lookup_keys(name)
    rows = list(queries().find_entities(connection, tenant=tenant, keys=keys, id=wanted))
    if not rows:
        raise InvalidParameterError(Message.GRAPH_NO_ENTITY.format(name=shown(name)), name=name)
    return Entity(*rows[0])


def neighbourhood(
    connection: Connection, tenant: str, name: str, *, limit: int = 20
) -> Neighbourhood:
    """Return what surrounds an entity, at most this many of each kind.

    Raises:
        InvalidParameterError: No entity has this name.
    """
    entity = find_entity(connection, tenant, name)
    own = {"tenant": tenant, "id": entity.id, "row_limit": limit}
    company = [(row.name, row.chunks) for row in queries().entity_company(connection, **own)]
    return Neighbourhood(
        entity,
        [NamedIn(*row) for row in queries().entity_notes(connection, **own)],
        company,
        [Statement(*row) for row in queries().entity_statements(connection, **own)],
    )


def to_review(connection: Connection, tenant: str, *, limit: int) -> list[ToReview]:
    """Return statements to judge: a random sample that is the same at every call."""
    rows = queries().sample_statements(connection, tenant=tenant, row_limit=limit)
    return [ToReview(*row) for row in rows]


def record_review(
    connection: Connection, tenant: str, statement: ToReview, *, is_right: bool
) -> None:
    """Store a person's judgement; a later one replaces it."""
    queries().record_graph_review(
        connection,
        tenant=tenant,
        statement_id=statement.id,
        note_id=statement.note_id,
        is_right=is_right,
    )


def precision(connection: Connection, tenant: str) -> Precision:
    """Return how many of the judged statements were right."""
    row = queries().count_graph_reviews(connection, tenant=tenant)
    interval = wilson_interval(row.good, row.judged) if row.judged else None
    return Precision(row.judged, row.good, interval)


def shape(connection: Connection, tenant: str) -> Shape:
    """Return what the graph of a tenant looks like."""
    return Shape(*queries().graph_shape(connection, tenant=tenant, hub_cap=HUB_CAP))


def growth(connection: Connection, tenant: str) -> list[MonthGrowth]:
    """Return what each month's notes added, oldest first."""
    return [MonthGrowth(*row) for row in queries().graph_growth(connection, tenant=tenant)]


def overview(connection: Connection, tenant: str) -> Overview:
    """Return the whole graph, for people."""
    found = shape(connection, tenant)
    widest = neighbourhood(connection, tenant, found.widest_name) if found.widest_name else None
    return Overview(found, precision(connection, tenant), growth(connection, tenant), widest)


def suggest_aliases(connection: Connection, tenant: str, *, limit: int) -> list[Suggestion]:
    """Return pairs of names that may mean the same: all words of one are in exactly one other.

    "Castelló" may be "Amparo Castelló", unless there is another Castelló. Pairs that a person has
    decided on are not suggested again. Nothing is changed.
    """
    rows = list(queries().list_names(connection, tenant=tenant))
    decided = {
        (row.alias_id, row.entity_id) for row in queries().list_aliases(connection, tenant=tenant)
    }
    taken = {alias for alias, _ in decided}
    pairs = [(rows[one], rows[other]) for one, other in alike([row.key for row in rows])]
    pairs = [(one, other) for one, other in pairs if one.id not in taken]
    ids = list({end.id for pair in pairs for end in pair})
    notes = dict(queries().count_notes_of(connection, tenant=tenant, ids=ids))
    found = [
        Suggestion(
            Entity(one.id, EntityKind.NAME, one.name),
            Entity(other.id, EntityKind.NAME, other.name),
            notes[one.id],
            notes[other.id],
        )
        for one, other in pairs
    ]
    found.sort(key=lambda item: (-min(item.alias_notes, item.entity_notes), -item.alias_notes))
    return found[:limit]


def decide_alias(
    connection: Connection, tenant: str, alias: str, entity: str, *, confirmed: bool
) -> tuple[Entity, Entity]:
    """Record that a name stands for an entity, or that it does not; nothing is merged.

    Raises:
        InvalidParameterError: One is unknown, both are the same, or one is an alias of another.
    """
    one, other = (find_entity(connection, tenant, name) for name in (alias, entity))
    known = [
        row
        for row in queries().list_aliases(connection, tenant=tenant)
        if row.state == "confirmed" and (row.alias_id, row.entity_id) != (one.id, other.id)
    ]
    clash = any(row.alias_id in (one.id, other.id) or row.entity_id == one.id for row in known)
    if one.id == other.id or EntityKind.EVENT in (one.kind, other.kind) or (confirmed and clash):
        raise InvalidParameterError(
            Message.GRAPH_ALIAS_REFUSED.format(alias=shown(alias), entity=shown(entity))
        )
    state = "confirmed" if confirmed else "rejected"
    queries().decide_alias(
        connection, tenant=tenant, alias_id=one.id, entity_id=other.id, state=state
    )
    return one, other


def withdraw_alias(connection: Connection, tenant: str, alias: str, entity: str) -> bool:
    """Withdraw a decision about two names; False if there was none."""
    one, other = (find_entity(connection, tenant, name) for name in (alias, entity))
    found = queries().withdraw_alias(connection, tenant=tenant, alias_id=one.id, entity_id=other.id)
    return found is not None
