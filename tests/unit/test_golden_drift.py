"""Drift of a golden dataset, and suggestions of further relevant notes."""

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from rag_resources.core.golden import CANDIDATE_TAG, GoldenEntry
from rag_resources.core.golden_candidates import SNIPPET_CHARS, find_candidates, snippet
from rag_resources.core.golden_drift import (
    DECIDING_QUESTIONS,
    MIX_SHIFT,
    GoldenDrift,
    NoteState,
    Outcome,
    category_shift,
    measure_drift,
)
from rag_resources.core.golden_duplicates import NEAR_DUPLICATE, near_duplicates
from rag_resources.core.types import Note
from tests.corpus import START
from tests.strategies import uuid_number

RELEVANT, OTHER, THIRD = uuid_number(1), uuid_number(2), uuid_number(3)
NOTES = (RELEVANT, OTHER, THIRD)
LATER = START + timedelta(days=1)


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


def ranked(entry: GoldenEntry, configuration: str, *notes: UUID) -> Outcome:
    """What a configuration found, in order."""
    assert entry.golden_id
    rank = notes.index(RELEVANT) + 1 if RELEVANT in notes else None
    return Outcome(configuration, entry.golden_id, rank, notes)


def asked(hits: dict[int, list[bool]]) -> list[Outcome]:
    """Which configurations found the relevant note of which question."""
    return [
        ranked(QUESTIONS[number], f"c{place}", *((RELEVANT,) if hit else (OTHER,)))
        for number, found in hits.items()
        for place, hit in enumerate(found)
    ]


def lexemes(**stems: str) -> dict[UUID, frozenset[str]]:
    """The stems of questions, by `q` and number."""
    return {uuid_number(100 + int(name[1:])): frozenset(s.split()) for name, s in stems.items()}


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


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        ("a b c d", "a b c d e", True),  # 4 of 5
        ("a b c d e f g h", "a b c d e f g x", False),  # 7 of 9
        ("a b c", "a b d", False),
        ("a", "a", True),
        ("a b c d e f g h i j k l", "a b c d e f g h i j k l m n o", True),  # 12 of 15
        ("", "", False),
    ],
)
def test_questions_that_share_four_words_of_five_are_one(
    first: str, second: str, found: bool
) -> None:
    assert NEAR_DUPLICATE == 0.8
    pairs = near_duplicates(QUESTIONS[:2], lexemes(q0=first, q1=second))
    assert [(pair.first, pair.second) for pair in pairs] == [tuple(QUESTIONS[:2])] * found


def test_the_most_alike_come_first() -> None:
    stems = lexemes(q0="a b c d e", q1="a b c d", q2="x y z", q3="z y x")
    pairs = near_duplicates(QUESTIONS, stems)
    assert [pair.similarity for pair in pairs] == [1, 0.8]
    assert pairs[0].first == QUESTIONS[2]
    assert "«¿Pregunta 2?» y «¿Pregunta 3?»" in measure_drift(QUESTIONS, lexemes=stems).findings[0]


def test_what_all_configurations_find_and_what_none_does() -> None:
    """Found is within the first ten; a question asked of one configuration says nothing."""
    outcomes = asked({0: [True, True], 1: [False, False], 2: [True, False], 3: [False]})
    outcomes += [replace(outcomes[0], configuration="c2", first_relevant_rank=11)]
    drift = measure_drift(QUESTIONS, outcomes=outcomes)
    assert drift.ceiling == ()
    assert drift.floor == (QUESTIONS[1],)
    assert (drift.judged, drift.deciding, drift.configurations) == (3, 2, 3)
    (finding,) = drift.findings
    assert "«¿Pregunta 1?»" in finding


@pytest.mark.parametrize(("deciding", "enough"), [(5, False), (6, True)])
def test_a_dataset_on_which_configurations_hardly_differ_decides_nothing(
    deciding: int, enough: bool
) -> None:
    """Five questions that all flip one way are not significant at 5 %, six are."""
    assert DECIDING_QUESTIONS == 6
    drift = measure_drift(
        QUESTIONS, outcomes=asked({number: [True, number >= deciding] for number in range(8)})
    )
    assert drift.decides_nothing is not enough
    assert drift.ceiling == tuple(QUESTIONS[deciding:])
    assert bool(drift.findings) is not enough


def test_new_questions_are_no_sign_that_nothing_decides() -> None:
    """Until all of them are evaluated."""
    assert measure_drift(QUESTIONS, outcomes=asked({0: [True, True]})).findings == []


def test_everything_found_is_in_the_json() -> None:
    drift = measure_drift(
        QUESTIONS,
        notes=[NoteState(uuid_number(100), RELEVANT, "gata.md", gone=True)],
        lexemes=lexemes(q0="a", q1="a"),
        categories_before={"causal": 1},
        outcomes=asked({number: [number == 7] * 2 for number in range(8)}),
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
        "nearDuplicates": [
            {"ids": ids[:2], "queries": ["¿Pregunta 0?", "¿Pregunta 1?"], "similarity": 1.0}
        ],
        "configurations": 2,
        "everyConfigurationRight": [{"id": ids[7], "query": "¿Pregunta 7?"}],
        "noConfigurationRight": [
            {"id": ids[number], "query": f"¿Pregunta {number}?"} for number in range(7)
        ],
        "decidingQuestions": 0,
        "findings": drift.findings,
    }
    assert len(drift.findings) == 1 + 1 + 1 + 7 + 1
    assert GoldenDrift(questions=0).to_json()["findings"] == []


