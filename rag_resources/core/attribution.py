"""What changed between two evaluations, which questions flipped, and what lost them.

`evaluation.comparison` reads the evaluations and asks the lost questions again.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from rag_resources.core.metrics import DEPTH, SERVED


@dataclass(frozen=True, slots=True)
class EvaluatedQuestion:
    """The result of a question in one evaluation.

    Attributes:
        relevant: Ids of its relevant notes.
        retrieved: Ids of the first distinct notes, best first, at most `DEPTH`.
        rank: 1-based rank of the first relevant note among those; None if there is none.
        metrics: By name.
        error: Why it failed; None if it did not.
        places: Identifiers of the places it names, in any order.
        answer_metrics: The metrics of its answer; None if nothing was cited.
        latency_ms: Time of its retrieval, without users' deadline.
    """

    golden_id: UUID
    query: str
    category: str
    relevant: tuple[UUID, ...]
    retrieved: tuple[UUID, ...]
    rank: int | None
    metrics: Mapping[str, float]
    error: str | None = None
    places: frozenset[tuple[str, int, int]] = frozenset()
    answer_metrics: Mapping[str, float] | None = None
    difficulty: int | None = None
    latency_ms: float | None = None

    @property
    def is_found(self) -> bool:
        """Whether a relevant note is among the first ten."""
        return self.rank is not None

    @property
    def is_served(self) -> bool:
        """Whether a relevant note is among what a user gets."""
        return self.metrics[SERVED] > 0


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


def _above(question: EvaluatedQuestion) -> tuple[UUID, ...]:
    """Return what was retrieved above the first relevant note; all of it if that was not found."""
    if question.rank is None:
        return question.retrieved
    return question.retrieved[: question.rank - 1]


@dataclass(frozen=True, slots=True)
class Attribution:
    """Which lost questions the former configuration finds in the present data.

    Attributes:
        lost: Number of lost questions.
        by_configuration: Those that it finds: the configuration lost them.
        by_data: Those that it misses, too: notes, questions or a model's weights lost them.
        obstacle: Why they could not be asked, in Spanish; None if they were, or need not be.
    """

    lost: int
    by_configuration: frozenset[UUID] = frozenset()
    by_data: frozenset[UUID] = frozenset()
    obstacle: str | None = None


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
        if before[key].is_found != after[key].is_found
        or before[key].is_served != after[key].is_served
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
