"""Files are recognised by their content, before their names."""

import io
import zipfile

import pytest

from rag_resources.core.errors import InvalidSourceError
from rag_resources.documents.media_types import (
    CSV,
    DOCX,
    HTML,
    MARKDOWN,
    ODS,
    PDF,
    TEXT,
    XLS,
    XLSX,
    media_type_of,
)

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


def archive(*names: str, first: str = "[Content_Types].xml") -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as made:
        for name in (first, *names):
            made.writestr(name, "application/vnd.oasis.opendocument.spreadsheet")
    return written.getvalue()


@pytest.mark.parametrize(
    ("content", "name", "expected"),
    [
        (b"%PDF-1.7\n", "plan.pdf", PDF),
        (b"%PDF-1.7\n", "plan.txt", PDF),
        (b"\n\n  %PDF-1.4\n", "plan", PDF),
        (b"%PDF-1.7\n" + archive("word/document.xml"), "plan.docx", PDF),
        (archive("word/document.xml") + b"%PDF-1.7\n", "plan.pdf", DOCX),
        (archive("xl/workbook.xml"), "cuentas", XLSX),
        (archive(first="mimetype"), "cuentas.zip", ODS),
        (OLE + bytes(504) + bytes(512), "cuentas.xls", XLS),
        (b"<!DOCTYPE html><title>Plan</title>", "plan.pdf", HTML),
        (b"\xef\xbb\xbf  <!-- a --><HTML>", "plan", HTML),
        (b"<html> %PDF-1.7", "plan", HTML),
        (b"<body>Sobre HTML", "notas.md", MARKDOWN),
        (b"a;b\n1;2\n", "Cuentas.CSV", CSV),
        ("año".encode("utf-16"), "plan.txt", TEXT),
        (b"Un bando.", "https://ejemplo.es/bando.txt?clave=a/b.pdf", TEXT),
    ],
)
def test_what_a_file_is(content: bytes, name: str, expected: str) -> None:
    file = io.BytesIO(content)
    assert media_type_of(file, name) == expected
    assert file.tell() == 0


@pytest.mark.parametrize(
    ("content", "name", "words"),
    [
        (b"", "plan.pdf", "vacío"),
        (b"Not found", "plan.pdf", "extensión .pdf"),
        (b"PK\x03\x04nothing", "plan.docx", "extensión .docx"),
        (b"\x89PNG\r\n\x1a\n\0", "foto.png", ".png"),
        (b"nada\0nada", "plan.txt", "(.txt)"),
        (OLE + bytes(504) + "EncryptedPackage".encode("utf-16-le"), "plan.xlsx", "contraseña"),
    ],
)
def test_what_no_reader_knows_is_refused_in_words(content: bytes, name: str, words: str) -> None:
    with pytest.raises(InvalidSourceError, match=r"\w") as refused:
        media_type_of(io.BytesIO(content), name)
    assert words in refused.value.message
