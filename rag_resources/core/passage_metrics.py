"""Judges the passages of a question by the places that it names.

The metrics themselves are `core.metrics`, the same functions as for notes; finding places in an
edited note is `core.golden_places`.
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
        """Whether both hold a character in common."""
        return self.note_id == other.note_id and self.start < other.end and other.start < self.end


def target_ranges(
    relevant_note_ids: Sequence[UUID], places: Sequence[LocatedPlace]
) -> tuple[NoteRange, ...]:
    """Return the ranges that a question looks for; none if it is not judged by passages.

    Those are its places. A relevant note of which the question names no place is looked for as a
    whole. A lost place is left out: there is nothing left to find, and golden drift says so.

    Args:
        relevant_note_ids: Of the question.
        places: Every place the question names, as found in the notes now.
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


_NOTE_END = 2**63 - 1


def judge_passages(retrieved: Sequence[NoteRange], targets: Sequence[NoteRange]) -> JudgedRanking:
    """Judge a ranking of passages, in the form that `core.metrics` takes.

    Every passage takes a rank. It is relevant if it overlaps a target that no passage before it
    overlaps, so that neighbouring passages that share a sentence do not count twice. Targets that
    one passage finds together count as one; each target that none finds counts as one missed.

    Args:
        retrieved: Passages best first, none twice; only the first `DEPTH` are judged.
        targets: At least one.
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
