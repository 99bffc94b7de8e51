"""Golden entries: what a file may hold, and how each bad entry is named."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from rag_resources.core.errors import InvalidGoldenDatasetError
from rag_resources.core.golden import (
    GoldenEntry,
    golden_hash,
    parse_golden,
)
from rag_resources.core.golden_places import GoldenPlace
from tests.strategies import uuid_number

NOTES = {"viaje.md": uuid_number(1), "compra.md": uuid_number(2)}
NOTES |= {str(note_id): note_id for note_id in NOTES.values()}
CONTENTS = {uuid_number(1): "Salimos el lunes 3. Volvemos el lunes 10. 🚂", uuid_number(2): "Pan."}

ROW: dict[str, Any] = {
    "id": "00000000-0000-0000-0000-00000000000a",
    "query": "¿Cuándo salimos?",
    "relevantNoteIds": [str(uuid_number(1))],
    "expectedAnswer": "El lunes.",
    "category": "temporal",
    "difficulty": 2,
    "tags": ["viaje", "viaje"],
    "createdAt": "2024-05-01T10:00:00+02:00",
    "updatedAt": "2024-05-02T10:00:00Z",
}
ENTRY = GoldenEntry(
    query="¿Cuándo salimos?",
    relevant_note_ids=(uuid_number(1),),
    expected_answer="El lunes.",
    category="temporal",
    difficulty=2,
    tags=("viaje", "viaje"),
    golden_id=uuid_number(10),
    created_at=datetime(2024, 5, 1, 8, tzinfo=UTC),
    updated_at=datetime(2024, 5, 2, 10, tzinfo=UTC),
)


def parse(raw: Any) -> list[GoldenEntry]:
    return parse_golden(
        raw, origin="oro.json", resolve_note=NOTES.get, content_of=CONTENTS.__getitem__
    )


def problems_of(raw: Any) -> list[str]:
    with pytest.raises(InvalidGoldenDatasetError) as caught:
        parse(raw)
    assert "oro.json no es válido; no se ha cambiado nada:" in caught.value.message
    assert caught.value.context == {"origin": "oro.json"}
    return caught.value.problems


def test_an_entry_is_read_whole() -> None:
    assert parse([ROW]) == [ENTRY]
    assert parse({"entries": [ROW], "otra": 1}) == [ENTRY]
    assert parse([]) == []


def test_an_entry_is_exported_as_it_is_imported() -> None:
    assert ENTRY.to_json() == ROW | {
        "createdAt": "2024-05-01T08:00:00+00:00",
        "updatedAt": "2024-05-02T10:00:00+00:00",
    }


def test_an_entry_with_places_is_exported_with_them_and_read_again() -> None:
    row = ROW | {"places": [{"note": "viaje.md", "text": "el lunes 3"}]}
    (entry,) = parse([row])
    assert entry.places == (GoldenPlace(uuid_number(1), 8, 18, "el lunes 3"),)
    exported = entry.to_json()
    assert exported["places"] == [
        {"note": str(uuid_number(1)), "start": 8, "end": 18, "text": "el lunes 3"}
    ]
    assert parse([exported]) == [entry]


def test_every_part_of_a_place_counts_in_the_hash_but_not_their_order() -> None:
    note = uuid_number(1)
    first, second = GoldenPlace(note, 0, 4, "casa"), GoldenPlace(note, 8, 12, "gata")
    entry = replace(ENTRY, places=(first, second))
    assert golden_hash([replace(ENTRY, places=(second, first))]) == golden_hash([entry])
    others = [
        (),
        (first,),
        (first, replace(second, start=9, end=13)),
        (first, replace(second, text="rata")),
        (first, replace(second, note_id=uuid_number(2))),
    ]
    hashes = {golden_hash([replace(ENTRY, places=places)]) for places in others}
    assert len(hashes) == len(others)
    assert golden_hash([entry]) not in hashes


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("x" * 2_001, "query: tiene más de 2000 caracteres o valores"),
        ("😀" * 651, "query: ocupa más de 2600 bytes"),
    ],
)
def test_a_question_too_long_to_be_asked_or_stored_is_refused(query: str, reason: str) -> None:
    assert problems_of([ROW | {"query": query}]) == [f"entrada 1 («{query[:60]}»): {reason}"]


def test_every_bad_field_of_every_entry_is_named() -> None:
    found = problems_of([{}, 7, ROW, ROW | {"difficulty": 0, "query": "¿CUÁNDO  SALIMOS?"}])
    assert found == [
        "entrada 1: query: falta este campo",
        "entrada 1: relevantNotes: no puede estar vacío",
        "entrada 1: expectedAnswer: falta este campo",
        "entrada 1: category: falta este campo",
        "entrada 1: difficulty: falta este campo",
        "entrada 2: no es un objeto JSON",
        "entrada 4 («¿CUÁNDO  SALIMOS?»): difficulty: 0 no es un entero de 1 a 5",
        "entrada 4 («¿CUÁNDO  SALIMOS?»): la pregunta ya está: 3 (mayúsculas, "
        "acentos y puntuación no cuentan)",
    ]


@pytest.mark.parametrize("query", ["¿Cuando salimos?", "¿CUÁNDO SALIMOS?", "cuando  SALIMOS."])
def test_questions_that_differ_in_accents_capitals_and_punctuation_only_are_repeats(
    query: str,
) -> None:
    (found,) = problems_of([ROW, ROW | {"query": query, "id": None}])
    assert "la pregunta ya está: 1" in found


def test_the_hash_ignores_order_answers_tags_and_spelling() -> None:
    other = GoldenEntry("¿Qué?", (uuid_number(1), uuid_number(2)), "A", "causal", 1)
    same = GoldenEntry(" ¿QUÉ? ", (uuid_number(2), uuid_number(1)), "B", "causal", 1, ("t",))
    assert golden_hash([ENTRY, other]) == golden_hash([same, ENTRY])


@pytest.mark.parametrize(
    "changed",
    [
        GoldenEntry("¿Quién?", (uuid_number(1),), "A", "causal", 1),
        GoldenEntry("¿Qué?", (uuid_number(2),), "A", "causal", 1),
        GoldenEntry("¿Qué?", (uuid_number(1), uuid_number(2)), "A", "causal", 1),
        GoldenEntry("¿Qué?", (uuid_number(1),), "A", "factual", 1),
        GoldenEntry("¿Qué?", (uuid_number(1),), "A", "causal", 2),
    ],
)
def test_the_hash_tells_what_an_evaluation_depends_on(changed: GoldenEntry) -> None:
    entry = GoldenEntry("¿Qué?", (UUID(int=1),), "A", "causal", 1)
    assert golden_hash([changed]) != golden_hash([entry])
