"""Drift of a golden dataset."""

from typing import Any

import pytest

from rag_resources.core.golden import GoldenEntry
from rag_resources.core.golden_drift import (
    MIX_SHIFT,
    GoldenDrift,
    NoteState,
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


QUESTIONS = [question(number) for number in range(8)]


def test_nothing_to_look_at() -> None:
    """Also before anything was evaluated, and with no question at all."""
    for entries in (QUESTIONS, []):
        drift = measure_drift(entries)
        assert drift.findings == []
        assert drift.to_json()["categoryMix"] is None
        assert f"{len(entries)} preguntas" in drift.summary


def test_notes_gone_and_edited_are_named_with_their_question() -> None:
    entries = [question(1, "¿Quién?"), question(2, "¿Dónde?")]
    states = [
        NoteState(uuid_number(102), OTHER, "viaje.md", gone=False),
        NoteState(uuid_number(101), RELEVANT, "gata.md", gone=True),
        NoteState(uuid_number(102), THIRD, "tren.md", gone=False),
    ]
    drift = measure_drift(entries, notes=states)
    gone, edited = drift.findings
    assert "ya no existen" in gone
    assert ("gata.md" in gone, "«¿Quién?»" in gone) == (True, True)
    assert "editadas" in edited
    assert ("viaje.md, tren.md" in edited, "«¿Dónde?»" in edited) == (True, True)
    assert drift.to_json()["edited"] == [
        {"id": str(uuid_number(102)), "query": "¿Dónde?", "notes": ["viaje.md", "tren.md"]}
    ]


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


def test_a_mix_that_shifted_is_told_by_the_categories_that_changed() -> None:
    """One new, one gone, one that has another share; what stays as it was is left out."""
    categories = ["causal"] * 5 + ["temporal"] * 3 + ["comparative"] * 2
    drift = measure_drift(
        [question(number, category=name) for number, name in enumerate(categories)],
        categories_before={"causal": 50, "temporal": 20, "factual": 30},
    )
    (finding,) = drift.findings
    changes = "comparative 0% → 20%, factual 30% → 0%, temporal 20% → 30%."
    assert f": {changes}" in finding
    assert "0.30 (límite: 0.1)" in finding


def test_a_mix_of_one_category_that_gave_way_to_another_is_told_by_both() -> None:
    entries = [question(number, category="causal") for number in range(3)]
    (finding,) = measure_drift(entries, categories_before={"factual": 7}).findings
    assert "causal 0% → 100%, factual 100% → 0%." in finding


def test_everything_found_is_in_the_json() -> None:
    drift = measure_drift(
        QUESTIONS,
        notes=[NoteState(uuid_number(100), RELEVANT, "gata.md", gone=True)],
        categories_before={"causal": 1},
    )
    found: dict[str, Any] = drift.to_json()
    ids = [str(entry.golden_id) for entry in QUESTIONS]
    assert found == {
        "questions": 8,
        "gone": [{"id": ids[0], "query": "¿Pregunta 0?", "notes": ["gata.md"]}],
        "edited": [],
        "places": [],
        "categoryMix": {
            "before": {"causal": 1.0},
            "now": {"factual": 1.0},
            "distance": 1.0,
            "shifted": True,
        },
        "findings": drift.findings,
    }
    assert len(drift.findings) == 2
    assert GoldenDrift(questions=0).to_json()["findings"] == []
