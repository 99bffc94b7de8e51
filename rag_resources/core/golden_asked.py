"""Candidates for golden questions: questions of readers that got no good answer.

A question without an answer, or whose answer its reader found wrong, shows what the evaluation does
not cover. Only a person can say which notes answer it: see `CANDIDATE_TAG` of `core.golden`.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from rag_resources.core.golden import CANDIDATE_TAG, CATEGORIES
from rag_resources.core.golden_candidates import CANDIDATE_RANKS, snippet
from rag_resources.core.text import normalize_query
from rag_resources.core.types import Note


@dataclass(frozen=True, slots=True)
class DoubtfulAnswer:
    """An answer whose question may become a golden one.

    Attributes:
        intent: The kind of answer that was asked for; None if unknown.
        note_ids: The notes of its passages, best first; a note may repeat.
        is_down: Whether its reader found it or a citation wrong; otherwise there was no answer.
        dismissed: Whether a person decided that its question is no golden one.
    """

    answer_id: UUID
    asked_at: datetime
    question: str
    intent: str | None
    note_ids: tuple[UUID, ...]
    is_down: bool
    dismissed: bool


@dataclass(frozen=True, slots=True)
class AskedCandidate:
    """A question that was asked, with the notes to be judged for it.

    Attributes:
        latest: The latest answer to it.
        note_ids: The first notes that were found, at most three; there may be none.
        times: How often it was asked without a good answer.
        is_down: Whether a reader found an answer to it wrong; otherwise there was none.
    """

    latest: DoubtfulAnswer
    note_ids: tuple[UUID, ...]
    times: int
    is_down: bool

    def to_json(self, names: Mapping[UUID, str], notes: Mapping[UUID, Note]) -> dict[str, Any]:
        """Return it as an entry to import once a person has judged and completed it.

        Args:
            names: Names of the notes, by id.
            notes: The notes themselves, by id.
        """
        category = self.latest.intent if self.latest.intent in CATEGORIES else None
        return {
            "id": None,
            "query": self.latest.question,
            "relevantNoteIds": [str(own) for own in self.note_ids],
            "expectedAnswer": "",
            "category": category,
            "difficulty": None,
            "tags": [CANDIDATE_TAG],
            "candidateNotes": [
                {
                    "id": str(own),
                    "name": names[own],
                    "title": notes[own].title,
                    "snippet": snippet(notes[own].content),
                    "configurations": [],
                }
                for own in self.note_ids
            ],
            "asked": {
                "answerId": str(self.latest.answer_id),
                "askedAt": self.latest.asked_at.isoformat(),
                "times": self.times,
                "thumbsDown": self.is_down,
            },
        }


def asked_candidates(
    doubtful: Sequence[DoubtfulAnswer],
    *,
    known: Collection[str],
    existing: Collection[UUID],
) -> list[AskedCandidate]:
    """Group answers into questions that may become golden ones.

    Args:
        doubtful: Latest first.
        known: Normalised questions that are golden ones, or that a person deleted from them.
        existing: The notes that still exist.

    Returns:
        Questions whose answer a reader found wrong come first; then the most frequent, then the
        latest. A question that was dismissed once is left out.
    """
    grouped: dict[str, list[DoubtfulAnswer]] = {}
    for answer in doubtful:
        grouped.setdefault(normalize_query(answer.question), []).append(answer)
    candidates = [
        AskedCandidate(
            group[0],
            _first(group[0].note_ids, existing),
            times=len(group),
            is_down=any(answer.is_down for answer in group),
        )
        for query, group in grouped.items()
        if query not in known and not any(answer.dismissed for answer in group)
    ]
    return sorted(
        candidates, key=lambda own: (not own.is_down, -own.times, -own.latest.asked_at.timestamp())
    )


def _first(note_ids: Sequence[UUID], existing: Collection[UUID]) -> tuple[UUID, ...]:
    distinct = dict.fromkeys(note_id for note_id in note_ids if note_id in existing)
    return tuple(distinct)[:CANDIDATE_RANKS]
