"""Reads web pages, and what mail programs and Evernote export: `.html`, `.eml`, `.mbox`, `.enex`.

What is written in HTML becomes Markdown; attachments are left out and counted.
"""

import re
from collections import Counter
from collections.abc import Iterator
from email import message_from_binary_file, message_from_bytes, policy
from email.message import EmailMessage
from email.utils import parsedate_to_datetime
from itertools import groupby
from mailbox import mbox
from typing import Any
from xml.etree import ElementTree

from selectolax.lexbor import LexborHTMLParser

from rag_resources.core.documents import Block, BlockKind, Page
from rag_resources.core.errors import InvalidSourceError
from rag_resources.core.types import NoteRecord, RejectedRecord
from rag_resources.documents.html import content_of, metadata_of, parsed, refuse_deep
from rag_resources.ingestion.records import build_note, readable_dates, title_of_file
from rag_resources.ingestion.source_file import InvalidRecordError, SourceFile
from rag_resources.languages.messages import _

Records = Iterator[NoteRecord | RejectedRecord]

_TODO = re.compile(r"<en-todo[^>]*>(?:</en-todo>)?")
_TABLE = (BlockKind.TABLE_HEADER, BlockKind.TABLE_ROW)
_PROLOG_BYTES = 64 * 1024


def read_eml(file: SourceFile) -> Records:
    """Yield the message of a file."""
    with file.path.open("rb") as opened:
        message = message_from_binary_file(opened, policy=policy.default)
    yield from _message(message, file, file.name)


def read_mbox(file: SourceFile) -> Records:
    """Yield the messages of a mailbox, in order."""
    box = mbox(file.path, create=False)
    try:
        for number, key in enumerate(box.iterkeys(), start=1):
            message = message_from_bytes(box.get_bytes(key), policy=policy.default)
            yield from _message(message, file, file.at_line(number))
    finally:
        box.close()


def read_enex(file: SourceFile) -> Records:
    """Yield the notes of an export of Evernote; one at a time is in memory."""
    with file.path.open("rb") as opened:
        if b"<!ENTITY" in opened.read(_PROLOG_BYTES):
            raise InvalidRecordError(_("It is not an export of Evernote, or it is damaged."))
        opened.seek(0)
        try:
            notes = (node for _event, node in ElementTree.iterparse(opened) if node.tag == "note")  # noqa: S314 - no entity is declared
            for number, node in enumerate(notes, start=1):
                location = file.at_line(number)
                try:
                    yield from _built(_evernote(node), file, location)
                except InvalidSourceError as error:
                    yield RejectedRecord(location, error.message)
                node.clear()
        except (ElementTree.ParseError, LookupError) as error:
            raise InvalidRecordError(
                _("It is not an export of Evernote, or it is damaged.")
            ) from error


def _built(fields: dict[str, Any], file: SourceFile, location: str) -> Records:
    try:
        yield build_note(fields, file=file, location=location)
    except InvalidRecordError as error:
        yield error.rejected(location)


def _evernote(node: ElementTree.Element) -> dict[str, Any]:
    left_out = len(node.findall("resource"))
    return {
        "title": node.findtext("title") or "",
        "content": _text_of_html(node.findtext("content") or ""),
        "created_at": node.findtext("created"),
        "tags": [tag.text for tag in node.findall("tag") if tag.text],
        **({"attachments": left_out} if left_out else {}),
    }


def _message(message: EmailMessage, file: SourceFile, location: str) -> Records:
    body = message.get_body(("plain", "html"))
    try:
        text = str(body.get_content()) if body else ""
        date = parsedate_to_datetime(str(message["date"])) if message["date"] else None
        if body and body.get_content_subtype() == "html":
            text = _text_of_html(text)
    except (LookupError, ValueError, TypeError, InvalidSourceError):
        yield RejectedRecord(location, _("The message is damaged."))
        return
    left_out = sum(1 for _part in message.iter_attachments())
    fields = {
        "id": str(message["message-id"] or "").strip("<> ") or None,
        "title": str(message["subject"] or ""),
        "content": text.replace("\r\n", "\n").strip("\n"),
        "created_at": date.isoformat() if date else None,
        **{name: str(message[name]) for name in ("from", "to", "cc") if message[name]},
        **({"attachments": left_out} if left_out else {}),
    }
    yield from _built(fields, file, location)


def read_html(file: SourceFile) -> Records:
    """Yield a web page, such as a page that Notion exports."""
    content = file.path.read_bytes()
    try:
        refuse_deep(content)
        tree = parsed(content)
    except InvalidSourceError as error:
        raise InvalidRecordError(error.message) from error
    rows = [(row.css_first("th"), row.css_first("td")) for row in tree.css("table.properties tr")]
    told = {name.text().strip(): cell.text().strip(" @\n") for name, cell in rows if name and cell}
    page = content_of(tree, main_only=True).page(metadata=metadata_of(tree))
    removed = Counter[str]()
    for removal in page.removed:
        removed[removal.reason] += removal.end - removal.start
    try:
        yield build_note(
            dict(page.metadata) | readable_dates(told),
            file=file,
            location=file.name,
            content=_markdown(page),
            default_id=file.name_without_suffix,
            default_title=title_of_file(file.name_without_suffix),
            left_out=removed,
        )
    except InvalidRecordError as error:
        yield error.rejected(file.name)


def _text_of_html(html: str) -> str:
    """Return what a message or note in HTML shows.

    Raises:
        InvalidSourceError: Its elements are nested too deeply.
    """
    ticked = _TODO.sub(lambda found: "[x] " if "true" in found[0] else "[ ] ", html)
    refuse_deep(ticked.encode("utf-8", "replace"))
    return _markdown(content_of(LexborHTMLParser(ticked), main_only=False).page())


def _markdown(page: Page) -> str:
    """Return a page with marked headings and code; the cells of a row have tabs between them."""
    parts: list[str] = []
    for is_table, blocks in groupby(page.blocks, key=lambda own: own.kind in _TABLE):
        texts = [_written(page.text[own.start : own.end], own) for own in blocks]
        parts.append(("\n" if is_table else "\n\n").join(texts))
    return "\n\n".join(parts)


def _written(text: str, block: Block) -> str:
    if block.kind is BlockKind.HEADING:
        return f"{'#' * block.level} {' '.join(text.split())}"
    return f"```\n{text}\n```" if block.kind is BlockKind.CODE else text
