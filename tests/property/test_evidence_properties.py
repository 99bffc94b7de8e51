"""The rule of evidence; property 57 on a real index is in tests/integration/test_evidence.py."""

from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rag_resources.core.evidence import (
    ChangedNotes,
    EvidenceState,
    Moved,
    judge_evidence,
    moved_parts,
    settled,
)
from rag_resources.languages.messages import render

MONTHS = ("2025-01-01", "2025-02-01", "-infinity")
PARTS = ("notes", "chunks", "vectors/m", "words")

contents = st.dictionaries(
    st.sampled_from(MONTHS),
    st.dictionaries(st.sampled_from(PARTS), st.sampled_from("abc"), min_size=1),
)
changes = st.builds(
    ChangedNotes,
    notes=st.integers(0, 100),
    changed=st.integers(0, 100),
    relevant=st.integers(0, 3),
    expired=st.integers(0, 3),
    is_known=st.booleans(),
)


@given(contents, contents, changes, st.booleans(), st.booleans(), st.sampled_from([0, 0.02, 0.5]))
def test_current_if_nothing_differs_and_aged_within_the_bound(
    recorded: Any, present: Any, notes: ChangedNotes, config: bool, golden: bool, most: float
) -> None:
    """Current only if nothing differs; aged only within the bound and beside the questions."""
    moved = moved_parts(recorded, present)
    evidence = judge_evidence(
        same_config=config, same_golden=golden, moved=moved, notes=notes, most=most
    )
    nothing = recorded == present and config and golden and not notes.expired
    assert evidence.is_current is nothing
    assert bool(evidence.reasons) is not nothing
    if evidence.state is EvidenceState.AGED:
        assert config
        assert golden
        assert notes.is_known
        assert notes.relevant == 0
        assert notes.changed <= most * notes.notes
        assert not any(item.part == "words" for item in moved)


@given(
    contents,
    contents,
    st.sets(st.tuples(st.sampled_from(MONTHS), st.sampled_from(PARTS))),
    st.booleans(),
)
def test_what_was_written_to_meanwhile_is_never_current(
    before: Any, after: Any, rewritten: set[tuple[str, str]], is_small: bool
) -> None:
    """Not even once it is as it was when the evaluation began, or when it ended."""
    recorded = settled(before, after, rewritten, is_small=is_small)
    disturbed = bool(moved_parts(before, after)) or any(
        part in before.get(month, {}) for month, part in rewritten
    )
    for present in (before, after):
        assert bool(moved_parts(recorded, present)) is disturbed


def described(*parts: tuple[str, Sequence[str]]) -> str:
    """The one reason for parts that moved, each with its months."""
    moved = [Moved(month, part, "a", "b") for part, months in parts for month in months]
    evidence = judge_evidence(
        same_config=True,
        same_golden=True,
        moved=moved,
        notes=ChangedNotes(is_known=False),
        most=0,
    )
    (said,) = evidence.reasons
    assert render(said, "es") == said
    return said


THREE = ("2025-10-01", "2025-11-01", "2026-11-01")
SEVEN = tuple(f"2025-0{month}-01" for month in range(3, 10))


def test_parts_that_moved_in_the_same_months_are_listed_together() -> None:
    """Newest months first; what belongs to no month last; many months only as a span."""
    assert described(
        ("chunks", THREE),
        ("note_vectors/m", THREE),
        ("notes", THREE),
        ("vectors/m", THREE),
        ("words", ["-infinity"]),
    ) == (
        "han cambiado en 2026-11, 2025-11 y 2025-10: notas, fragmentos, vectores y vectores de "
        "notas enteras; y las estadísticas de palabras"
    )
    assert described(("notes", THREE), ("chunks", THREE[:2]), ("vectors/m", THREE[:1])) == (
        "han cambiado en 2026-11, 2025-11 y 2025-10: notas; en 2025-11 y 2025-10: fragmentos; "
        "en 2025-10: vectores"
    )
    assert described(("notes", SEVEN), ("chunks", SEVEN)) == (
        "han cambiado en 7 meses (de 2025-03 a 2025-09): notas y fragmentos"
    )
    nowhere = [("model/m", ["-infinity"]), ("words", ["-infinity"])]
    assert described(*nowhere) == "ha cambiado: las estadísticas de palabras y el modelo"
    built = [("window_index/m", ["-infinity"]), ("vector_index/m", ["-infinity"])]
    assert described(*built) == "ha cambiado: el índice de los vectores"


def test_one_word_for_several_parts_is_listed_once_with_the_months_of_all() -> None:
    """Vectors of two models, and what waits for vectors of chunks and of windows."""
    assert described(
        ("vectors/m", THREE[:1]), ("vectors/n", THREE[1:2]), ("waiting_chunk/m", THREE[:2])
    ) == ("han cambiado en 2025-11 y 2025-10: vectores y notas que esperan vectores")
    assert described(("waiting_chunk/m", THREE[:1]), ("waiting_window/m", THREE[:1])) == (
        "han cambiado en 2025-10: notas que esperan vectores"
    )


def test_what_moved_is_said_in_english_too() -> None:
    said = described(("notes", SEVEN), ("chunks", SEVEN), ("words", ["-infinity"]))
    assert render(said, "en") == (
        "changed in 7 months (from 2025-03 to 2025-09): notes and chunks; and the word statistics"
    )


month_names = st.sampled_from(
    [f"{year}-{month:02}-01" for year in (2024, 2025) for month in (1, 6, 12)]
)


@given(
    st.dictionaries(
        st.sampled_from(["notes", "chunks", "vectors/m", "windows/m", "mentions"]),
        st.sets(month_names, min_size=1),
        min_size=1,
    )
)
def test_every_part_is_named_once_and_every_set_of_months_once(moved: dict[str, set[str]]) -> None:
    said = described(*((part, sorted(months)) for part, months in moved.items()))
    words = {"notes": "notas", "chunks": "fragmentos", "vectors/m": "vectores"}
    words |= {"windows/m": "ventanas", "mentions": "menciones"}
    for part, word in words.items():
        assert said.count(word) == (part in moved)
    assert said.count("en ") == len({frozenset(own) for own in moved.values()})


def test_what_moved_is_named_before_the_notes_that_changed() -> None:
    moved = [Moved(f"2025-0{month}-01", "chunks", "a", None) for month in range(1, 7)]
    moved.append(Moved("2025-06-01", "notes", "a", "b"))
    evidence = judge_evidence(
        same_config=True, same_golden=True, moved=moved, notes=ChangedNotes(9, 9, 1), most=0
    )
    assert evidence.explanation == (
        "han cambiado en 6 meses (de 2025-01 a 2025-06): fragmentos; en 2025-06: notas; "
        "notas cambiadas: 9 de 9, de ellas relevantes para las preguntas: 1"
    )
