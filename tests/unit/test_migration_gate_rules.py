"""The gate between batches: values computed by hand, and simulated migrations of 24 batches."""

from collections.abc import Iterable, Sequence
from functools import cache
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_resources.core.configuration import RetrievalConfig
from rag_resources.core.migration_gate import (
    ALPHA,
    MIN_COSINE,
    Baseline,
    VectorState,
    find_drop,
    judge_batch,
    level_of_look,
    refuse_batch,
    serving_with,
    without_windows,
)
from tests.strategies import retrieval_configs

BATCHES = 24
QUESTIONS = 132
MIGRATIONS = 1_000


def hits(values: Iterable[object], *, first: int = 0) -> dict[UUID, bool]:
    return {UUID(int=number): bool(value) for number, value in enumerate(values, start=first)}


def baseline(values: Iterable[object]) -> Baseline:
    return Baseline(UUID(int=0), "baseline", hits(values))


def levels(planned: Iterable[int]) -> list[float]:
    """The levels of successive looks, each with its own number of planned looks."""
    spent: list[float] = []
    for count in planned:
        spent.append(level_of_look(recorded=len(spent), planned=count, spent=sum(spent)))
    return spent


# --- The test of one look -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lost", "gained", "p_value"),
    [(5, 0, 1 / 32), (8, 2, 56 / 1024), (3, 3, 42 / 64), (0, 5, 1.0), (0, 0, 1.0)],
)
def test_exact_mcnemar(lost: int, gained: int, p_value: float) -> None:
    """Half the coins' tail, by hand; a gain is never evidence of a drop."""
    before = hits([1] * lost + [0] * gained + [1, 0])
    now = hits([0] * lost + [1] * gained + [1, 0])
    drop = find_drop(before, now)
    assert drop is not None
    assert (drop.compared, drop.lost, drop.gained) == (lost + gained + 2, lost, gained)
    assert drop.p_value == pytest.approx(p_value)
    assert drop.before - drop.now == pytest.approx((lost - gained) / drop.compared)


def test_only_questions_in_common_are_compared() -> None:
    drop = find_drop(hits([1, 1, 1]), hits([0, 1, 1], first=1))
    assert drop is not None
    assert (drop.compared, drop.before, drop.now, drop.lost) == (2, 1.0, 0.5, 1)
    assert find_drop(hits([1]), hits([1], first=1)) is None


# --- The verdict --------------------------------------------------------------------------------


def test_a_significant_drop_closes_the_gate() -> None:
    """It says between which rates, on how many questions, with which p-value and level."""
    verdict = judge_batch(hits([0] * 8 + [1] * 2), baseline([1] * 10), floor=0, level=0.005)
    assert not verdict.is_open
    assert verdict.reason == (
        "Hit_Rate@10 = 0.200 (preguntas: 10); caída significativa frente a «baseline»: de 1.000 a"
        " 0.200 en las 10 preguntas comunes (perdidas: 8; ganadas: 0; p = 0.0039; límite de esta"
        " medición: 0.005)"
    )
    again = judge_batch(hits([0] * 8 + [1] * 2), baseline([1] * 10), floor=0, level=0.003)
    assert again.is_open
    assert "sin caída significativa frente a «baseline»" in again.reason


def test_a_drop_exactly_at_the_level_closes_the_gate_and_the_level_is_told() -> None:
    """Five lost and none gained: 1/32."""
    lost, before = hits([0] * 5 + [1] * 5), baseline([1] * 10)
    verdict = judge_batch(lost, before, floor=0, level=1 / 32)
    assert (verdict.is_open, verdict.level) == (False, 1 / 32)
    assert judge_batch(lost, before, floor=0, level=0.0312).is_open


@pytest.mark.parametrize(
    ("found", "of", "floor", "is_open"),
    [(17, 20, 0.85, True), (16, 20, 0.85, False), (0, 20, 0.0, True), (20, 20, 1.0, True)],
)
def test_under_the_floor_the_gate_closes_whatever_served_before(
    found: int, of: int, floor: float, *, is_open: bool
) -> None:
    now = hits([1] * found + [0] * (of - found))
    for before in (None, baseline([0] * of), Baseline(UUID(int=0), "otra", hits([1], first=99))):
        verdict = judge_batch(now, before, floor=floor, level=ALPHA)
        assert verdict.is_open is is_open
        assert (f"MIGRATION_FLOOR = {floor:.3f}" in verdict.reason) is not is_open
        assert (verdict.drop is None) == ("sin evaluación de lo que sirve" in verdict.reason)


# --- The levels of many looks -------------------------------------------------------------------


def test_planned_looks_have_ever_more_and_the_others_ever_less() -> None:
    """0.045 in parts of 1, 3, 5 and 7, then half of 0.005, a third and a quarter of the rest."""
    planned = [0.045 * part / 16 for part in (1, 3, 5, 7)]
    assert levels([4] * 7) == pytest.approx([*planned, 0.005 / 2, 0.005 / 6, 0.005 / 12])