# Candidates


def test_a_note_that_half_of_the_configurations_put_first_is_a_candidate() -> None:
    entry = QUESTIONS[0]
    outcomes = [
        ranked(entry, "b", THIRD, OTHER),
        ranked(entry, "a", OTHER, RELEVANT),
        ranked(entry, "d", RELEVANT, OTHER),
        ranked(entry, "c", RELEVANT),
    ]
    (candidate,) = find_candidates(QUESTIONS, outcomes, existing=NOTES)
    assert candidate.entry == entry
    assert [(note.note_id, note.configurations) for note in candidate.notes] == [
        (OTHER, ("a", "b"))
    ]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((RELEVANT, OTHER), (RELEVANT, OTHER)),  # nothing is missed
        ((OTHER,), (THIRD,)),  # no agreement
        ((uuid_number(7), uuid_number(8), THIRD, OTHER), (OTHER,)),  # fourth for one of them
        ((uuid_number(9),), (uuid_number(9),)),  # a note that is gone
    ],
)
def test_what_is_no_candidate(first: tuple[UUID, ...], second: tuple[UUID, ...]) -> None:
    outcomes = [ranked(QUESTIONS[0], "a", *first), ranked(QUESTIONS[0], "b", *second)]
    assert find_candidates(QUESTIONS, outcomes, existing=NOTES) == []


def test_one_configuration_alone_suggests_nothing() -> None:
    outcomes = [ranked(QUESTIONS[0], "a", OTHER)]
    assert find_candidates(QUESTIONS, outcomes, existing=NOTES) == []


def test_the_notes_of_most_configurations_come_first() -> None:
    """Within a question by best rank; questions in their order otherwise."""
    outcomes = [ranked(QUESTIONS[1], name, OTHER) for name in "ab"]
    outcomes += [ranked(QUESTIONS[2], name, THIRD, OTHER) for name in "abc"]
    outcomes += [ranked(QUESTIONS[0], name, THIRD) for name in "ab"]
    found = find_candidates(QUESTIONS, outcomes, existing=NOTES)
    assert [candidate.entry for candidate in found] == [QUESTIONS[n] for n in (2, 0, 1)]
    assert [note.note_id for note in found[0].notes] == [THIRD, OTHER]


def test_of_equally_supported_notes_the_better_ranked_comes_first_then_the_smaller_id() -> None:
    """The names of the configurations that rank it decide nothing."""
    entry, all_rank_it = QUESTIONS[0], uuid_number(9)
    outcomes = [
        ranked(entry, "a", THIRD, all_rank_it),
        ranked(entry, "b", THIRD, all_rank_it),
        ranked(entry, "c", OTHER, all_rank_it),
        ranked(entry, "d", uuid_number(1_000), OTHER, all_rank_it),
    ]
    (candidate,) = find_candidates([entry], outcomes, existing=[*NOTES, all_rank_it])
    assert [note.note_id for note in candidate.notes] == [all_rank_it, OTHER, THIRD]


def test_fewer_than_half_of_the_configurations_suggest_nothing() -> None:
    entry = QUESTIONS[0]
    outcomes = [ranked(entry, name, OTHER) for name in "ab"]
    assert find_candidates([entry], outcomes, existing=NOTES)
    outcomes += [ranked(entry, name, RELEVANT) for name in "cde"]
    assert find_candidates([entry], outcomes, existing=NOTES) == []


def test_what_was_found_when_the_question_was_last_written_was_rejected_then() -> None:
    """As much as it took to be suggested then; what one configuration alone had found was not."""
    entry = QUESTIONS[0]
    outcomes = [ranked(entry, name, OTHER, THIRD) for name in "ab"]
    reviewed = [ranked(entry, "a", OTHER, THIRD), ranked(entry, "b", OTHER)]
    (candidate,) = find_candidates([entry], outcomes, reviewed=reviewed, existing=NOTES)
    assert [note.note_id for note in candidate.notes] == [THIRD]
    assert find_candidates([entry], outcomes, reviewed=outcomes, existing=NOTES) == []


def test_a_candidate_is_an_entry_to_be_edited() -> None:
    """With the note beside the relevant ones, the tag that import refuses, and what to judge by."""
    entry = replace(QUESTIONS[0], tags=("viaje",), created_at=START, updated_at=START)
    outcomes = [ranked(entry, name, OTHER) for name in "ab"]
    (candidate,) = find_candidates([entry], outcomes, existing=NOTES)
    note = Note(OTHER, "Tren", "Salimos\n  a las ocho. ", START)
    row = candidate.to_json({OTHER: "tren.md"}, {OTHER: note}, at=LATER)
    assert row["relevantNoteIds"] == [str(RELEVANT), str(OTHER)]
    assert row["tags"] == ["viaje", CANDIDATE_TAG]
    assert row["updatedAt"] == LATER.isoformat()
    assert row["candidateNotes"] == [
        {
            "id": str(OTHER),
            "name": "tren.md",
            "title": "Tren",
            "snippet": "Salimos a las ocho.",
            "configurations": ["a", "b"],
        }
    ]


def test_a_snippet_has_its_length() -> None:
    assert snippet("a" * SNIPPET_CHARS) == "a" * SNIPPET_CHARS
    assert snippet("a" * (SNIPPET_CHARS + 1)) == "a" * (SNIPPET_CHARS - 1) + "…"
