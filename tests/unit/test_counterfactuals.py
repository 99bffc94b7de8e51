"""What lost questions are due to, by hand: which come back in which way."""

from collections.abc import Set as AbstractSet
from typing import Any
from uuid import UUID

import pytest

from rag_resources.core.attribution import config_changes
from rag_resources.core.configuration import RetrievalConfig
from rag_resources.core.counterfactuals import (
    MAX_MONTHS,
    MAX_QUESTIONS,
    Ask,
    Attribution,
    Cause,
    Change,
    Counterfactual,
    Plan,
    Suspected,
    Suspicion,
    find_causes,
    plan_counterfactuals,
)
from rag_resources.core.fusion_config import RetrieverConfig
from rag_resources.core.messages import Message
from rag_resources.core.retrievers import RetrieverName
from rag_resources.evaluation.comparison_tables import attribution_table
from tests.strategies import uuid_number

OLD, NEW = RetrievalConfig(model="e5_small"), RetrievalConfig(model="e5_small", contextual=False)
NOTES = {f"2025-0{month}": frozenset({uuid_number(month)}) for month in (1, 2, 3)}


def ids(*numbers: int) -> frozenset[UUID]:
    return frozenset(UUID(int=number) for number in numbers)


def plan(before: RetrievalConfig | None = OLD, **changes: Any) -> Plan:
    """What is planned if nothing changed but what is given."""
    nothing: dict[str, Any] = {
        "models": {"e5_small", "use_multilingual"},
        "windowed": frozenset(),
        "golden_changed": False,
        "new_notes": {},
        "statistics_differ": False,
    }
    return plan_counterfactuals(before, changes.pop("after", OLD), **nothing | changes)


def scripted(back: dict[tuple[Change | None, str], AbstractSet[UUID]]) -> Ask:
    """Questions that come back, by change and month; others do not."""

    def ask(item: Counterfactual, queries: frozenset[UUID]) -> AbstractSet[UUID]:
        return queries & back.get((item.undone, item.month), frozenset())

    return ask


def found(
    lost: int,
    planned: Plan,
    back: dict[tuple[Change | None, str], AbstractSet[UUID]],
    suspects: dict[tuple[Suspicion, str], AbstractSet[UUID]] | None = None,
) -> Attribution:
    questions = [UUID(int=number) for number in range(1, lost + 1)]
    return find_causes(questions, planned, scripted(back), suspects or {})


def test_what_changed_is_undone_and_nothing_else() -> None:
    assert (plan().single, plan().months, plan().together) == ((), (), None)
    planned = plan(after=NEW, golden_changed=True)
    assert planned.unchanged == Counterfactual(None, NEW)
    assert planned.single == (
        Counterfactual(Change.CONFIGURATION, OLD, fields="contextual"),
        Counterfactual(Change.GOLDEN, NEW, golden=True),
    )
    assert planned.together == Counterfactual(
        Change.TOGETHER, OLD, golden=True, together=(Change.CONFIGURATION, Change.GOLDEN)
    )


def test_model_and_configuration_are_undone_apart() -> None:
    """A threshold belongs to its model."""
    before = OLD.model_copy(update={"similarity_threshold": 0.8})
    after = NEW.model_copy(update={"model": "use_multilingual", "similarity_threshold": 0.2})
    configuration, model = plan(before, after=after).single
    assert configuration == Counterfactual(
        Change.CONFIGURATION, after.model_copy(update={"contextual": True}), fields="contextual"
    )
    assert model == Counterfactual(
        Change.MODEL, NEW.model_copy(update={"similarity_threshold": 0.8})
    )
    gone = plan(before, after=after, models={"use_multilingual"})
    assert [item.undone for item in gone.single] == [Change.CONFIGURATION]
    assert plan(None, after=after).single == ()


def test_windows_that_a_model_has_not_are_not_searched() -> None:
    """What changed can then only be undone as a whole."""
    before = OLD.model_copy(update={"model": "use_multilingual"})
    after = RetrievalConfig(
        model="e5_small", retrievers={RetrieverName.WINDOWS: RetrieverConfig(weight=1)}
    )
    planned = plan(before, after=after, windowed={"e5_small"})
    assert [item.undone for item in planned.single] == [Change.CONFIGURATION]
    both_at_once = (Change.CONFIGURATION, Change.MODEL)
    assert planned.together == Counterfactual(Change.TOGETHER, before, together=both_at_once)
    back = plan(after, after=before, windowed={"e5_small"})
    assert [item.undone for item in back.single] == [Change.MODEL]
    assert back.together == Counterfactual(Change.TOGETHER, after, together=both_at_once)
    both = plan(before, after=after, windowed={"e5_small", "use_multilingual"})
    assert [item.undone for item in both.single] == [Change.CONFIGURATION, Change.MODEL]
    gone = plan(after, after=before, models={"use_multilingual"})
    assert (gone.single, gone.together) == ((), None)


