"""Changes to a golden dataset: planning an import, and replaying the history.

The type of an entry is in `core.golden`; the rows are in `store.golden` and
`store.golden_history`.
"""

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from itertools import groupby
from operator import attrgetter
from uuid import UUID

from rag_resources.core.errors import InvalidGoldenDatasetError
from rag_resources.core.golden import GoldenEntry, golden_hash, locate_problem
from rag_resources.languages.messages import _

_HASH_DIGITS = 16


class Operation(StrEnum):
    """The kind of change of an entry."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class GoldenChange:
    """An entry before and after a change: no `before` if it is new, no `after` if it is deleted."""

    before: GoldenEntry | None
    after: GoldenEntry | None

    @property
    def operation(self) -> Operation:
        """The kind of change."""
        if self.before is None:
            return Operation.INSERT
        return Operation.DELETE if self.after is None else Operation.UPDATE


@dataclass(frozen=True, slots=True)
class RecordedChange:
    """A row of the history.

    Attributes:
        version: Version of the dataset; every transaction that changes it makes a new one.
        changed_by: User of the database.
        origin: File, command or run; empty for a change made without the application.
    """

    version: int
    change: GoldenChange
    changed_at: datetime
    changed_by: str
    origin: str


@dataclass(frozen=True, slots=True)
class GoldenVersion:
    """The dataset after a change.

    Attributes:
        changes: The changes from the previous version.
        entries: The whole dataset, in no particular order.
    """

    number: int
    changed_at: datetime
    changed_by: str
    origin: str
    changes: tuple[GoldenChange, ...]
    entries: tuple[GoldenEntry, ...]

    @property
    def golden_hash(self) -> str:
        """The golden hash that evaluations of this version are stored with."""
        return golden_hash(self.entries)

    def count(self, operation: Operation) -> int:
        """How many entries were changed by an operation."""
        return count_changes(self.changes)[operation]


def count_changes(changes: Iterable[GoldenChange]) -> Counter[Operation]:
    """Count changes by operation."""
    return Counter(change.operation for change in changes)


def plan_changes(
    stored: Sequence[GoldenEntry],
    wanted: Sequence[GoldenEntry],
    *,
    replace_all: bool,
    origin: str,
    removable: Container[UUID | None] = (),
) -> list[GoldenChange]:
    """Return the changes that bring the wanted entries into the stored dataset.

    A wanted entry matches the stored one with its id, or else the stored one with its question,
    which then takes the wanted entry's id if it has one. Times that a wanted entry lacks are kept
    from the stored one, except `updated_at` of an entry that changes.

    Args:
        stored: With ids and times.
        wanted: No two with the same id or normalised query.
        replace_all: Whether to delete stored entries that are not wanted.
        origin: Where the wanted entries come from, for messages.
        removable: Ids of entries to delete if they are not wanted, even without `replace_all`.

    Returns:
        The changes, deletions first; none for an entry that stays the same. The store fills in
        missing ids of new entries, and missing times.

    Raises:
        InvalidGoldenDatasetError: A wanted entry has the same question as another one that stays.
    """
    pairs = _pair(stored, wanted)
    matched = {before.golden_id for before, _ in pairs if before}
    left = [entry for entry in stored if entry.golden_id not in matched]
    gone = [entry for entry in left if replace_all or entry.golden_id in removable]
    _refuse_taken(wanted, [entry for entry in left if entry not in gone], origin)
    return [
        *(GoldenChange(entry, None) for entry in gone),
        *(change for before, entry in pairs if (change := _change(before, entry))),
    ]


def keep_own(
    stored: Sequence[GoldenEntry], wanted: Sequence[GoldenEntry], own: Container[UUID | None]
) -> tuple[list[GoldenEntry], list[GoldenEntry]]:
    """Remove from an import the entries that would undo a person's work.

    An imported entry whose time equals that of the stored question, or is later, was made from that
    question and may change it. Any other entry may not.

    Args:
        stored: With ids and times.
        wanted: The entries of the import.
        own: Ids of the questions that a person entered.

    Returns:
        The rest of `wanted`, and the stored entries that stay as they are.
    """
    kept: list[GoldenEntry] = []
    rest: list[GoldenEntry] = []
    for before, entry in _pair(stored, wanted):
        if before and before.golden_id in own and _is_older(entry, before):
            if _change(before, entry):
                kept.append(before)
        else:
            rest.append(entry)
    if len(rest) < len(wanted):  # The remaining entries may match others now.
        rest, more = keep_own(stored, rest, own)
        kept += [entry for entry in more if entry not in kept]
    return rest, kept


def _is_older(entry: GoldenEntry, stored: GoldenEntry) -> bool:
    if entry.updated_at is None or stored.updated_at is None:
        return True
    return entry.updated_at < stored.updated_at


def _pair(
    stored: Sequence[GoldenEntry], wanted: Sequence[GoldenEntry]
) -> list[tuple[GoldenEntry | None, GoldenEntry]]:
    """Match each wanted entry to the stored one with its id, or else with its question."""
    by_id = {entry.golden_id: entry for entry in stored}
    named = {entry.golden_id for entry in wanted if entry.golden_id in by_id}
    by_query = {e.normalized_query: e for e in stored if e.golden_id not in named}
    return [
        (by_id.get(entry.golden_id) or by_query.get(entry.normalized_query), entry)
        for entry in wanted
    ]


def _refuse_taken(wanted: Sequence[GoldenEntry], left: Sequence[GoldenEntry], origin: str) -> None:
    taken = {entry.folded_query: entry.golden_id for entry in left}
    problems = [
        locate_problem(
            position,
            entry.query,
            _(
                "the question is already there: {known} (capitals, accents and "
                "punctuation do not count)"
            ).format(known=taken[entry.folded_query]),
        )
        for position, entry in enumerate(wanted, start=1)
        if entry.folded_query in taken
    ]
    if problems:
        headline = _("{origin} is not valid; nothing was changed:").format(origin=origin)
        raise InvalidGoldenDatasetError(headline, problems, origin=origin)


def _change(before: GoldenEntry | None, wanted: GoldenEntry) -> GoldenChange | None:
    if before is None:
        return GoldenChange(None, wanted)
    after = replace(
        wanted,
        golden_id=wanted.golden_id or before.golden_id,
        created_at=wanted.created_at or before.created_at,
        updated_at=wanted.updated_at or before.updated_at,
    )
    if after == before:
        return None
    return GoldenChange(before, replace(after, updated_at=wanted.updated_at))


def replay(recorded: Iterable[RecordedChange]) -> Iterator[GoldenVersion]:
    """Rebuild every version of the dataset.

    Args:
        recorded: The whole history, oldest first.
    """
    current: dict[UUID | None, GoldenEntry] = {}
    for number, rows in groupby(recorded, key=attrgetter("version")):
        group = list(rows)
        for row in group:
            if row.change.before:
                current.pop(row.change.before.golden_id, None)
            if row.change.after:
                current[row.change.after.golden_id] = row.change.after
        last = group[-1]
        yield GoldenVersion(
            number=number,
            changed_at=max(row.changed_at for row in group),
            changed_by=last.changed_by,
            origin=last.origin,
            changes=tuple(row.change for row in group),
            entries=tuple(current.values()),
        )


def find_version(versions: Sequence[GoldenVersion], moment: str) -> GoldenVersion | None:
    """Return the version that a person names; None if the history has none.

    Args:
        versions: Oldest first.
        moment: A golden hash, or a time in ISO form (UTC by default), for the dataset at that time.
            If several versions have the hash, the newest is returned: they do not differ in
            anything that an evaluation depends on.
    """
    newest_first = versions[::-1]
    if len(moment) == _HASH_DIGITS and "-" not in moment:
        return next((each for each in newest_first if each.golden_hash == moment), None)
    try:
        then = datetime.fromisoformat(moment)
    except ValueError:
        return None
    then = then if then.tzinfo else then.replace(tzinfo=UTC)
    return next((each for each in newest_first if each.changed_at <= then), None)
