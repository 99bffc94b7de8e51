"""Changes to a golden dataset: planning an import.

The type of an entry is in `core.golden`; the rows are in `store.golden`.
"""

from collections import Counter
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from uuid import UUID

from rag_resources.core.errors import InvalidGoldenDatasetError
from rag_resources.core.golden import GoldenEntry, locate_problem
from rag_resources.languages.messages import _


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
