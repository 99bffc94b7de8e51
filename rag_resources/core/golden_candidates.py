"""Notes that may be missing from a golden question: retrieved first, but never judged.

Pooling judges only what some retriever found when the questions were written. A better retriever
finds more relevant notes, which then count as misses (Buckley and Voorhees, SIGIR 2004,
doi:10.1145/1008992.1009000). Only a person can tell whether such a note answers the question: see
`CANDIDATE_TAG` of `core.golden`.
"""

import math
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from rag_resources.core.golden import CANDIDATE_TAG, GoldenEntry
from rag_resources.core.golden_drift import MIN_CONFIGURATIONS, Outcome
from rag_resources.core.types import Note

CANDIDATE_RANKS = 3
SNIPPET_CHARS = 240


@dataclass(frozen=True, slots=True)
class CandidateNote:
    """A note to be judged.

    Attributes:
        configurations: Names of the configurations that rank it among the first three and above
            every relevant note.
    """

    note_id: UUID
    configurations: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A question with the notes to be judged for it; notes of more configurations come first."""

    entry: GoldenEntry
    notes: tuple[CandidateNote, ...]

    def to_json(
        self, names: Mapping[UUID, str], notes: Mapping[UUID, Note], *, at: datetime
    ) -> dict[str, Any]:
        """Return it as an entry to import once a person has judged it.

        Args:
            names: Names of the notes to be judged, by id.
            notes: Those notes.
            at: The current time; the person who judges has seen the results up to then.
        """
        row = self.entry.to_json()
        return row | {
            "updatedAt": at.isoformat(),
            "relevantNoteIds": [
                *row["relevantNoteIds"],
                *(str(note.note_id) for note in self.notes),
            ],
            "tags": [*self.entry.tags, CANDIDATE_TAG],
            "candidateNotes": [
                {
                    "id": str(note.note_id),
                    "name": names[note.note_id],
                    "title": notes[note.note_id].title,
                    "snippet": snippet(notes[note.note_id].content),
                    "configurations": list(note.configurations),
                }
                for note in self.notes
            ],
        }


def find_candidates(
    entries: Sequence[GoldenEntry],
    outcomes: Sequence[Outcome],
    *,
    reviewed: Sequence[Outcome] = (),
    existing: Container[UUID],
) -> list[Candidate]:
    """Find the notes that at least half of the configurations rank first and nobody has judged.

    A configuration supports a note that it ranks among the first three and above every relevant
    note: below a relevant note there is no miss to explain. A single configuration is not enough.

    Args:
        entries: Stored entries.
        outcomes: Of the latest evaluation of every configuration.
        reviewed: The outcomes at the time each entry was last written. Notes that these support
            and that are not relevant count as rejected.
        existing: The notes that still exist.

    Returns:
        Questions by number of supporting configurations, most first, ties in the order of the
        entries. Within a question, notes by configurations, best rank and id.
    """
    found, known = _by_question(outcomes), _by_question(reviewed)
    candidates = []
    for entry in entries:
        rejected = {
            note.note_id for note in _spoken_for(entry, known.get(entry.golden_id, []), existing)
        }
        notes = _spoken_for(entry, found.get(entry.golden_id, []), existing)
        left = tuple(note for note in notes if note.note_id not in rejected)
        if left:
            candidates.append(Candidate(entry, left))
    return sorted(candidates, key=lambda candidate: -len(candidate.notes[0].configurations))


def snippet(content: str) -> str:
    """Return the beginning of a note on one line."""
    text = " ".join(content.split())
    return text if len(text) <= SNIPPET_CHARS else text[: SNIPPET_CHARS - 1] + "…"


def _by_question(outcomes: Sequence[Outcome]) -> dict[UUID | None, list[Outcome]]:
    grouped: dict[UUID | None, list[Outcome]] = {}
    for outcome in outcomes:
        grouped.setdefault(outcome.golden_id, []).append(outcome)
    return grouped


def _spoken_for(
    entry: GoldenEntry, outcomes: Sequence[Outcome], existing: Container[UUID]
) -> tuple[CandidateNote, ...]:
    votes: dict[UUID, list[tuple[int, str]]] = {}
    for outcome in outcomes:
        for rank, note_id in _ahead(entry, outcome):
            votes.setdefault(note_id, []).append((rank, outcome.configuration))
    needed = max(MIN_CONFIGURATIONS, math.ceil(len(outcomes) / 2))
    chosen = [
        (note_id, found)
        for note_id, found in votes.items()
        if len(found) >= needed and note_id in existing
    ]
    chosen.sort(key=lambda item: (-len(item[1]), min(item[1])[0], item[0]))
    return tuple(
        CandidateNote(note_id, tuple(sorted(name for _, name in found)))
        for note_id, found in chosen
    )


def _ahead(entry: GoldenEntry, outcome: Outcome) -> Iterator[tuple[int, UUID]]:
    """Yield the first notes of a ranking with their ranks, until a relevant one."""
    for rank, note_id in enumerate(outcome.retrieved_note_ids[:CANDIDATE_RANKS], start=1):
        if note_id in entry.relevant_note_ids:
            return
        yield rank, note_id
