"""Finds the causes of lost questions: they are asked again with one change undone at a time.

A change that brings a question back is its cause. The function that asks is passed in, from
`evaluation.attribution`.
"""

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from uuid import UUID

from rag_resources.core.attribution import config_changes
from rag_resources.core.configuration import RetrievalConfig, usable_retrieval
from rag_resources.core.retrievers import RetrieverName

MAX_QUESTIONS = 50
"""Most lost questions that are asked again."""
MAX_MONTHS = 6
"""Most months whose new notes are hidden one by one: those with the most new notes."""

MAX_NAMED_FIELDS = 3
"""Most fields of a part of the configuration that are named; with more, the part is."""

_OF_THE_MODEL = ("model", "similarity_threshold")


class Change(StrEnum):
    """A change between two evaluations that can be undone for a question."""

    CONFIGURATION = "configuration"
    MODEL = "model"
    GOLDEN = "golden"
    NOTES = "notes"
    STATISTICS = "statistics"
    TOGETHER = "together"
    """All of them at once; none alone brings the question back."""


class Suspicion(StrEnum):
    """A change that cannot be undone, so nothing proves that it is the cause."""

    CONFIGURATION = "configuration"
    MODEL_GONE = "model_gone"
    MODEL_REBUILT = "model_rebuilt"
    STATISTICS_REBUILT = "statistics_rebuilt"
    CHUNKING = "chunking"
    NOTE_GONE = "note_gone"
    NOTE_CHANGED = "note_changed"
    MONTH_WORKED_ON = "month_worked_on"
    MANY_NOTES = "many_notes"
    ANSWERER = "answerer"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Counterfactual:
    """A way to ask lost questions again.

    Attributes:
        undone: The change that is undone; None undoes nothing.
        month: As `YYYY-MM`, if only the new notes of this month are hidden.
        config: How to search.
        golden: Whether the question and its relevant notes are those of before.
        hidden: Notes that are not searched.
        rebuilt: Whether the word statistics are counted anew.
        together: The changes undone at once; empty for a single one.
        fields: The fields of the configuration that are undone; empty if all its parts are, and
            several differ.
    """

    undone: Change | None
    config: RetrievalConfig
    month: str = ""
    fields: str = ""
    golden: bool = False
    hidden: frozenset[UUID] = frozenset()
    rebuilt: bool = False
    together: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """The ways in which lost questions are asked again.

    Attributes:
        unchanged: With nothing undone. Questions that it brings back were not lost for good.
        single: Each with one change undone.
        months: Each with the new notes of one month hidden; only for questions that come back when
            all new notes are hidden.
        together: With all changes undone, for questions that nothing else brings back; None if
            there are not several changes.
        fields: Each with one part of the configuration undone; only for questions that come back
            when all of them are.
    """

    unchanged: Counterfactual
    single: tuple[Counterfactual, ...]
    months: tuple[Counterfactual, ...]
    together: Counterfactual | None
    fields: tuple[Counterfactual, ...] = ()

    def parts_of(self, undone: Change | None) -> tuple[Counterfactual, ...]:
        """Return the ways that undo a change in part; empty if it has no parts."""
        if undone is Change.NOTES:
            return self.months
        return self.fields if undone is Change.CONFIGURATION else ()


@dataclass(frozen=True, slots=True)
class Cause:
    """A change, and the lost questions that come back when it is undone.

    Attributes:
        month: As `YYYY-MM`; empty for any change but new notes, and for those of several months.
        together: The changes that only count at once; empty for a single one.
        fields: The fields of the configuration that suffice; empty for any other change, and for
            fields that only count at once.
    """

    change: Change
    month: str
    queries: frozenset[UUID]
    together: tuple[Change, ...] = ()
    fields: str = ""


@dataclass(frozen=True, slots=True)
class Suspected:
    """A change that cannot be undone, and the questions that it may have lost.

    Attributes:
        month: As `YYYY-MM`, if it is about the notes of one month.
    """

    suspicion: Suspicion
    month: str
    queries: frozenset[UUID]


