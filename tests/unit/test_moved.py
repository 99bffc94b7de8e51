"""Notes whose file was moved or renamed."""

from pathlib import Path

from rag_resources.ingestion.ingest import MovedNote, find_moved


def test_a_note_whose_file_is_gone_is_named_with_the_file_that_has_its_text(tmp_path: Path) -> None:
    (tmp_path / "obra").mkdir()
    (tmp_path / "obra" / "gotera.v2.MD").write_text("Gotea.", "utf-8")
    twins = [("gotera", "obra/gotera.v2")]
    assert find_moved(twins, tmp_path) == [MovedNote("gotera", "obra/gotera.v2")]


def test_two_files_with_one_text_are_two_notes_and_two_rows_of_a_table_too(tmp_path: Path) -> None:
    """Nothing says that a row without a file of its own has moved, unless a file has its text."""
    for name in ("a.md", "b.txt", "fuera.csv"):
        (tmp_path / name).write_text("Igual.", "utf-8")
    assert find_moved([("a", "b"), ("fila-1", "fila-2"), ("fuera", "fila-3")], tmp_path) == []