def test_the_model_of_words_alone_does_not_count() -> None:
    """Its vectors may be gone; the other configuration's model is the only one there is."""
    words = RetrievalConfig(model="retirado", strategy="fulltext")
    lost = plan(before=OLD, after=words, models={"e5_small"})
    assert lost.unchanged.config.strategy == "fulltext"
    assert [(item.undone, item.config) for item in lost.single] == [(Change.CONFIGURATION, OLD)]
    back = plan(before=words, after=OLD, models={"e5_small"})
    [undone] = back.single
    assert (undone.undone, undone.config.strategy) == (Change.CONFIGURATION, "fulltext")
    both = [*lost.single, *lost.fields, *back.single, *back.fields, lost.unchanged]
    assert {item.config.model for item in both} == {"e5_small"}


def test_a_model_without_vectors_is_not_searched() -> None:
    """It was retired: neither the model nor the configuration can be undone by itself."""
    other = RetrievalConfig(model="use_multilingual", contextual=False)
    gone = plan(before=OLD, after=other, models={"use_multilingual"})
    searched = [item.config for item in (*gone.single, *gone.fields) if item.config]
    assert {config.model for config in searched} == {"use_multilingual"}


def test_the_fields_of_a_configuration_are_undone_one_by_one() -> None:
    """Those that bring a question back by themselves are named; else the configuration is."""
    weights = {RetrieverName.FULLTEXT: RetrieverConfig(weight=0.9)}
    after = RetrievalConfig(
        model="e5_small",
        contextual=False,
        strategy="fulltext",
        retrievers={**OLD.retrievers, **weights},
    )
    planned = plan(after=after)
    assert [item.fields for item in planned.fields] == [
        "strategy",
        "retrievers.fulltext.weight",
        "contextual",
    ]
    for item in planned.fields:
        [differs] = config_changes(item.config.model_dump(), after.model_dump())
        assert differs.field == item.fields

    def ask(item: Counterfactual, queries: frozenset[UUID]) -> AbstractSet[UUID]:
        back = {
            "": {Change.CONFIGURATION: ids(1, 2, 3)},
            "strategy": {Change.CONFIGURATION: ids(1)},
            "contextual": {Change.CONFIGURATION: ids(1, 2)},
        }
        return queries & back.get(item.fields, {}).get(item.undone, frozenset())  # type: ignore[call-overload, no-any-return]

    assert find_causes([*ids(1, 2, 3, 4)], planned, ask, {}).causes == (
        Cause(Change.CONFIGURATION, "", ids(1, 2), fields="contextual"),
        Cause(Change.CONFIGURATION, "", ids(3)),
        Cause(Change.CONFIGURATION, "", ids(1), fields="strategy"),
    )


def test_a_part_that_cannot_be_undone_by_itself_is_left_out() -> None:
    """As one that needs windows which the model has not; many fields are named by their part."""
    after = RetrievalConfig(model="e5_small", contextual=False)
    before = RetrievalConfig(
        model="e5_small",
        retrievers={RetrieverName.WINDOWS: RetrieverConfig(weight=1)},
        reranking={"weight": 0.4, "batch_size": 3, "timeout_ms": 700, "model": "e5_small"},
    )
    planned = plan(before, after=after, windowed={"e5_small"})
    assert [item.fields for item in planned.fields] == ["retrievers", "contextual", "reranking"]
    without = plan(before, after=after)
    assert (without.single, without.fields) == ((), ())


def test_new_notes_are_hidden_together_then_by_month() -> None:
    """One month alone needs no second look; of many, those with the most notes are looked at."""
    planned = plan(new_notes=NOTES)
    assert [item.month for item in planned.months] == ["2025-01", "2025-02", "2025-03"]
    [all_of_them] = planned.single
    assert (all_of_them.month, len(all_of_them.hidden)) == ("", 3)
    only = plan(new_notes={"2025-01": NOTES["2025-01"]})
    assert (only.single[0].month, only.months) == ("2025-01", ())
    many = {f"2024-{month:02}": frozenset(map(uuid_number, range(month))) for month in range(1, 13)}
    months = [item.month for item in plan(new_notes=many).months]
    assert months == [f"2024-{month:02}" for month in range(12, 12 - MAX_MONTHS, -1)]


