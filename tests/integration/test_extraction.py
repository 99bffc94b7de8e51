"""Reading a file in a child process: its limits, its death, and what is kept."""

import io
import os
import signal
import zipfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from rag_resources.core.documents import Page, PageFailure
from rag_resources.core.errors import ExtractionError
from rag_resources.core.extraction_config import ExtractionConfig
from rag_resources.documents import extraction
from rag_resources.documents.extraction import _CHILD, extract
from rag_resources.documents.media_types import DOCX, TEXT

LIMITS = ExtractionConfig()


def read(
    path: Path, content: bytes, limits: ExtractionConfig = LIMITS, media_type: str = TEXT
) -> tuple[list[Page | PageFailure], str]:
    """What is read of a file, and why not more."""
    path.write_bytes(content)
    items = []
    with path.open("rb") as file:
        try:
            items.extend(each for each in extract(file, media_type, limits))
        except ExtractionError as error:
            return items, error.message
    return items, ""


def readers() -> list[psutil.Process]:
    """The children of this process that read a file."""
    return [child for child in psutil.Process().children() if _CHILD in child.cmdline()]


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    """A file; after the test no child is left."""
    yield tmp_path / "fichero"
    assert readers() == []


@pytest.mark.parametrize(
    ("content", "limits", "words", "kept"),
    [
        (b"a\fb\fc\fd", {"pages": 3}, "más de 3 páginas", 3),
        (b"x" * 2**25, {"memory_mb": 80}, "más de 80 MB de memoria", 0),
        (b"a", {"timeout_s": 0.001}, "en 0.001 segundos", 0),
    ],
)
def test_a_limit_ends_the_reading_and_keeps_the_pages_before(
    path: Path, content: bytes, limits: dict[str, float], words: str, kept: int
) -> None:
    items, problem = read(path, content, ExtractionConfig.model_validate(limits))
    assert words in problem
    assert len(items) == kept


def test_the_pages_before_too_much_text_are_kept(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extraction, "OUTPUT_MB", 1)
    items, problem = read(path, b"a\f" + b"x" * 2**21)
    assert "más de 1 MB de texto" in problem
    assert len(items) == 1


def test_pages_read_before_the_child_is_killed_are_kept(path: Path) -> None:
    path.write_bytes(b"\f".join(b"x" * 100_000 for _ in range(100)))
    with path.open("rb") as file:
        pages = extract(file, TEXT, LIMITS)
        assert next(pages).number == 1
        (child,) = readers()
        os.kill(child.pid, signal.SIGKILL)
        with pytest.raises(ExtractionError, match="código 9"):
            list(pages)


def test_an_archive_that_unpacks_to_too_much_is_not_unpacked(path: Path) -> None:
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", bytes(140 * 1024**2))
    limits = ExtractionConfig(memory_mb=128)
    assert len(bomb.getvalue()) < 2**20
    assert "128 MB descomprimido" in read(path, bomb.getvalue(), limits, DOCX)[1]
    assert "dañado" in read(path, b"PK\x03\x04", limits, DOCX)[1]


def test_the_child_has_no_credentials(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://user:secret@host/database")
    path.write_bytes(b"\f".join(b"x" * 100_000 for _ in range(100)))
    with path.open("rb") as file:
        pages = extract(file, TEXT, LIMITS)
        next(pages)
        (child,) = readers()
        assert "DATABASE_URL" not in child.environ()
        pages.close()  # type: ignore[attr-defined]
