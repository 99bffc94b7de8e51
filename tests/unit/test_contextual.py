"""The contextual prefix, word for word."""

from uuid import UUID

import pytest

from rag_resources.core.contextual import (
    contextual_prefix,
    contextual_topics,
    summarize,
    tags_in_words,
)
from rag_resources.core.types import Chunk


def chunks_of(*contents: str) -> list[Chunk]:
    return [
        Chunk(UUID(int=number + 1), UUID(int=99), number, 0, len(content), content)
        for number, content in enumerate(contents)
    ]


THREE = chunks_of("# Primera parte.", "Segunda\r\nparte.", "- Tercera parte")


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        (
            0,
            "Parte 1 de 3 de una nota sobre: Viaje. Después: Segunda parte. Sección inicial.",
        ),
        (
            1,
            "Parte 2 de 3 de una nota sobre: Viaje. Antes: Primera parte. Después: Tercera parte."
            " Sección intermedia.",
        ),
        (2, "Parte 3 de 3 de una nota sobre: Viaje. Antes: Segunda parte. Sección final."),
    ],
)
def test_the_prefix_tells_part_neighbours_and_section(index: int, expected: str) -> None:
    assert contextual_prefix("Viaje", THREE, index) == expected


def test_a_neighbour_is_quoted_by_sixty_characters_of_whole_words() -> None:
    prefix = contextual_prefix("Viaje", chunks_of("Uno", "palabra " * 20), 0)
    assert " Después: " + "palabra " * 6 + "palabra…." in prefix


@pytest.mark.parametrize(
    ("title", "content", "expected"),
    [
        ("Viaje", "Salimos pronto. Llovía.", "Viaje: Salimos pronto"),
        ("", "Salimos pronto. Llovía.", "Salimos pronto"),
        ("Viaje\r\na Roma", "", "Viaje a Roma"),
        ("Plan X", "", "Plan X"),
        ("# Viaje #", "- uno\n- dos", "Viaje: uno"),
        ("", "***", "***"),
        ("...", "", "..."),
        (" ", "\n", ""),
    ],
)
def test_a_note_is_named_by_title_and_first_sentence(
    title: str, content: str, expected: str
) -> None:
    assert summarize(title, content) == expected


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("x" * 160, "x" * 160),
        ("x" * 161, "x" * 159 + "…"),
        ("x" * 30_000, "x" * 159 + "…"),
        ("abc, " * 40, "abc, " * 31 + "abc…"),
    ],
)
def test_a_summary_has_at_most_160_characters(content: str, expected: str) -> None:
    assert summarize("", content) == expected


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        (0, "Viaje Segunda parte"),
        (1, "Viaje Primera parte Tercera parte"),
        (2, "Viaje Segunda parte"),
    ],
)
def test_topics_are_the_summary_and_what_the_neighbours_open_with(
    index: int, expected: str
) -> None:
    assert contextual_topics("Viaje", THREE, index) == expected


def test_the_tags_of_the_note_are_among_its_topics() -> None:
    assert contextual_topics("Viaje", THREE, 2, ("tren-nocturno", "Lisboa")) == (
        "Viaje Segunda parte tren nocturno, Lisboa"
    )


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ((), ""),
        (("cal-viva", "plan_piloto", " dos  palabras "), "cal viva, plan piloto, dos palabras"),
        (("-", "agua"), "agua"),
        (("x" * 100, "y" * 98, "z"), "x" * 100 + ", " + "y" * 98),
        (("x" * 201, "y"), ""),
    ],
)
def test_tags_are_words_as_many_as_fit(tags: tuple[str, ...], expected: str) -> None:
    assert tags_in_words(tags) == expected
