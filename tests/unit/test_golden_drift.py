"""Drift of a golden dataset."""

import pytest

from rag_resources.core.golden import GoldenEntry
from rag_resources.core.golden_drift import (
    MIX_SHIFT,
    category_shift,
    measure_drift,
)
from tests.strategies import uuid_number

RELEVANT, OTHER, THIRD = uuid_number(1), uuid_number(2), uuid_number(3)


def question(number: int, text: str = "", category: str = "factual") -> GoldenEntry:
    return GoldenEntry(
        query=text or f"¿Pregunta {number}?",
        relevant_note_ids=(RELEVANT,),
        expected_answer="Sí.",
        category=category,
        difficulty=1,
        golden_id=uuid_number(100 + number),
    )


def test_the_distance_of_two_mixes_is_the_share_that_would_have_to_change() -> None:
    """By hand: of 10 questions 3 would have to change category."""
    shift = category_shift({"factual": 5, "causal": 5}, {"factual": 8, "causal": 2, "temporal": 0})
    assert shift.distance == pytest.approx(0.3)
    assert shift.before == {"causal": 0.5, "factual": 0.5}
    assert category_shift({"factual": 2}, {"causal": 7}).distance == 1
    assert category_shift({"factual": 2}, {"factual": 7}).distance == 0


@pytest.mark.parametrize(("causal", "shifted"), [(1, False), (2, True)])
def test_a_mix_has_shifted_above_the_threshold(causal: int, shifted: bool) -> None:
    """One question in ten may change; two may not."""
    assert MIX_SHIFT == 0.1
    entries = [
        question(number, category="causal" if number < causal else "factual")
        for number in range(10)
    ]
    drift = measure_drift(entries, categories_before={"factual": 20})
    assert drift.mix
    assert drift.mix.distance == pytest.approx(causal / 10)
    assert drift.mix_shifted is shifted
    assert any("causal 0% → 20%" in line for line in drift.findings) is shifted
