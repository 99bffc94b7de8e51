"""Builds a note from the fields of a record, for every file format.

The fields are read by the module of each format: `markdown`, `jsonl`, `csv_file`.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from rag_resources.core.quoting import shown
from rag_resources.core.text import content_sha256, is_blank
from rag_resources.core.timestamps import (
    EXPIRES_AT_FIELDS,
    leading_date,
    parse_timestamp,
    without_leading_date,
)
from rag_resources.core.types import NoteRecord
from rag_resources.ingestion.field_values import FieldValues
from rag_resources.ingestion.source_file import (
    InvalidRecordError,
    SourceFile,
    too_large,
)
from rag_resources.languages.messages import _

ID_FIELDS = ("id", "external_id", "externalId", "identificador")
CONTENT_FIELDS = ("content", "text", "body", "contenido", "texto")
CREATED_AT_FIELDS = ("created_at", "createdAt", "date", "fecha", "created", "creado")
TITLE_FIELDS = ("title", "titulo", "título")
TAGS_FIELDS = ("tags", "etiquetas")
KNOWN_FIELDS = (
    *ID_FIELDS,
    *CONTENT_FIELDS,
    *CREATED_AT_FIELDS,
    *EXPIRES_AT_FIELDS,
    *TITLE_FIELDS,
    *TAGS_FIELDS,
)

# Both are keys of database indexes, whose entries are limited to a third of a page (2,704 bytes).
MAX_ID_BYTES = 1024
MAX_TAG_BYTES = 512

_HASH_ID_CHARS = 32
_LETTERS = re.compile(r"[^\W\d_]{2}")
_IDENTIFIER = re.compile(r"[0-9a-f-]{16,}", re.IGNORECASE)
_JOINTS = re.compile(r"[-_]+")
_HEADING_OR_FENCE = re.compile(
    r"^ {0,3}(?:(?P<fence>```|~~~)|#[ \t]+(?P<heading>.*))", re.MULTILINE
)


def build_note(
    fields: Mapping[Any, Any],
    *,
    file: SourceFile,
    location: str,
    max_bytes: int,
    content: str | None = None,
    default_id: str | None = None,
    default_title: str = "",
    nul_characters: int = 0,
) -> NoteRecord:
    """Build a note from the fields of a record.

    NUL characters, which PostgreSQL cannot store, are removed everywhere and counted in
    `metadata["nulCharactersRemoved"]`; the content is not changed otherwise. If no date is given,
    `metadata["createdAtOrigin"]` names the one that was used: "file_name" or "file_modified".
    `metadata["expiresAt"]` is the note's expiry, which the store reads there.

    Args:
        fields: Names and values as read from YAML, JSON or CSV; unknown fields become metadata.
        file: The file of the record.
        location: The record's location, for messages.
        max_bytes: Limit of the content in UTF-8.
        content: Without NUL characters; None to take it from the fields.
        default_id: Id of a record that has none; None uses a hash of its content.
        default_title: Title of a record without one, and without a heading.
        nul_characters: Number of NUL characters already removed.

    Raises:
        InvalidRecordError: The fields do not make a note; the message names the field at fault.
    """
    values = FieldValues(fields)
    own_content = values if content is None else FieldValues({"content": content})
    body = _content(own_content, max_bytes)
    external_id = _external_id(values, default_id or content_sha256(body).hex()[:_HASH_ID_CHARS])
    created_at = _moment(
        values,
        CREATED_AT_FIELDS,
        _(
            "{field}: “{value}” is not a date. Write it like this: 2025-03-14 or "
            "2025-03-14T18:30:00+01:00."
        ),
    )
    expires_at = _moment(
        values,
        EXPIRES_AT_FIELDS,
        _(
            "{field}: “{value}” is not a date. Write it like this: 2025-03-14 or "
            "2025-03-14T18:30:00+01:00."
        ),
    )
    title = _title(values, body, default_title)
    tags = _tags(values)
    metadata = values.remaining
    if created_at is None:
        created_at, metadata["createdAtOrigin"] = _default_created_at(external_id, file)
    if expires_at is not None:
        metadata["expiresAt"] = expires_at.isoformat()
    if nul_characters := nul_characters + values.nul_characters:
        metadata["nulCharactersRemoved"] = nul_characters
    return NoteRecord(external_id, title, body, created_at, tags, metadata, location)


def title_of_file(name: str) -> str:
    """Return the title that a file's name gives its note; empty if it has no words.

    A date at its start is left out, and so is a name that only identifies, as of digits.

    Args:
        name: Without suffix, and with or without folders.
    """
    stem = name.rpartition("/")[2]
    words = without_leading_date(stem).strip(" -_")
    if not _LETTERS.search(words) or _IDENTIFIER.fullmatch(words):
        return ""
    # A name with spaces was written for people: its hyphens are meant.
    return " ".join((words if " " in stem else _JOINTS.sub(" ", words)).split())


def _invalid_field(message: str, field: str, value: object) -> InvalidRecordError:
    return InvalidRecordError(
        message.format(field=field, value=shown(value)), field=field, value=value
    )


def _content(values: FieldValues, max_bytes: int) -> str:
    field, value = _take_content(values)
    if value is None:
        raise InvalidRecordError(
            _("content: the content is missing; put it in one of these fields: {known}.").format(
                known=", ".join(CONTENT_FIELDS)
            )
        )
    if not isinstance(value, str):
        raise _invalid_field(_("{field}: must be a text, not “{value}”."), field, value)
    if is_blank(value):
        raise InvalidRecordError(
            _("{field}: the content is blank.").format(field=field), field=field
        )
    if len(value) * 4 > max_bytes and len(value.encode()) > max_bytes:
        raise too_large(max_bytes)
    return value


def _take_content(values: FieldValues) -> tuple[str, Any]:
    """Take the first content field that is not blank, or else the first one."""
    present = [name for name in CONTENT_FIELDS if values.remaining.get(name) is not None]
    full = [name for name in present if not is_blank(str(values.remaining[name]))]
    return values.take(full or present or CONTENT_FIELDS)


def _external_id(values: FieldValues, default_id: str) -> str:
    field, value = values.take(ID_FIELDS)
    if value is None:
        field, value = "id", default_id
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise _invalid_field(
            _("{field}: must be a text or an integer, not “{value}”. Put it in quotes."),
            field,
            value,
        )
    external_id = str(value).strip() or default_id
    if len(external_id.encode()) > MAX_ID_BYTES:
        raise InvalidRecordError(
            _("{field}: the identifier takes more than {maximum} bytes.").format(
                field=field, maximum=MAX_ID_BYTES
            ),
            field=field,
        )
    return external_id


def _moment(values: FieldValues, names: tuple[str, ...], problem: str) -> datetime | None:
    field, value = values.take(names)
    if value is None or (isinstance(value, str) and is_blank(value)):
        return None
    moment = parse_timestamp(value) if isinstance(value, str) else None
    if moment is None:
        raise _invalid_field(problem, field, value)
    return moment


def _default_created_at(external_id: str, file: SourceFile) -> tuple[datetime, str]:
    names = (external_id, external_id.rpartition("/")[2], file.name.rpartition("/")[2])
    for name in names:
        if dated := leading_date(name):
            return dated, "file_name"
    return file.modified_at, "file_modified"


def _title(values: FieldValues, content: str, default: str) -> str:
    field, value = values.take(TITLE_FIELDS)
    if value is None:
        value = _first_heading(content) or default
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise _invalid_field(_("{field}: must be a text, not “{value}”."), field, value)
    return " ".join(str(value).split())


def _first_heading(content: str) -> str:
    """Return the first `# heading` outside code blocks; empty if there is none."""
    fence = ""
    for match in _HEADING_OR_FENCE.finditer(content):
        mark = match["fence"]
        if mark and not fence:
            fence = mark
        elif mark == fence:
            fence = ""
        elif not mark and not fence and (heading := _without_closing_marks(match["heading"])):
            return heading
    return ""


def _without_closing_marks(heading: str) -> str:
    """Return the text of `# heading ##`; in `# C#` the mark is part of the text."""
    heading = heading.strip()
    unmarked = heading.rstrip("#")
    return unmarked.strip() if unmarked.endswith((" ", "\t")) or not unmarked else heading


def _tags(values: FieldValues) -> tuple[str, ...]:
    field, value = values.take(TAGS_FIELDS)
    if value is None:
        return ()
    items = value.split(",") if isinstance(value, str) else value
    if not isinstance(items, list):
        raise _invalid_field(
            _("{field}: must be a list of texts or a text with commas, not “{value}”."),
            field,
            value,
        )
    tags: dict[str, None] = {}
    for item in items:
        if isinstance(item, bool | list | dict):
            raise _invalid_field(
                _("{field}: must be a list of texts or a text with commas, not “{value}”."),
                field,
                item,
            )
        tag = "" if item is None else str(item).strip()
        if len(tag.encode()) > MAX_TAG_BYTES:
            raise _invalid_field(_("{field}: the tag “{value}” is too long."), field, tag)
        if tag:
            tags[tag] = None
    return tuple(tags)