@given(st.lists(st.integers(1, 100), min_size=1, max_size=60))
def test_whatever_is_planned_the_levels_sum_to_alpha_at_most(planned: list[int]) -> None:
    """One more month or another FIRST_MONTH during a migration spends no alpha twice."""
    spent = levels(planned)
    assert min(spent) >= 0
    assert sum(spent) <= ALPHA + 1e-12


@cache
def p_value_of(lost: int, gained: int) -> float:
    drop = find_drop(hits([1] * lost + [0] * gained + [1]), hits([0] * lost + [1] * gained + [1]))
    assert drop is not None
    return drop.p_value


def share_stopped(
    *,
    lost: float,
    gained: float,
    spending: Sequence[float],
    batches: int = BATCHES,
    questions: int = QUESTIONS,
) -> float:
    """Simulate migrations, and return in how many a look found a drop.

    A question changes when the month of its note is migrated, so every look holds all of those
    before it.

    Args:
        lost: Share of questions that are found before their month and not after.
        gained: The other way round.
        spending: Level of each look; fewer than there are batches end a migration early.
        batches: Number of batches of a migration.
        questions: Number of golden questions.
    """
    random = np.random.default_rng(1983)
    stopped = 0
    for __ in range(MIGRATIONS):
        changes = random.choice([-1, 1, 0], questions, p=[lost, gained, 1 - lost - gained])
        months = random.integers(0, batches, questions)
        looks = [changes[months <= look] for look in range(batches)]
        stopped += any(
            p_value_of(int((look == -1).sum()), int((look == 1).sum())) <= level
            for look, level in zip(looks, spending, strict=False)
        )
    return stopped / MIGRATIONS


@pytest.mark.parametrize("churn", [0.02, 0.08, 0.2])
def test_a_harmless_migration_is_stopped_in_5_percent_of_cases_at_most(churn: float) -> None:
    """24 looks at questions that improve as often as they get worse."""
    spending = levels([BATCHES] * BATCHES)
    assert share_stopped(lost=churn, gained=churn, spending=spending) <= ALPHA


@pytest.mark.parametrize(("questions", "power"), [(132, 0.15), (400, 0.77), (1_000, 0.99)])
def test_a_loss_of_5_points_is_found_with_the_power_that_the_page_states(
    questions: int, power: float
) -> None:
    """Seven of 100 questions are lost and two gained, in 24 batches, as docs/evaluating.md says."""
    found = share_stopped(
        lost=0.07, gained=0.02, spending=levels([BATCHES] * BATCHES), questions=questions
    )
    assert found == pytest.approx(power, abs=0.03)


# --- What is measured with what -------------------------------------------------------------------


@given(retrieval_configs(["m", "n"]), st.sampled_from(["m", "n", "o"]))
def test_property_54_a_model_is_measured_with_what_serves_and_nothing_else(
    serving: RetrievalConfig, model: str
) -> None:
    """No other configuration takes part: only the model and what the model needs differ."""
    measured = serving_with(serving, model)
    assert measured.uses_vectors
    assert (measured.model, measured.unit) == (model, "chunks")
    assert serving_with(measured, model) == measured
    dropped = {"unit", "model", "retrievers", "strategy", "similarity_threshold"}
    kept = RetrievalConfig.model_fields.keys() - dropped
    assert measured.model_dump(include=kept) == serving.model_dump(include=kept)
    alike = serving.model == model
    asked = serving if alike else without_windows(serving)
    asked = asked.model_copy(update={"unit": "chunks"})  # whole notes have vectors anyhow
    if asked.uses_vectors:
        assert (measured.retrievers, measured.strategy) == (asked.retrievers, asked.strategy)
        threshold = serving.similarity_threshold if alike else None
        assert measured.similarity_threshold == threshold


@pytest.mark.parametrize(
    ("state", "faults"),
    [
        (VectorState(0, None, 0, 0), 0),
        (VectorState(4, MIN_COSINE, 0, 0), 0),
        (VectorState(4, 0.9989, 0, 0), 1),
        (VectorState(4, float("nan"), 0, 0), 1),
        (VectorState(4, 1.0, 1, 0), 1),
        (VectorState(4, None, 0, 1), 1),
        (VectorState(4, -1.0, 5, 5), 3),
    ],
)
def test_vectors_that_are_not_the_models_refuse_a_batch(state: VectorState, faults: int) -> None:
    assert len(state.faults) == faults
    verdict = refuse_batch(state)
    assert (verdict is None) == (not faults)
    if verdict:
        assert (verdict.is_open, verdict.level, verdict.drop) == (False, 0.0, None)
