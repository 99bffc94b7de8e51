"""Checks whether a golden dataset still measures what it should.

`store.golden_review` reads the data for it. The check only reports; a person decides what to do
with a question.
"""

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from rag_resources.core.golden import GoldenEntry
from rag_resources.core.golden_duplicates import NearDuplicate, near_duplicates
from rag_resources.core.golden_place_drift import QuestionPlace
from rag_resources.core.messages import Message
from rag_resources.core.metrics import DEPTH

MIX_SHIFT = 0.1
"""Total variation above which the category mix counts as shifted.

A shift of the mix alone changes a mean over all questions, such as Hit_Rate@10, by at most this.
"""

DECIDING_QUESTIONS = 6
"""Fewest questions with different results that can show a difference between configurations.

If five questions all flip one way, the exact McNemar test gives p = 0.0625; with six, p = 0.031.
"""

MIN_CONFIGURATIONS = 2
"""Agreement is only reported from this many configurations on."""


@dataclass(frozen=True, slots=True)
class NoteState:
    """A relevant note that has changed since its question was last written.

    Attributes:
        name: Its name for display.
        gone: Whether it was deleted or has expired; otherwise its content was edited.
    """

    golden_id: UUID
    note_id: UUID
    name: str
    gone: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of an unchanged question in the latest evaluation of a configuration.

    Attributes:
        first_relevant_rank: 1-based, over distinct notes; None if no relevant note was found.
        retrieved_note_ids: Distinct, best first.
    """

    configuration: str
    golden_id: UUID
    first_relevant_rank: int | None
    retrieved_note_ids: tuple[UUID, ...]

    @property
    def is_hit(self) -> bool:
        """Whether a relevant note is among the first ten."""
        return self.first_relevant_rank is not None and self.first_relevant_rank <= DEPTH


@dataclass(frozen=True, slots=True)
class MixShift:
    """How far the shares of the categories have moved.

    Attributes:
        distance: Total variation: half the sum of the absolute differences, in [0, 1].
    """

    before: Mapping[str, float]
    now: Mapping[str, float]
    distance: float


@dataclass(frozen=True, slots=True)
class QuestionNotes:
    """A question with some of its relevant notes, by name."""

    entry: GoldenEntry
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GoldenDrift:
    """The findings of the check.

    Attributes:
        gone: Questions with relevant notes that were deleted or have expired.
        edited: Questions with relevant notes edited since the question was last written.
        mix: Compared with the evaluation behind the serving promotion, or with the latest one;
            None before the first evaluation.
        near_duplicates: Most similar first.
        configurations: How many configurations have an evaluation.
        ceiling: Questions that every configuration answers in its first ten notes.
        floor: Questions that none answers: hard ones, or wrong labels.
        judged: Unchanged questions that at least two configurations were evaluated on.
        places: Places that an edit of their note moved, changed or removed.
    """

    questions: int
    gone: tuple[QuestionNotes, ...] = ()
    edited: tuple[QuestionNotes, ...] = ()
    mix: MixShift | None = None
    near_duplicates: tuple[NearDuplicate, ...] = ()
    configurations: int = 0
    ceiling: tuple[GoldenEntry, ...] = ()
    floor: tuple[GoldenEntry, ...] = ()
    judged: int = 0
    places: tuple[QuestionPlace, ...] = ()

    @property
    def deciding(self) -> int:
        """How many questions have different results for different configurations."""
        return self.judged - len(self.ceiling) - len(self.floor)

    @property
    def mix_shifted(self) -> bool:
        """Whether a mean may have changed because of the mix alone."""
        return self.mix is not None and self.mix.distance > MIX_SHIFT

    @property
    def decides_nothing(self) -> bool:
        """Whether all questions were evaluated and too few distinguish configurations."""
        return 0 < self.questions == self.judged and self.deciding < DECIDING_QUESTIONS

    @property
    def findings(self) -> list[str]:
        """What a person should check, one line each; empty if there is nothing."""
        lines = [
            *(_about_notes(Message.DRIFT_GONE, item) for item in self.gone),
            *(_about_notes(Message.DRIFT_EDITED, item) for item in self.edited),
            *filter(None, (item.finding for item in self.places)),
        ]
        if self.mix and self.mix_shifted:
            lines.append(Message.DRIFT_MIX.format(**_mix_in_words(self.mix)))
        lines.extend(
            Message.DRIFT_NEAR_DUPLICATE.format(
                first=pair.first.query,
                first_id=pair.first.golden_id,
                second=pair.second.query,
                second_id=pair.second.golden_id,
                similarity=pair.similarity,
            )
            for pair in self.near_duplicates
        )
        lines.extend(
            Message.DRIFT_FLOOR.format(
                query=entry.query, golden_id=entry.golden_id, configurations=self.configurations
            )
            for entry in self.floor
        )
        if self.decides_nothing:
            lines.append(
                Message.DRIFT_DECIDES_NOTHING.format(
                    deciding=self.deciding,
                    configurations=self.configurations,
                    needed=DECIDING_QUESTIONS,
                )
            )
        return lines

    @property
    def summary(self) -> str:
        """All findings in one line."""
        return Message.DRIFT_SUMMARY.format(
            questions=self.questions,
            configurations=self.configurations,
            ceiling=len(self.ceiling),
            floor=len(self.floor),
            deciding=self.deciding,
            findings=len(self.findings),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "questions": self.questions,
            "gone": [_notes_json(item) for item in self.gone],
            "edited": [_notes_json(item) for item in self.edited],
            "places": [item.to_json() for item in self.places],
            "categoryMix": {
                "before": dict(self.mix.before),
                "now": dict(self.mix.now),
                "distance": self.mix.distance,
                "shifted": self.mix_shifted,
            }
            if self.mix
            else None,
            "nearDuplicates": [
                {
                    "ids": [str(pair.first.golden_id), str(pair.second.golden_id)],
                    "queries": [pair.first.query, pair.second.query],
                    "similarity": pair.similarity,
                }
                for pair in self.near_duplicates
            ],
            "configurations": self.configurations,
            "everyConfigurationRight": [_entry_json(entry) for entry in self.ceiling],
            "noConfigurationRight": [_entry_json(entry) for entry in self.floor],
            "decidingQuestions": self.deciding,
            "findings": self.findings,
        }


def measure_drift(
    entries: Sequence[GoldenEntry],
    *,
    notes: Sequence[NoteState] = (),
    categories_before: Mapping[str, float] | None = None,
    lexemes: Mapping[UUID, Set[str]] | None = None,
    outcomes: Sequence[Outcome] = (),
    places: Sequence[QuestionPlace] = (),
) -> GoldenDrift:
    """Check the whole dataset.

    Args:
        entries: Stored entries.
        notes: Relevant notes that changed.
        categories_before: Questions by category in the evaluation to compare with.
        lexemes: The stems of every question, by golden id.
        outcomes: Of the latest evaluation of every configuration.
        places: Places of stored entries that are no longer at their stored position.
    """
    judged = _judged(entries, outcomes)
    return GoldenDrift(
        questions=len(entries),
        gone=_by_question(entries, [note for note in notes if note.gone]),
        edited=_by_question(entries, [note for note in notes if not note.gone]),
        mix=category_shift(categories_before, Counter(entry.category for entry in entries))
        if categories_before and entries
        else None,
        near_duplicates=near_duplicates(entries, lexemes or {}),
        configurations=len({outcome.configuration for outcome in outcomes}),
        ceiling=tuple(entry for entry, hits in judged if all(hits)),
        floor=tuple(entry for entry, hits in judged if not any(hits)),
        judged=len(judged),
        places=tuple(places),
    )


def category_shift(before: Mapping[str, float], now: Mapping[str, float]) -> MixShift:
    """Compare two category mixes.

    Args:
        before: Questions by category before, at least one.
        now: Questions by category now, at least one.
    """
    shares_before, shares_now = _shares(before), _shares(now)
    categories = shares_before.keys() | shares_now.keys()
    distance = sum(abs(shares_now.get(c, 0) - shares_before.get(c, 0)) for c in categories) / 2
    return MixShift(shares_before, shares_now, distance)


def _judged(
    entries: Sequence[GoldenEntry], outcomes: Sequence[Outcome]
) -> list[tuple[GoldenEntry, list[bool]]]:
    """Return the questions evaluated by enough configurations, with the hits of each."""
    hits: dict[UUID | None, list[bool]] = {}
    for outcome in outcomes:
        hits.setdefault(outcome.golden_id, []).append(outcome.is_hit)
    found = [(entry, hits.get(entry.golden_id, [])) for entry in entries]
    return [item for item in found if len(item[1]) >= MIN_CONFIGURATIONS]


def _by_question(
    entries: Sequence[GoldenEntry], notes: Sequence[NoteState]
) -> tuple[QuestionNotes, ...]:
    names: dict[UUID | None, list[str]] = {}
    for note in notes:
        names.setdefault(note.golden_id, []).append(note.name)
    return tuple(
        QuestionNotes(entry, tuple(names[entry.golden_id]))
        for entry in entries
        if entry.golden_id in names
    )


def _shares(counts: Mapping[str, float]) -> dict[str, float]:
    total = sum(counts.values())
    return {category: counts[category] / total for category in sorted(counts)}


def _mix_in_words(mix: MixShift) -> dict[str, Any]:
    changes = [
        f"{category} {mix.before.get(category, 0):.0%} → {mix.now.get(category, 0):.0%}"
        for category in sorted(mix.before.keys() | mix.now.keys())
        if mix.before.get(category, 0) != mix.now.get(category, 0)
    ]
    return {"distance": mix.distance, "limit": MIX_SHIFT, "changes": ", ".join(changes)}


def _about_notes(message: str, item: QuestionNotes) -> str:
    entry = item.entry
    return message.format(query=entry.query, golden_id=entry.golden_id, notes=", ".join(item.notes))


def _notes_json(item: QuestionNotes) -> dict[str, Any]:
    return {**_entry_json(item.entry), "notes": list(item.notes)}


def _entry_json(entry: GoldenEntry) -> dict[str, Any]:
    return {"id": str(entry.golden_id), "query": entry.query}
