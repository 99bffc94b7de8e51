"""Sections: what opens one, what joins paragraphs, and how a long one is cut."""

from collections.abc import Iterator

import pytest

from rag_resources.core.documents import Block, BlockKind, Page, Removal, Run
from rag_resources.core.places import Box, places_of
from rag_resources.core.sections import sections_of

HEADING, PARAGRAPH = BlockKind.HEADING, BlockKind.PARAGRAPH
ROW, HEADER, ITEM = BlockKind.TABLE_ROW, BlockKind.TABLE_HEADER, BlockKind.LIST_ITEM


def page(number: int, *parts: tuple[BlockKind, str] | tuple[BlockKind, str, int]) -> Page:
    """A page with a line for each block."""
    text, blocks = "", []
    for kind, content, *level in parts:
        blocks.append(Block(len(text), len(text) + len(content), kind, *level))
        text += content + "\n"
    return Page(number, text, blocks=tuple(blocks))


def found(*pages: Page, max_chars: int = 10_000) -> list[tuple[tuple[str, ...], str]]:
    return [(each.heading_path, each.text) for each in sections_of(pages, max_chars=max_chars)]


def test_a_heading_opens_a_section_and_is_its_first_line() -> None:
    read = page(
        1,
        (PARAGRAPH, "Antes de todo."),
        (HEADING, "Vivienda", 1),
        (HEADING, "Alquiler", 2),
        (PARAGRAPH, "Cien mil viviendas."),
        (HEADING, "Compra", 2),
        (PARAGRAPH, "Ninguna."),
        (HEADING, "Transporte", 1),
        (PARAGRAPH, "Más trenes."),
        (HEADING, "Anexo", 1),
    )
    assert found(read) == [
        ((), "Antes de todo."),
        (("Vivienda", "Alquiler"), "Vivienda\n\nAlquiler\n\nCien mil viviendas."),
        (("Vivienda", "Compra"), "Compra\n\nNinguna."),
        (("Transporte",), "Transporte\n\nMás trenes."),
        (("Anexo",), "Anexo"),
    ]


def test_rows_items_and_lines_of_code_are_joined_by_line_breaks() -> None:
    read = page(
        1,
        (PARAGRAPH, "Dos cosas:"),
        (ITEM, "- una", 1),
        (ITEM, "- otra", 1),
        (HEADER, "Mes\tGasto"),
        (ROW, "Enero\t3"),
    )
    assert found(read) == [((), "Dos cosas:\n\n- una\n- otra\n\nMes\tGasto\nEnero\t3")]


@pytest.mark.parametrize(
    ("before", "after", "joined"),
    [
        ("Serán de alquiler", "y municipales.", "Serán de alquiler y municipales."),
        ("Serán, según Ana,", "López dixit, caras.", "Serán, según Ana, López dixit, caras."),
        ("Serán caras.", "y feas.", "Serán caras.\n\ny feas."),
        ("Serán caras", "Otra cosa.", "Serán caras\n\nOtra cosa."),
    ],
)
def test_a_paragraph_that_continues_on_the_next_page_is_joined(
    before: str, after: str, joined: str
) -> None:
    assert found(page(1, (PARAGRAPH, before)), page(2, (PARAGRAPH, after))) == [((), joined)]
    # Not over a page that is missing.
    (section,) = found(page(1, (PARAGRAPH, before)), page(3, (PARAGRAPH, after)))
    assert section[1] == f"{before}\n\n{after}"


def test_a_word_hyphenated_at_a_line_or_page_end_is_whole_in_the_note() -> None:
    text = "La trans-\nformación del trans-"
    one = Page(
        1,
        text,
        blocks=(Block(0, 30, PARAGRAPH, runs=(Run(0, 8, Box(1, 1, 9, 2)), Run(10, 29))),),
        removed=(Removal(8, 9, "hyphen"), Removal(29, 30, "hyphen")),
    )
    two = page(2, (PARAGRAPH, "porte público"))
    (section,) = sections_of([one, two])
    assert section.text == "La transformación del transporte público"
    assert [place.page for place in places_of(section.spans, 22, 32)] == [1, 2]


