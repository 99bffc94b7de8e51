"""Places of golden questions: read from a file, and found again in an edited note."""

from typing import Any
from uuid import UUID

import pytest

from rag_resources.core.golden_places import (
    GoldenPlace,
    locate,
    place_from_json,
    read_places,
    restate,
)

NOTE, OTHER = UUID(int=1), UUID(int=2)
CONTENT = "🚂 La bomba costaba 415 €.\r\nLuego 690 €. La bomba nueva, 690 €."
PLACE = GoldenPlace(NOTE, 19, 24, "415 €")


def read(*rows: Any, relevant: tuple[UUID, ...] = (NOTE,)) -> tuple[GoldenPlace, ...]:
    places, problems = read_places(list(rows), relevant, named, {NOTE: CONTENT}.__getitem__)
    assert problems == []
    return places


def problem(row: Any) -> str:
    _, [found] = read_places([row], (NOTE,), named, {NOTE: CONTENT}.__getitem__)
    return found


def named(name: str) -> UUID | None:
    return {"bomba": NOTE, str(NOTE): NOTE, "otra": OTHER}.get(name)


def test_a_text_that_stands_once_is_enough_and_offsets_count_characters() -> None:
    assert CONTENT[19:24] == "415 €"
    assert read({"note": "bomba", "text": "415 €"}) == (PLACE,)
    assert read({"note": str(NOTE), "start": 19, "end": 24}) == (PLACE,)
    assert read(PLACE.to_json(), {"note": "bomba", "text": "415 €"}) == (PLACE,)
    assert place_from_json(PLACE.to_json()) == PLACE


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (7, "no es un objeto con «note» y con «text», o con «start» y «end»"),
        ({"note": "bomba"}, "no es un objeto con «note» y con «text»"),
        ({"note": "bomba", "text": 7}, "no es un objeto con «note» y con «text»"),
        ({"note": "bomba", "text": "415 €", "start": 19}, "no es un objeto con «note»"),
        ({"note": "bomba", "start": True, "end": 2}, "no es un objeto con «note»"),
        ({"note": "bomba", "start": -1, "end": 2}, "no es un objeto con «note»"),
        ({"note": "bomba", "start": 0, "end": 2**31}, "no es un objeto con «note»"),
        ({"note": "otra", "text": "415 €"}, "la nota «otra» no es una de las notas relevantes"),
        ({"note": None, "text": "415 €"}, "la nota «null» no es una de las notas relevantes"),
        ({"note": "bomba", "text": " \n"}, "el texto está en blanco"),
        ({"note": "bomba", "start": 25, "end": 27}, "el texto está en blanco"),
        ({"note": "bomba", "text": "690 €"}, "el texto «690 €» está 2 veces"),
        ({"note": "bomba", "text": "LA BOMBA"}, "el texto «LA BOMBA» no está en la nota"),
        ({"note": "bomba", "start": 60, "end": 65}, "de 60 a 65 no es un tramo de la nota"),
        ({"note": "bomba", "start": 24, "end": 19}, "de 24 a 19 no es un tramo de la nota"),
        (PLACE.to_json() | {"end": 23}, "de 19 a 23 no hay 5 caracteres"),
        (PLACE.to_json() | {"text": "999 €"}, "el texto «999 €» no está en la nota"),
    ],
)
def test_each_bad_place_says_what_is_wrong(row: Any, reason: str) -> None:
    found = problem(row)
    assert found.startswith("places[0]: ")
    assert reason in found


def test_a_stated_place_is_kept_though_an_edit_moved_it() -> None:
    """An export of a dataset whose notes were edited since can be imported."""
    moved = GoldenPlace(NOTE, 3, 8, "415 €")
    assert read(moved.to_json()) == (moved,)


def test_a_place_counts_where_it_is_stated_while_its_text_is_there() -> None:
    start = CONTENT.rindex("690 €")
    found = locate(GoldenPlace(NOTE, start, start + 5, "690 €"), CONTENT)
    assert (found.start, found.end, found.similarity) == (start, start + 5, 1)
    assert found.is_as_stated


@pytest.mark.parametrize(("stated", "start"), [(0, 4), (8, 4), (9, 4), (10, 14), (90, 24)])
def test_a_moved_text_is_found_at_its_nearest_occurrence(stated: int, start: int) -> None:
    """Occurrences at 4, 14 and 24; of two as near the earlier one."""
    found = locate(GoldenPlace(NOTE, stated, stated + 4, "gata"), "a 1 gata, b 2 gata, c 3 gata.")
    assert (found.start, found.end, found.occurrences) == (start, start + 4, 3)
    assert found.has_moved
    assert found.is_doubtful


def test_an_edited_text_is_found_with_a_doubt() -> None:
    text = "el perito midió 1,78 m con láser"
    content = f"Al final {text.replace('1,78', '1,79')}, dijo."
    found = locate(GoldenPlace(NOTE, 0, len(text), text), content)
    assert content[found.start : found.end] == "el perito midió 1,79 m con láser"
    # 31 of 32 characters in common: 2 · 31 / (32 + 32).
    assert found.similarity == pytest.approx(31 / 32)
    assert found.is_doubtful
    assert restate(found, content) == GoldenPlace(
        NOTE, 9, 9 + len(text), "el perito midió 1,79 m con láser"
    )


@pytest.mark.parametrize("content", ["", "otra cosa muy distinta que no se parece", "415"])
def test_a_text_that_is_gone_is_lost(content: str) -> None:
    found = locate(GoldenPlace(NOTE, 0, 23, "la gata se fue por aquí"), content)
    assert found.is_lost
    assert found.similarity is None
    assert (found.has_moved, found.is_doubtful, found.is_as_stated) == (False, False, False)
