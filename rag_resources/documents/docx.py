"""Reads Word documents: `mammoth` turns them into HTML, in which `documents.html` finds the blocks.

This module reads what mammoth leaves out: equations, and the text of page headers and footers. It
also removes hidden text first, which mammoth would treat as visible.
"""

import io
import zipfile
from collections.abc import Iterator, Mapping
from typing import BinaryIO
from xml.etree import ElementTree

import mammoth
from selectolax.lexbor import LexborHTMLParser

from rag_resources.core.documents import Page, PageFailure
from rag_resources.documents.archives import (
    MAX_LEVELS,
    archive_of,
    check_parts,
    damaged,
    protected,
    too_deep,
    tree_of,
)
from rag_resources.documents.html import HIDDEN, content_of
from rag_resources.documents.readers import identity_of

KIND = "DOCX"
_EQUATION = "equation"
RUNNING_HEAD = "running_head"
_NOT = ("0", "false", "off")
_SPACES = {"p": "\n", "tab": "\t"}
_NAMES = {"title": "title", "creator": "author", "created": "date"}
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_STYLES = """
p[style-name='Title'] => h1:fresh
p[style-name='Subtitle'] => p:fresh
p[style-name='heading 7'] => h6:fresh
p[style-name='heading 8'] => h6:fresh
p[style-name='heading 9'] => h6:fresh
p[style-name='HTML Preformatted'] => pre:separator('\\n')
p[style-name='Code'] => pre:separator('\\n')
p[style-name='Source Code'] => pre:separator('\\n')
"""


class DocxReader:
    """Reads a Word document as one page, because only the program that shows it makes pages.

    Headers, footers and hidden text are listed as removed. Pictures, macros and external files are
    not read.
    """

    name = "docx"
    reader_hash = identity_of(name, 2, "mammoth", "selectolax")

    def read(self, file: BinaryIO) -> Iterator[Page | PageFailure]:
        """Yield the only page.

        Raises:
            InvalidSourceError: It is damaged, protected by a password or malicious.
        """
        if file.read(len(_OLE)) == _OLE:
            raise protected()
        file.seek(0)
        with archive_of(file, KIND) as archive:
            check_parts(archive)
            hidden: list[str] = []
            page = content_of(LexborHTMLParser(_html(archive, hidden)), main_only=False)
            for text in hidden:
                page.add_removed(text, HIDDEN)
            for head in dict.fromkeys(_running_heads(archive)):
                page.add_removed(head, RUNNING_HEAD)
            yield page.page(metadata=_metadata(archive))


def _html(archive: zipfile.ZipFile, hidden: list[str]) -> str:
    """Return the document as HTML; its hidden text is added to a list instead."""
    try:
        made = mammoth.convert_to_html(
            _prepared(archive, hidden),
            style_map=_STYLES,
            convert_image=mammoth.images.img_element(lambda _: {"src": ""}),
            external_file_access=False,
        )
    except RecursionError as error:
        raise too_deep(MAX_LEVELS) from error
    except Exception as error:  # mammoth has no errors of its own.
        raise damaged(KIND, error) from error
    return str(made.value)


def _prepared(archive: zipfile.ZipFile, hidden: list[str]) -> io.BytesIO:
    """Return the document with each equation as a run of text, and without hidden text."""
    copy = io.BytesIO()
    with zipfile.ZipFile(copy, "w") as made:
        for part in archive.infolist():
            content = archive.read(part)
            if part.filename.endswith(".xml"):
                if b"oMath" in content:
                    content = _equations_as_text(content)
                if b":vanish" in content:
                    content = _without_hidden(content, hidden)
            made.writestr(part.filename, content)
    copy.seek(0)
    return copy


def _equations_as_text(content: bytes) -> bytes:
    root = ElementTree.fromstring(content)  # noqa: S314 - `check_parts` refused any DTD
    word = root.tag[: root.tag.index("}") + 1]
    for parent in list(root.iter()):
        for index, child in enumerate(parent):
            if child.tag.endswith("}oMath"):
                follows = index > 0 and parent[index - 1].get(_EQUATION) is not None
                parent[index] = _run(word, f"{' ' * follows}{_linear(child)}")
                parent[index].set(_EQUATION, "")
            elif child.tag.endswith("}oMathPara"):
                run = _run(word, " ".join(map(_linear, child)))
                parent[index] = run if parent.tag == f"{word}p" else _around(f"{word}p", run)
            parent[index].tail = child.tail
    return ElementTree.tostring(root)


def _without_hidden(content: bytes, hidden: list[str]) -> bytes:
    """Remove the runs that Word hides; their text is added to a list."""
    root = ElementTree.fromstring(content)  # noqa: S314 - `check_parts` refused any DTD
    word = root.tag[: root.tag.index("}") + 1]
    for parent in list(root.iter()):
        for run in parent.findall(f"{word}r"):
            mark = run.find(f"{word}rPr/{word}vanish")
            if mark is not None and mark.get(f"{word}val", "true") not in _NOT:
                hidden.append("".join(each.text or "" for each in run.iter(f"{word}t")))
                parent.remove(run)
    return ElementTree.tostring(root)


def _linear(equation: ElementTree.Element) -> str:
    return "".join(each.text or "" for each in equation.iter() if each.tag.endswith("}t"))


def _run(word: str, text: str) -> ElementTree.Element:
    part = ElementTree.Element(f"{word}t")
    part.text = text
    return _around(f"{word}r", part)


def _around(tag: str, child: ElementTree.Element) -> ElementTree.Element:
    made = ElementTree.Element(tag)
    made.append(child)
    return made


def _running_heads(archive: zipfile.ZipFile) -> Iterator[str]:
    """Yield the text of each header and footer: a line for each paragraph."""
    for name in sorted(archive.namelist()):
        part = name.lower().rpartition("/")[2]
        if part.startswith(("header", "footer")) and part.endswith(".xml"):
            parts = (
                each.text or "" if each.tag.endswith("}t") else _SPACES.get(_local(each), "")
                for each in tree_of(archive, name).iter()
            )
            yield "".join(parts).strip()


def _metadata(archive: zipfile.ZipFile) -> Mapping[str, str]:
    """Return title, author and date as the document states them."""
    core = next((name for name in archive.namelist() if name.endswith("/core.xml")), None)
    stated = tree_of(archive, core) if core else ()
    return {
        _NAMES[_local(each)]: (each.text or "").strip()
        for each in stated
        if _local(each) in _NAMES and (each.text or "").strip()
    }


def _local(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]
