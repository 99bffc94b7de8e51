"""Finds what changed between two evaluations, and which questions flipped.

The causes of lost questions are found in `core.counterfactuals`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from rag_resources.core.answer_metrics import FIRST_CITATION, Citations
from rag_resources.core.metrics import DEPTH, SERVED
from rag_resources.core.passage_metrics import NoteRange


@dataclass(frozen=True, slots=True)
class EvaluatedQuestion:
    """The result of a question in one evaluation.

    Attributes:
        relevant: Ids of its relevant notes.
        retrieved: Ids of the first distinct notes, best first, at most `DEPTH`.
        rank: 1-based rank of the first relevant note among those; None if there is none.
        metrics: By name.
        error: Why it failed; None if it did not.
        passage_metrics: The metrics per passage; None for a question without places.
        places: Identifiers of the places it names, in any order.
        citations: What each sentence of its answer cites; None if nothing was answered.
        answer_metrics: The metrics of its answer; None if nothing was cited.
    """

    golden_id: UUID
    query: str
    category: str
    relevant: tuple[UUID, ...]
    retrieved: tuple[UUID, ...]
    rank: int | None
    metrics: Mapping[str, float]
    error: str | None = None
    passage_metrics: Mapping[str, float] | None = None
    places: frozenset[tuple[str, int, int]] = frozenset()
    citations: Citations | None = None
    answer_metrics: Mapping[str, float] | None = None

    @property
    def is_found(self) -> bool:
        """Whether a relevant note is among the first ten."""
        return self.rank is not None

    @property
    def is_served(self) -> bool | None:
        """Whether a relevant note is among what a user gets; None if that was not measured."""
        served = self.metrics.get(SERVED)
        return None if served is None else served > 0

    @property
    def is_found_in_vain(self) -> bool:
        """Whether a relevant note is among the first ten, but not among what a user gets."""
        return self.is_found and self.is_served is False


@dataclass(frozen=True, slots=True)
class Flip:
    """A question whose note one of two evaluations found and the other did not.

    Either in the first ten; or, if both or neither did there, among what a user gets.
    """

    before: EvaluatedQuestion
    after: EvaluatedQuestion

    @property
    def is_served_only(self) -> bool:
        """Whether it flipped among what a user gets, and not in the first ten."""
        return self.before.is_found == self.after.is_found

    @property
    def is_lost(self) -> bool:
        """Whether the second evaluation is the one that missed it."""
        if self.is_served_only:
            return not self.after.is_served
        return not self.after.is_found

    @property
    def newcomers(self) -> tuple[UUID, ...]:
        """Irrelevant notes that took the place of a relevant one, best first; none for a gain.

        If the question was lost in the first ten: those that were not among them before, or else
        those that were, but below the relevant note. If there are none of these either: all that
        were retrieved instead; none if nothing was.
        """
        if not self.is_lost:
            return ()
        above = [note for note in _above(self.after) if note not in self.after.relevant]
        overtaking = [note for note in above if note not in _above(self.before)]
        new = [note for note in overtaking if note not in self.before.retrieved]
        return tuple((not self.is_served_only and new) or overtaking or above)


@dataclass(frozen=True, slots=True)
class Shift:
    """A question that both of two evaluations found in the first ten, at different ranks."""

    before: EvaluatedQuestion
    after: EvaluatedQuestion

    @property
    def is_down(self) -> bool:
        """Whether the second evaluation found it lower."""
        return self.difference < 0

    @property
    def difference(self) -> float:
        """By how much its reciprocal rank grew, in (-1, 1)."""
        before, after = self.before.rank, self.after.rank
        return 1 / after - 1 / before if before and after else 0.0

    @property
    def newcomers(self) -> tuple[UUID, ...]:
        """Irrelevant notes that are above the relevant one only in the second, best first."""
        before = _above(self.before)
        return tuple(
            note
            for note in _above(self.after)
            if note not in before and note not in self.after.relevant
        )


def _above(question: EvaluatedQuestion) -> tuple[UUID, ...]:
    """Return what was retrieved above the first relevant note; all of it if that was not found."""
    if question.rank is None:
        return question.retrieved
    return question.retrieved[: question.rank - 1]


@dataclass(frozen=True, slots=True)
class ChangedAnswer:
    """A question whose answer cites something else first in the second of two evaluations."""

    before: EvaluatedQuestion
    after: EvaluatedQuestion


def first_citation(citations: Citations | None) -> tuple[NoteRange, ...]:
    """Return the citations of an answer's first sentence; empty without an answer."""
    return citations[0] if citations else ()


def changed_answers(
    before: Mapping[UUID, EvaluatedQuestion], after: Mapping[UUID, EvaluatedQuestion]
) -> list[ChangedAnswer]:
    """Return the questions whose first citation differs: those that were right first, then by id.

    A question is left out if answers were not evaluated in one of the evaluations, or its answer
    could not be made. If its answer was empty, it counts.
    """
    found = [
        ChangedAnswer(before[key], after[key])
        for key in before.keys() & after.keys()
        if before[key].citations is not None
        and after[key].citations is not None
        and first_citation(before[key].citations) != first_citation(after[key].citations)
    ]
    return sorted(found, key=lambda item: (-_first_is_right(item.before), item.before.golden_id))


def _first_is_right(question: EvaluatedQuestion) -> float:
    return (question.answer_metrics or {}).get(FIRST_CITATION, 0.0)


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """A field whose value changed; None if one side lacks the field."""

    field: str
    before: Any
    after: Any


def flips(
    before: Mapping[UUID, EvaluatedQuestion], after: Mapping[UUID, EvaluatedQuestion]
) -> list[Flip]:
    """Return the questions that flipped: lost ones first, then by the rank they had or have.

    Of those lost or gained, the ones that flipped only among what a user gets come last.
    """
    found = [
        Flip(before[key], after[key])
        for key in before.keys() & after.keys()
        if before[key].is_found != after[key].is_found or _served_differs(before[key], after[key])
    ]
    return sorted(
        found,
        key=lambda flip: (
            not flip.is_lost,
            flip.is_served_only,
            flip.before.rank or flip.after.rank or DEPTH,
            flip.before.golden_id,
        ),
    )


def shifts(
    before: Mapping[UUID, EvaluatedQuestion], after: Mapping[UUID, EvaluatedQuestion]
) -> list[Shift]:
    """Return the questions that both found at different ranks.

    First those that went down, then by how much their reciprocal rank changed.
    """
    found = [
        shift
        for key in before.keys() & after.keys()
        if (shift := Shift(before[key], after[key])).difference
    ]
    return sorted(
        found,
        key=lambda shift: (not shift.is_down, -abs(shift.difference), shift.before.golden_id),
    )


def _served_differs(before: EvaluatedQuestion, after: EvaluatedQuestion) -> bool:
    measured = before.is_served is not None and after.is_served is not None
    return measured and before.is_served != after.is_served


def config_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[ConfigChange]:
    """Return the fields that differ, by name; nested fields are named like `fusion.method`."""
    flat_before, flat_after = dict(_flat(before)), dict(_flat(after))
    return [
        ConfigChange(name, flat_before.get(name), flat_after.get(name))
        for name in sorted(flat_before.keys() | flat_after.keys())
        if flat_before.get(name) != flat_after.get(name)
    ]


def _flat(config: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in config.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