def test_the_change_that_brings_questions_back_is_their_cause_with_its_share() -> None:
    """Of eight lost: six by the configuration, one by the one new note, one by nothing."""
    planned = plan(after=NEW, new_notes={"2025-01": NOTES["2025-01"]})
    result = found(
        8,
        planned,
        {
            (Change.CONFIGURATION, ""): ids(1, 2, 3, 4, 5, 6),
            (Change.NOTES, "2025-01"): ids(7),
        },
    )
    assert result.causes == (
        Cause(Change.CONFIGURATION, "", ids(1, 2, 3, 4, 5, 6), fields="contextual"),
        Cause(Change.NOTES, "2025-01", ids(7)),
    )
    assert [result.share(cause.queries) for cause in result.causes] == [0.75, 0.125]
    assert result.unexplained == ids(8)
    assert result.suspected == (Suspected(Suspicion.UNKNOWN, "", ids(8)),)


def test_a_loss_that_no_month_explains_is_put_on_no_month() -> None:
    result = found(
        4, plan(after=NEW, new_notes=NOTES), {(Change.CONFIGURATION, ""): ids(1, 2, 3, 4)}
    )
    assert result.causes == (Cause(Change.CONFIGURATION, "", ids(1, 2, 3, 4), fields="contextual"),)


def test_notes_of_several_months_that_displace_a_note_together_are_told_so() -> None:
    result = found(
        3,
        plan(new_notes=NOTES),
        {(Change.NOTES, ""): ids(1, 2, 3), (Change.NOTES, "2025-02"): ids(1)},
    )
    assert result.causes == (
        Cause(Change.NOTES, "", ids(2, 3)),
        Cause(Change.NOTES, "2025-02", ids(1)),
    )


def test_a_question_found_again_with_nothing_undone_has_no_cause() -> None:
    everything = ids(1, 2)
    result = found(2, plan(after=NEW), {(None, ""): ids(1), (Change.CONFIGURATION, ""): everything})
    assert (result.unstable, result.causes) == (
        ids(1),
        (Cause(Change.CONFIGURATION, "", ids(2), fields="contextual"),),
    )


def test_changes_that_only_count_together_are_told_so() -> None:
    """A question that one change alone brings back is not asked again with all of them."""
    asked: list[tuple[Change | None, int]] = []
    back = {(Change.GOLDEN, ""): ids(1), (Change.TOGETHER, ""): ids(1, 2)}

    def ask(item: Counterfactual, queries: frozenset[UUID]) -> AbstractSet[UUID]:
        asked.append((item.undone, len(queries)))
        return scripted(back)(item, queries)

    result = find_causes([*ids(1, 2)], plan(after=NEW, golden_changed=True), ask, {})
    assert result.causes == (
        Cause(Change.GOLDEN, "", ids(1)),
        Cause(Change.TOGETHER, "", ids(2), (Change.CONFIGURATION, Change.GOLDEN)),
    )
    rows = attribution_table(result).rows
    at_once = [str(Message.CAUSE_CONFIGURATION), str(Message.CAUSE_GOLDEN)]
    assert rows[1][0] == Message.CAUSE_TOGETHER.format(changes=" + ".join(at_once))
    assert asked == [
        (None, 2),
        (Change.CONFIGURATION, 2),
        (Change.GOLDEN, 2),
        (Change.TOGETHER, 1),
    ]


def test_what_cannot_be_undone_is_suspected_only_of_what_nothing_explains() -> None:
    result = found(
        3,
        plan(after=NEW),
        {(Change.CONFIGURATION, ""): ids(1)},
        {
            (Suspicion.MODEL_REBUILT, ""): ids(1, 2, 3),
            (Suspicion.MONTH_WORKED_ON, "2025-03"): ids(1, 3),
            (Suspicion.NOTE_GONE, ""): frozenset(),
        },
    )
    assert result.suspected == (
        Suspected(Suspicion.MODEL_REBUILT, "", ids(2, 3)),
        Suspected(Suspicion.MONTH_WORKED_ON, "2025-03", ids(3)),
    )


@pytest.mark.parametrize("lost", [0, MAX_QUESTIONS + 7])
def test_the_cost_is_bounded_and_told(lost: int) -> None:
    asked: list[int] = []

    def ask(_: Counterfactual, queries: frozenset[UUID]) -> AbstractSet[UUID]:
        asked.append(len(queries))
        return frozenset()

    questions = [UUID(int=number) for number in range(lost)]
    result = find_causes(questions, plan(after=NEW, new_notes=NOTES), ask, {})
    assert (result.lost, len(result.examined)) == (lost, min(lost, MAX_QUESTIONS))
    assert max(asked, default=0) == min(lost, MAX_QUESTIONS)
    # Unchanged, configuration, notes and together; no month, since hiding all brings nothing back.
    assert len(asked) == (4 if lost else 0)
    assert result.share(frozenset()) == 0
