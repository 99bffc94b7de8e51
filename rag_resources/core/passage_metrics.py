"""Judges the passages of a question by the places that it names.

The metrics themselves are in `core.metrics`, the same functions as for notes. Finding places in an
edited note belongs in `core.golden_places`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from rag_resources.core.golden_places import LocatedPlace
from rag_resources.core.metrics import DEPTH, JudgedRanking


@dataclass(frozen=True, slots=True)
class NoteRange:
    """A range of a note's characters: `start <= position < end`."""

    note_id: UUID
    start: int
    end: int

    def overlaps(self, other: "NoteRange") -> bool:
        """Whether the two ranges have a character in common."""
        return self.note_id == other.note_id and self.start < other.end and other.start < self.end


def target_ranges(
    relevant_note_ids: Sequence[UUID], places: Sequence[LocatedPlace]
) -> tuple[NoteRange, ...]:
    """Return the ranges that a question should find; empty if it is not judged per passage.

    These are its places. For a relevant note without a place, the range is the whole note. A lost
    place is left out, since there is nothing to find; golden drift reports it.

    Args:
        relevant_note_ids: The question's relevant notes.
        places: All places of the question, at their current positions.
    """
    found = [
        NoteRange(place.stated.note_id, place.start, place.end)
        for place in places
        if not place.is_lost
    ]
    if not found:
        return ()
    named = {place.stated.note_id for place in places}
    whole = [
        NoteRange(note_id, 0, _NOTE_END) for note_id in relevant_note_ids if note_id not in named
    ]
    return (*found, *whole)


def golden_ranges(
    relevant_note_ids: Sequence[UUID], places: Sequence[LocatedPlace]
) -> tuple[NoteRange, ...]:
    """Return `target_ranges`; for a question without places, its whole relevant notes."""
    whole = tuple(NoteRange(note_id, 0, _NOTE_END) for note_id in relevant_note_ids)
    return target_ranges(relevant_note_ids, places) or whole


_NOTE_END = 2**63 - 1


def judge_passages(retrieved: Sequence[NoteRange], targets: Sequence[NoteRange]) -> JudgedRanking:
    """Judge a ranking of passages, in the form that `core.metrics` takes.

    Every passage takes a rank. It is relevant if it overlaps a target that no earlier passage
    overlaps, so neighbouring passages that share a sentence do not count twice. Targets first found
    by the same passage count as one; each target that no passage finds counts as one miss.

    Args:
        retrieved: Passages best first, without repeats; only the first `DEPTH` are judged.
        targets: At least one range.
    """
    relevant, ranking = [], []
    remaining = list(targets)
    for rank, passage in enumerate(retrieved[:DEPTH], start=1):
        found = [target for target in remaining if passage.overlaps(target)]
        remaining = [target for target in remaining if target not in found]
        label = f"passage-{rank}"
        ranking.append(label)
        if found:
            relevant.append(label)
    missed = [f"missed-{number}" for number in range(len(remaining))]
    return JudgedRanking(relevant=frozenset([*relevant, *missed]), retrieved=tuple(ranking))
