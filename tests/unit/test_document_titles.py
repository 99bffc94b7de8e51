"""Where the title of a document of the folder comes from."""

from pathlib import Path

from rag_resources.documents.folder import FoundFile, folder_files

PAGE = "<title>Guía de la caldera</title><h1>Guía de la caldera</h1><p>Se purga en octubre.</p>"


def titles(folder: Path) -> list[str]:
    return [found.title for found in folder_files(folder) if isinstance(found, FoundFile)]


def test_the_title_is_the_name_of_the_file(tmp_path: Path) -> None:
    """As the documentation says: what is written inside a file is not its title."""
    (tmp_path / "guia.html").write_text(PAGE, "utf-8")
    assert titles(tmp_path) == ["guia"]
