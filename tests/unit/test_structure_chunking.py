"""Cutting by structure: where chunks end, tables and their headers."""

from uuid import UUID

import pytest

from rag_resources.core.blocks import read
from rag_resources.core.chunking import chunk_note
from rag_resources.core.configuration import ChunkingConfig
from rag_resources.core.contextual import contextual_text
from rag_resources.core.types import Note
from rag_resources.indexing.chunk import build_chunks
from tests.corpus import START

SMALL = ChunkingConfig(strategy="structure", target=100, min=40, max=160, overlap=0)


def cut(text: str, config: ChunkingConfig = SMALL) -> list[str]:
    return [chunk.content for chunk in chunk_note(UUID(int=1), text, config)]


def test_a_chunk_ends_between_paragraphs_rather_than_at_the_target() -> None:
    first = "Una frase de unas cuarenta y tantas letras. " * 2
    second = "Otra frase, también de unas cuarenta letras. " * 2
    text = f"{first.strip()}\n\n{second.strip()}"
    assert cut(text) == [first.strip(), second.strip()]


def test_a_heading_stays_with_what_follows() -> None:
    text = f"{'Texto. ' * 12}\n\nVivienda en alquiler\n\n{'Más texto. ' * 8}"
    first, second = cut(text)
    assert first.endswith("Texto.")
    assert second.startswith("Vivienda en alquiler\n\n")


def test_a_short_rest_is_taken_along_if_it_fits() -> None:
    text = f"{'Una frase corta. ' * 7}\n\nFin."
    assert cut(text) == [text]


TABLE = "Mes\tGasto total\n" + "\n".join(f"Mes {at:02}\t{at:03},50 €" for at in range(30))


def test_a_table_is_cut_between_rows() -> None:
    chunks = cut(TABLE)
    assert len(chunks) > 2
    assert [row for chunk in chunks for row in chunk.split("\n")] == TABLE.split("\n")


@pytest.mark.parametrize(
    ("table", "header"),
    [
        (TABLE, "Mes\tGasto total"),
        ("| Mes | Gasto |\n|---|---|\n| Enero | 3 |", "Mes | Gasto"),
        ("1\t2\n3\t4\n5\t6", ""),
        ("Una línea\tcon tabulador.\n\nOtra.", ""),
    ],
)
def test_the_header_of_a_table_is_found_for_chunks_below_it(table: str, header: str) -> None:
    reading = read(f"Antes.\n\n{table}\n\nFin.")
    assert [reading.columns_at(at) for at in (0, 8)] == ["", ""]
    assert read(table).columns_at(len(table) - 3) == header


def test_the_header_of_a_table_is_embedded_with_each_of_its_chunks() -> None:
    note = Note(UUID(int=1), "Gastos", TABLE, START)
    first, *others = build_chunks(note, SMALL)
    assert "Gasto total" in first.content
    assert len(others) > 1
    for chunk in others:
        assert "Gasto total" not in chunk.content
        assert contextual_text(chunk.context, chunk.content).endswith(
            f"\nMes\tGasto total\n{chunk.content}"
        )
        assert "Mes\tGasto total" in chunk.topics
