"""Checks whether a golden dataset still measures what it should.

`store.golden_review` reads the data for it. The check only reports; a person decides what to do
with a question.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from rag_resources.core.golden import GoldenEntry
from rag_resources.core.golden_places import LocatedPlace
from rag_resources.core.quoting import shown
from rag_resources.languages.messages import _

MIX_SHIFT = 0.1
"""Total variation above which the category mix counts as shifted.

A shift of the mix alone changes a mean over all questions, such as Hit_Rate@10, by at most this.
"""


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
class QuestionPlace:
    """A place of a question that is no longer at its stored position.

    Attributes:
        note: Name of its note for display.
        likely: Where it probably is now: the name of a note, and the text there; None if nothing
            like it is anywhere.
    """

    entry: GoldenEntry
    place: LocatedPlace
    note: str
    likely: tuple[str, str] | None = None

    @property
    def finding(self) -> str:
        """What a person should check; empty if the exact text has only moved."""
        place = self.place
        if not place.is_lost and not place.is_doubtful:
            return ""
        likely = (
            _("Probably now in {note}: “{text}”.").format(
                note=self.likely[0], text=shown(self.likely[1])
            )
            if self.likely
            else _("Nothing like it was found in another note.")
        )
        return _(
            "The place “{text}” of the note {note} is no longer as stated (similarity "
            "{similarity:.2f}; found {occurrences} times). {likely} Question: “{query}”. Confirm "
            "it with “rag golden update {golden_id} --reviewed”, or name another one with --place "
            "NOTE=TEXT."
        ).format(
            likely=likely,
            text=shown(place.stated.text),
            note=self.note,
            similarity=place.similarity or 0.0,
            occurrences=place.occurrences,
            query=self.entry.query,
            golden_id=self.entry.golden_id,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        place = self.place
        found = None if place.is_lost else {"start": place.start, "end": place.end}
        return {
            "id": str(self.entry.golden_id),
            "query": self.entry.query,
            "place": place.stated.to_json(),
            "found": found,
            "similarity": place.similarity,
            "occurrences": place.occurrences,
            "likely": self.likely and {"note": self.likely[0], "text": self.likely[1]},
        }


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
        places: Places that an edit of their note moved, changed or removed.
    """

    questions: int
    gone: tuple[QuestionNotes, ...] = ()
    edited: tuple[QuestionNotes, ...] = ()
    mix: MixShift | None = None
    places: tuple[QuestionPlace, ...] = ()

    @property
    def mix_shifted(self) -> bool:
        """Whether a mean may have changed because of the mix alone."""
        return self.mix is not None and self.mix.distance > MIX_SHIFT

    @property
    def findings(self) -> list[str]:
        """What a person should check, one line each; empty if there is nothing."""
        lines = [
            *(
                _about_notes(
                    _(
                        "Relevant notes that are gone or expired: {notes}. Question: “{query}”. "
                        "Change it with “rag golden update {golden_id} --note NOTE”, delete it "
                        "with “rag golden delete {golden_id}” or, if the note was deleted lately, "
                        "restore it with “rag notes restore NOTE”."
                    ),
                    item,
                )
                for item in self.gone
            ),
            *(
                _about_notes(
                    _(
                        "Relevant notes edited after the question was written: {notes}. Question: "
                        "“{query}”. If it still holds, say so with “rag golden update {golden_id} "
                        "--reviewed”."
                    ),
                    item,
                )
                for item in self.edited
            ),
            *filter(None, (item.finding for item in self.places)),
        ]
        if self.mix and self.mix_shifted:
            lines.append(
                _(
                    "The mix of categories has shifted by {distance:.2f} (limit: {limit}) since "
                    "the evaluation of what serves: {changes}. The means of then and now do not "
                    "measure the same."
                ).format(**_mix_in_words(self.mix))
            )
        return lines

    @property
    def summary(self) -> str:
        """All findings in one line."""
        return _("Questions: {questions}. To look at: {findings}.").format(
            questions=self.questions, findings=len(self.findings)
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
            "findings": self.findings,
        }


def measure_drift(
    entries: Sequence[GoldenEntry],
    *,
    notes: Sequence[NoteState] = (),
    categories_before: Mapping[str, float] | None = None,
    places: Sequence[QuestionPlace] = (),
) -> GoldenDrift:
    """Check the whole dataset.

    Args:
        entries: Stored entries.
        notes: Relevant notes that changed.
        categories_before: Questions by category in the evaluation to compare with.
        places: Places of stored entries that are no longer at their stored position.
    """
    return GoldenDrift(
        questions=len(entries),
        gone=_by_question(entries, [note for note in notes if note.gone]),
        edited=_by_question(entries, [note for note in notes if not note.gone]),
        mix=category_shift(categories_before, Counter(entry.category for entry in entries))
        if categories_before and entries
        else None,
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
