"""What changes in a golden dataset: an import before it is written, the history after.

An entry's own form is `core.golden`; the rows are `store.golden` and `store.golden_history`.
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
from rag_resources.core.messages import Message

_HASH_DIGITS = 16


class Operation(StrEnum):
    """What became of an entry."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class GoldenChange:
    """An entry before and after; before is None if it is new, after if it is gone."""

    before: GoldenEntry | None
    after: GoldenEntry | None

    @property
    def operation(self) -> Operation:
        """What became of the entry."""
        if self.before is None:
            return Operation.INSERT
        return Operation.DELETE if self.after is None else Operation.UPDATE


@dataclass(frozen=True, slots=True)
class RecordedChange:
    """A row of the history.

    Attributes:
        version: Of the dataset: every transaction that changes it makes the next one.
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
        changes: What made it of the version before.
        entries: All of it, in no order.
    """

    number: int
    changed_at: datetime
    changed_by: str
    origin: str
    changes: tuple[GoldenChange, ...]
    entries: tuple[GoldenEntry, ...]

    @property
    def golden_hash(self) -> str:
        """What evaluations of this version are stored with."""
        return golden_hash(self.entries)

    def count(self, operation: Operation) -> int:
        """How many entries an operation made it of."""
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
    """Say what makes the stored dataset hold the wanted entries.

    An entry is the stored one with its id, or else the one with its question, which takes the id of
    the wanted one if that has any. Times that an entry does not bring stay, but for `updated_at`
    of one that changes.

    Args:
        stored: With ids and times.
        wanted: No two with the same id or normalised query.
        replace_all: Whether what is not wanted goes.
        origin: Of the wanted entries, for messages.
        removable: Ids of what goes, if it is not wanted, even if the rest does not.

    Returns:
        The changes, deletions first; nothing for an entry that is as it is wanted. A new entry
        without an id, and any without a time of its own, is for the store to complete.

    Raises:
        InvalidGoldenDatasetError: A wanted entry takes the question of another one that stays.
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
    """Take out of an import what would undo the work of a person.

    An entry of the import that carries the time of the stored question, or a later one, was made
    from it, and changes it; any other leaves it as it is.

    Args:
        stored: With ids and times.
        wanted: What the import brings.
        own: Ids of what a person entered.

    Returns:
        What is left of `wanted`, and the stored entries that stay as they are.
    """
    kept: list[GoldenEntry] = []
    rest: list[GoldenEntry] = []
    for before, entry in _pair(stored, wanted):
        if before and before.golden_id in own and _is_older(entry, before):
            if _change(before, entry):
                kept.append(before)
        else:
            rest.append(entry)
    if len(rest) < len(wanted):  # What is left may pair otherwise now.
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
    """Pair each wanted entry with the stored one with its id, or else with its question."""
    by_id = {entry.golden_id: entry for entry in stored}
    named = {entry.golden_id for entry in wanted if entry.golden_id in by_id}
    by_query = {e.normalized_query: e for e in stored if e.golden_id not in named}
    return [
        (by_id.get(entry.golden_id) or by_query.get(entry.normalized_query), entry)
        for entry in wanted
    ]


def _refuse_taken(wanted: Sequence[GoldenEntry], left: Sequence[GoldenEntry], origin: str) -> None:
    taken = {entry.normalized_query: entry.golden_id for entry in left}
    problems = [
        locate_problem(
            position,
            entry.query,
            Message.GOLDEN_REPEATED.format(golden_id=taken[entry.normalized_query]),
        )
        for position, entry in enumerate(wanted, start=1)
        if entry.normalized_query in taken
    ]
    if problems:
        headline = Message.GOLDEN_INVALID.format(origin=origin)
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
        recorded: All of the history, oldest first.
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
    """Return the version a person means; None if the history has none.

    Args:
        versions: Oldest first.
        moment: A version's number, a golden hash (of several versions with it, the newest: they
            differ in nothing an evaluation depends on), or a time in ISO form, UTC unless it says
            otherwise: what the dataset was then.
    """
    newest_first = versions[::-1]
    if moment.isdecimal() and len(moment) < _HASH_DIGITS:
        return next((each for each in newest_first if each.number == int(moment)), None)
    if len(moment) == _HASH_DIGITS and "-" not in moment:
        return next((each for each in newest_first if each.golden_hash == moment), None)
    try:
        then = datetime.fromisoformat(moment)
    except ValueError:
        return None
    then = then if then.tzinfo else then.replace(tzinfo=UTC)
    return next((each for each in newest_first if each.changed_at <= then), None)