def test_removed_ranges_are_left_out_in_the_middle_of_a_line_too() -> None:
    text = "12 | Página\nPalabra3, y más."
    read = Page(
        1,
        text,
        blocks=(Block(12, len(text), PARAGRAPH),),
        removed=(Removal(0, 11, "page_number"), Removal(19, 20, "note_mark")),
    )
    assert found(read) == [((), "Palabra, y más.")]


def test_a_document_without_headings_is_cut_by_size_between_paragraphs() -> None:
    paragraphs = [f"Párrafo {number} de cuarenta y dos caracteres." for number in range(100, 107)]
    read = page(1, *((PARAGRAPH, text) for text in paragraphs))
    assert found(read, max_chars=100) == [
        ((), f"{paragraphs[0]}\n\n{paragraphs[1]}"),
        ((), f"{paragraphs[2]}\n\n{paragraphs[3]}"),
        ((), f"{paragraphs[4]}\n\n{paragraphs[5]}"),
        ((), paragraphs[6]),
    ]


def test_a_paragraph_that_is_too_long_is_cut_between_sentences_then_words_then_anywhere() -> None:
    sentences = "Una frase de treinta letras o así. " * 4
    assert [text for _, text in found(page(1, (PARAGRAPH, sentences)), max_chars=100)] == [
        "Una frase de treinta letras o así. Una frase de treinta letras o así.",
        "Una frase de treinta letras o así. Una frase de treinta letras o así.",
    ]
    words = [text for _, text in found(page(1, (PARAGRAPH, "palabra " * 20)), max_chars=100)]
    assert all(set(text.split()) == {"palabra"} for text in words)
    letters = found(page(1, (PARAGRAPH, "x" * 110)), max_chars=100)
    assert [text for _, text in letters] == ["x" * 100, "x" * 10]


def test_the_parts_of_a_table_repeat_its_header_with_the_place_of_the_header() -> None:
    def rows() -> Iterator[tuple[BlockKind, str]]:
        yield HEADING, "Gastos"
        yield HEADER, "Mes\tGasto"
        for number in range(12):
            yield ROW, f"Mes {number:02}\t{number:06}"
        yield PARAGRAPH, "Fin."

    read = page(1, *rows())
    sections = list(sections_of([read], max_chars=100))
    assert len(sections) == 3
    for section in sections:
        assert section.heading_path == ("Gastos",)
        assert section.text.removeprefix("Gastos\n\n").startswith("Mes\tGasto\nMes ")
        first = next(span for span in section.spans if span.page_start == read.text.index("Mes"))
        assert section.text[first.start : first.end] == "Mes\tGasto"


def test_a_sheet_opens_a_section_and_its_name_is_the_first_heading() -> None:
    def sheet(number: int, name: str, cells: dict[str, str]) -> Page:
        text, runs = "", []
        for cell, value in cells.items():
            text += "\t" if text else ""
            runs.append(Run(len(text), len(text) + len(value), cells=cell))
            text += value
        return Page(number, text, sheet=name, blocks=(Block(0, len(text), ROW, runs=tuple(runs)),))

    sheets = [sheet(1, "Enero", {"A1": "Luz", "B1": "30"}), sheet(2, "Febrero", {"A1": "Gas"})]
    assert found(*sheets) == [(("Enero",), "Luz\t30"), (("Febrero",), "Gas")]
    section, _ = sections_of(sheets)
    (place,) = places_of(section.spans, 4, 6)
    assert place.to_json() == {"sheet": "Enero", "cells": ["B1"]}


def test_a_page_of_low_quality_stays_out() -> None:
    garbled = Page(1, "ÿÿþ ##", quality=0.29)
    assert found(garbled, Page(2, "Se lee.\n\nBien.", quality=0.3)) == [((), "Se lee.\n\nBien.")]


def test_sections_are_made_while_pages_are_read() -> None:
    def endless() -> Iterator[Page]:
        for number in range(1, 1_000_000_000):
            yield page(number, (HEADING, f"Capítulo {number}", 1), (PARAGRAPH, "Texto."))

    assert next(sections_of(endless())).heading_path == ("Capítulo 1",)