@dataclass(frozen=True, slots=True)
class Attribution:
    """The causes of the lost questions.

    Attributes:
        lost: Number of lost questions.
        examined: Those that were asked again, the best ranked before first.
        unstable: Those of them that are found again with nothing undone.
        causes: Most questions first. A question that comes back in several ways counts in each.
        suspected: For the questions that nothing brings back.
    """

    lost: int
    examined: frozenset[UUID]
    unstable: frozenset[UUID]
    causes: tuple[Cause, ...]
    suspected: tuple[Suspected, ...]

    @property
    def unexplained(self) -> frozenset[UUID]:
        """The questions that nothing brings back."""
        return self.examined - self.unstable - _all_of(self.causes)

    def share(self, queries: AbstractSet[UUID]) -> float:
        """Return the share that some questions have of the examined ones, in [0, 1]."""
        return len(queries) / len(self.examined) if self.examined else 0.0


Ask = Callable[[Counterfactual, frozenset[UUID]], AbstractSet[UUID]]
"""Asks questions in a way and returns those that are found, by golden id."""


def plan_counterfactuals(
    before: RetrievalConfig | None,
    after: RetrievalConfig,
    *,
    models: AbstractSet[str],
    windowed: AbstractSet[str],
    golden_changed: bool,
    new_notes: Mapping[str, frozenset[UUID]],
    statistics_differ: bool,
) -> Plan:
    """Return the ways to ask lost questions again, one for each change that can be undone.

    Args:
        before: The configuration of the first evaluation; None if it cannot be used any more.
        after: That of the second.
        models: The models with vectors.
        windowed: Those of them with windows.
        golden_changed: Whether a lost question was edited, or its relevant notes.
        new_notes: Notes that are new or changed since the first evaluation, by month.
        statistics_differ: Whether the word statistics differ from those of the present notes.
    """
    single: list[Counterfactual] = []
    together: dict[str, object] = {}
    usable = after
    fields: tuple[Counterfactual, ...] = ()
    if before is not None:
        # The model of a configuration that searches no vectors does not count.
        if not after.needs_vectors:
            after = _with_model_of(before, after)
        elif not before.needs_vectors:
            before = _with_model_of(after, before)
        can_search = partial(_can_search, models=models, windowed=windowed)
        searched, embedded = _with_model_of(after, before), _with_model_of(before, after)
        if searched != after and can_search(searched):
            parts = _by_fields(searched, after, can_search)
            only = parts[0].fields if len(parts) == 1 and parts[0].config == searched else ""
            single.append(Counterfactual(Change.CONFIGURATION, searched, fields=only))
            fields = () if only else parts
        if before.model != after.model and can_search(embedded):
            single.append(Counterfactual(Change.MODEL, embedded))
        usable = next(filter(can_search, (before, searched)), after)
    if golden_changed:
        single.append(Counterfactual(Change.GOLDEN, after, golden=True))
        together["golden"] = True
    hidden = frozenset(note for notes in new_notes.values() for note in notes)
    if hidden:
        only = next(iter(new_notes)) if len(new_notes) == 1 else ""
        single.append(Counterfactual(Change.NOTES, after, month=only, hidden=hidden))
        together["hidden"] = hidden
    if statistics_differ:
        single.append(Counterfactual(Change.STATISTICS, after, rebuilt=True))
        together["rebuilt"] = True
    undone = _undone(usable, after) + tuple(
        item.undone for item in single if item.undone and item.undone not in _OF_CONFIGURATIONS
    )
    largest = sorted(new_notes, key=lambda month: (-len(new_notes[month]), month))[:MAX_MONTHS]
    return Plan(
        Counterfactual(None, after),
        tuple(single),
        tuple(
            Counterfactual(Change.NOTES, after, month=month, hidden=new_notes[month])
            for month in largest
            if len(new_notes) > 1
        ),
        Counterfactual(Change.TOGETHER, usable, together=undone, **together)  # type: ignore[arg-type]
        if len(single) > 1 or usable not in (after, *(item.config for item in single))
        else None,
        fields,
    )


def _by_fields(
    before: RetrievalConfig,
    after: RetrievalConfig,
    can_search: Callable[[RetrievalConfig], bool],
) -> tuple[Counterfactual, ...]:
    """Return a way for each part of a configuration that differs and can be undone by itself."""
    old, new = before.model_dump(mode="json"), after.model_dump(mode="json")
    found = []
    for part in (name for name in new if old[name] != new[name]):
        undone = usable_retrieval(new | {part: old[part]}, origin=part)
        if undone is not None and can_search(undone):
            changed = [own.field for own in config_changes({part: old[part]}, {part: new[part]})]
            named = ", ".join(changed) if len(changed) <= MAX_NAMED_FIELDS else part
            found.append(Counterfactual(Change.CONFIGURATION, undone, fields=named))
    return tuple(found)


def find_causes(
    lost: Sequence[UUID],
    plan: Plan,
    ask: Ask,
    suspects: Mapping[tuple[Suspicion, str], AbstractSet[UUID]],
) -> Attribution:
    """Ask lost questions again in the ways of a plan, and return their causes.

    Args:
        lost: The most important first; at most `MAX_QUESTIONS` are asked.
        plan: The ways to ask them.
        ask: Asks them.
        suspects: Changes that cannot be undone, with their month or an empty text, and the
            questions that each may be the cause of.
    """
    examined = frozenset(lost[:MAX_QUESTIONS])
    unstable = _found(ask, plan.unchanged, examined)
    left = examined - unstable
    causes: list[Cause] = []
    for item in plan.single:
        back = _found(ask, item, left)
        causes += _causes(item, plan.parts_of(item.undone), back, ask)
    rest = left - _all_of(causes)
    if plan.together:
        back = _found(ask, plan.together, rest)
        causes.append(_cause(plan.together, back))
        rest -= back
    return Attribution(
        len(lost),
        examined,
        unstable,
        tuple(
            sorted(
                (cause for cause in causes if cause.queries),
                key=lambda cause: (-len(cause.queries), cause.change, cause.month, cause.fields),
            )
        ),
        _suspected(rest, suspects),
    )


_OF_CONFIGURATIONS = (Change.CONFIGURATION, Change.MODEL)


def _undone(usable: RetrievalConfig, after: RetrievalConfig) -> tuple[Change, ...]:
    """Return what is undone of the configuration after by searching with another instead."""
    differ = (_with_model_of(after, usable) != after, usable.model != after.model)
    return tuple(change for change, is_so in zip(_OF_CONFIGURATIONS, differ, strict=True) if is_so)


def _with_model_of(model_of: RetrievalConfig, config: RetrievalConfig) -> RetrievalConfig:
    """Return a configuration with the model of another, and what belongs to that model."""
    if config.model == model_of.model:
        return config
    return config.model_copy(update={name: getattr(model_of, name) for name in _OF_THE_MODEL})


def _can_search(
    config: RetrievalConfig, *, models: AbstractSet[str], windowed: AbstractSet[str]
) -> bool:
    """Whether the model of a configuration has the vectors and windows that it searches."""
    has_windows = RetrieverName.WINDOWS not in config.searched or config.model in windowed
    return has_windows and (not config.needs_vectors or config.model in models)


def _found(ask: Ask, item: Counterfactual, queries: frozenset[UUID]) -> frozenset[UUID]:
    return frozenset(ask(item, queries)) & queries if queries else frozenset()


def _cause(item: Counterfactual, queries: frozenset[UUID]) -> Cause:
    return Cause(item.undone or Change.TOGETHER, item.month, queries, item.together, item.fields)


def _causes(
    whole: Counterfactual, parts: Sequence[Counterfactual], back: frozenset[UUID], ask: Ask
) -> list[Cause]:
    """Find the parts of a change that alone keep questions from coming back; else the whole."""
    causes = [_cause(item, _found(ask, item, back)) for item in parts]
    return [*causes, _cause(whole, back - _all_of(causes))]


def _all_of(causes: Sequence[Cause]) -> frozenset[UUID]:
    return frozenset(query for cause in causes for query in cause.queries)


def _suspected(
    rest: frozenset[UUID], suspects: Mapping[tuple[Suspicion, str], AbstractSet[UUID]]
) -> tuple[Suspected, ...]:
    found = [
        Suspected(suspicion, month, rest & queries)
        for (suspicion, month), queries in suspects.items()
        if rest & queries
    ]
    known = frozenset(query for item in found for query in item.queries)
    if rest - known:
        found.append(Suspected(Suspicion.UNKNOWN, "", rest - known))
    return tuple(
        sorted(found, key=lambda item: (-len(item.queries), item.suspicion.value, item.month))
    )
