"""Builds a note from the fields of a record, for every file format.

The fields are read by the module of each format: `markdown`, `row_files`, `exports`.
"""

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any

from pydantic_core import to_json

from rag_resources.core.blocks import Reading, read
from rag_resources.core.quoting import shown
from rag_resources.core.text import content_sha256, is_blank
from rag_resources.core.timestamps import (
    EXPIRES_AT_FIELDS,
    parse_timestamp,
)
from rag_resources.core.types import DateSource, NoteRecord
from rag_resources.ingestion.dates import found_date, stated_date, without_date
from rag_resources.ingestion.source_file import (
    CONFLICT_MARK,
    MAX_NOTE_BYTES,
    InvalidRecordError,
    SourceFile,
    too_large,
)
from rag_resources.languages.messages import _, about


def folded_name(name: str) -> str:
    """Return the name of a field as names are compared: `Fecha de Creación` is `fecha_creacion`."""
    letters = unicodedata.normalize("NFD", name.casefold())
    plain = "".join(own for own in letters if not unicodedata.combining(own))
    return "".join(word for word in re.findall(r"[^\W_]+", plain) if word != "de")


ID_FIELDS = ("id", "external_id", "externalId", "identificador")
CONTENT_FIELDS = (
    *("content", "text", "body", "contenido", "texto", "nota", "mensaje", "message"),
    *("descripcion", "description"),
)
CREATED_AT_FIELDS = (
    *("created_at", "date", "fecha", "created", "creado", "creada", "fecha_creacion"),
    *("date_created", "creation_date", "created_time", "user_created_time"),
)
TITLE_FIELDS = ("title", "titulo", "asunto", "subject")
TAGS_FIELDS = ("tags", "etiquetas")
ALIASES_FIELDS = ("aliases", "alias")
_CONTENT_NAMES = [folded_name(name) for name in CONTENT_FIELDS]
KNOWN_FIELDS = (
    *ID_FIELDS,
    *CONTENT_FIELDS,
    *CREATED_AT_FIELDS,
    *EXPIRES_AT_FIELDS,
    *TITLE_FIELDS,
    *TAGS_FIELDS,
    *ALIASES_FIELDS,
)

# Both are keys of database indexes, whose entries are limited to a third of a page (2,704 bytes).
MAX_ID_BYTES = 1024
MAX_TAG_BYTES = 512

_NUL = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")
_HASH_ID_CHARS = 32
_BASE64 = r"[A-Za-z0-9+/_=-]"
_PAYLOAD = re.compile(
    rf"(?P<picture>data:[\w.+/-]+(?:;[\w=-]+)*;base64,{_BASE64}*"
    rf"(?:\s+{_BASE64}{{20,}})*(?:\s+{_BASE64}+(?=[)\"'>]))?)"
    r"|(?P<drawing>^```compressed-json\n.*?^```$"
    r"|^```json\n\{\s*\"type\":\s*\"excalidraw\".*?^```$)"
    rf"|(?P<data>(?<!{_BASE64})(?:[A-Za-z0-9+/]{{60,}}={{0,2}}\s?){{4,}}(?:{_BASE64}+(?=\s|\Z))?)",
    re.MULTILINE | re.DOTALL,
)
"""Pictures, drawings and other data as letters: nobody reads them."""
_DATA_SIGNS = [re.compile(sign) for sign in ("[A-Z]", "[a-z]", "[0-9]", r"[+/=]")]
_LETTERS = re.compile(r"[^\W\d_]{2}")
_IDENTIFIER = re.compile(r"[0-9a-f-]{16,}", re.IGNORECASE)
_EXPORT_ID = re.compile(r" [0-9a-f]{32}$")
_JOINTS = re.compile(r"[-_]+")
_MARKED = re.compile(r"#|\[\[|%%|<!--|```|~~~")
"""What a text has that says more than its words: it is read before it is stored."""


def build_note(
    fields: Mapping[Any, Any],
    *,
    file: SourceFile,
    location: str,
    content: str | None = None,
    default_id: str | None = None,
    default_title: str = "",
    left_out: Mapping[str, int] = MappingProxyType({}),
) -> NoteRecord:
    """Build a note from the fields of a record.

    NUL characters, which PostgreSQL cannot store, and pictures in the text are cut out.
    `metadata["expiresAt"]` is the note's expiry, which the store reads there.

    Args:
        fields: Names and values as read from YAML, JSON or CSV; unknown fields become metadata.
        file: The file of the record.
        location: The record's location, for messages.
        content: None to take it from the fields.
        default_id: Id of a record that has none; None uses a hash of its content.
        default_title: Title of a record without one, and without a heading.
        left_out: How many characters its reader left out, by the reason.

    Raises:
        InvalidRecordError: The fields do not make a note; the message names the field at fault.
    """
    values = storable_fields(fields)
    own_content = values if content is None else {"content": content}
    body, payloads = _without_payloads(_content(own_content))
    reading = read(body if _MARKED.search(body) else "")
    if is_blank(body):
        raise InvalidRecordError(about("content", _("must not be empty")))
    external_id = _external_id(values, default_id or content_sha256(body).hex()[:_HASH_ID_CHARS])
    created_at = _moment(values, CREATED_AT_FIELDS, stated_date)
    expires_at = _moment(values, EXPIRES_AT_FIELDS, _exactly)
    title = _title(values, reading, default_title)
    # Another name of a note is searched with it as its tags are.
    labels = *_labels(values, TAGS_FIELDS), *_labels(values, ALIASES_FIELDS)
    tags = tuple(dict.fromkeys((*labels, *(tag for tag in reading.tags if _fits(tag)))))
    metadata = values
    date_source: DateSource = "field"
    if created_at is None:
        created_at, date_source = found_date(external_id, title, body, file)
    if left_out := {**left_out, **payloads, **reading.left_out}:
        metadata["leftOut"] = {f"{reason}Chars": size for reason, size in left_out.items()}
    if expires_at is not None:
        metadata["expiresAt"] = expires_at.isoformat()
    return NoteRecord(external_id, title, body, created_at, tags, metadata, location, date_source)


def storable_fields(fields: Mapping[Any, Any]) -> dict[str, Any]:
    """Return fields as JSON values that PostgreSQL stores: dates in ISO 8601, NaN null, no NUL.

    Raises:
        InvalidRecordError: A value has no such form; the message names the field.
    """
    values: dict[str, Any] = {}
    for key, value in fields.items():
        try:
            written = to_json({key: value}, inf_nan_mode="null").decode()
            values |= json.loads(_NUL.sub(r"\1", written))
        except (TypeError, ValueError, RecursionError) as error:
            name = shown(str(key)) if isinstance(key, str) else "…"
            raise InvalidRecordError(
                about(name, _("invalid value (“{value}”)").format(value=type(value).__name__)),
                field=name,
            ) from error
    return values


def readable_dates(fields: Mapping[str, str]) -> dict[str, str]:
    """Return the fields of a page without dates that cannot be read: the page shows them."""
    names = {folded_name(name) for name in CREATED_AT_FIELDS}
    return {
        name: value
        for name, value in fields.items()
        if folded_name(name) not in names or stated_date(value)
    }


def take(values: dict[str, Any], names: Sequence[str]) -> tuple[str, Any]:
    """Take the first of these fields that has a value; the others remain.

    Returns:
        The field's name and value; or the first name and None if no field has a value.
    """
    wanted = [folded_name(name) for name in names]
    found = [name for name in values if folded_name(name) in wanted]
    found.sort(key=lambda name: (wanted.index(folded_name(name)), name not in names))
    for name in found:
        if values[name] is None:
            del values[name]
    name = next((own for own in found if own in values), names[0])
    return name, values.pop(name, None)


def title_of_file(name: str) -> str:
    """Return the title that a file's name gives its note; empty if it has no words.

    A date at its start and the mark of a conflict copy are left out, and so is a name that only
    identifies, as of digits.

    Args:
        name: Without suffix, and with or without folders.
    """
    stem = CONFLICT_MARK.sub("", _EXPORT_ID.sub("", name.rpartition("/")[2])).replace("___", "/")
    words = without_date(stem).strip(" -_")
    if not _LETTERS.search(words) or _IDENTIFIER.fullmatch(words):
        return ""
    # A name with spaces was written for people: its hyphens are meant.
    return " ".join((words if " " in stem else _JOINTS.sub(" ", words)).split())


def _invalid_field(problem: str, field: str, value: object) -> InvalidRecordError:
    return InvalidRecordError(
        about(field, problem.format(value=shown(value))), field=field, value=value
    )


def _content(values: dict[str, Any]) -> str:
    field, value = _take_content(values)
    if value is None:
        raise InvalidRecordError(about(" / ".join(CONTENT_FIELDS), _("this field is missing")))
    if not isinstance(value, str):
        raise _invalid_field(_("“{value}” is not a text: put it in quotes"), field, value)
    if is_blank(value):
        raise InvalidRecordError(about(field, _("must not be empty")), field=field)
    if len(value) * 4 > MAX_NOTE_BYTES and len(value.encode()) > MAX_NOTE_BYTES:
        raise too_large()
    return value


def _take_content(values: dict[str, Any]) -> tuple[str, Any]:
    """Take the first content field that is not blank, or else the first one."""
    present = [name for name in values if is_content_field(name)]
    present.sort(key=lambda name: _CONTENT_NAMES.index(folded_name(name)))
    given = [name for name in present if values[name] is not None]
    full = [name for name in given if not is_blank(str(values[name]))]
    return take(values, full or given or CONTENT_FIELDS)


def is_content_field(name: str) -> bool:
    """Whether a field holds the text of a note, by its name."""
    return folded_name(name) in _CONTENT_NAMES


def _without_payloads(text: str) -> tuple[str, dict[str, int]]:
    """Return a text without pictures and drawings that are written as letters, and their sizes."""
    left_out: Counter[str] = Counter()

    def cut(match: re.Match[str]) -> str:
        if match.lastgroup == "data" and not all(sign.search(match[0]) for sign in _DATA_SIGNS):
            return match[0]
        left_out[match.lastgroup or ""] += len(match[0])
        return ""

    return _PAYLOAD.sub(cut, text), dict(left_out)


def _external_id(values: dict[str, Any], default_id: str) -> str:
    field, value = take(values, ID_FIELDS)
    if value is None:
        field, value = "id", default_id
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise _invalid_field(
            _("“{value}” is not a text: put it in quotes"),
            field,
            value,
        )
    external_id = str(value).strip() or default_id
    if len(external_id.encode()) > MAX_ID_BYTES:
        raise InvalidRecordError(
            about(field, _("takes more than {maximum} bytes").format(maximum=MAX_ID_BYTES)),
            field=field,
        )
    return external_id


def _moment(
    values: dict[str, Any], names: tuple[str, ...], read: Callable[[Any], datetime | None]
) -> datetime | None:
    field, value = take(values, names)
    if not value or (isinstance(value, str) and is_blank(value)):
        return None
    moment = read(value)
    if moment is None:
        raise _invalid_field(
            _(
                "“{value}” is not a date; write it like this: 2025-03-14 or "
                "2025-03-14T18:30:00+01:00"
            ),
            field,
            value,
        )
    return moment


def _exactly(value: Any) -> datetime | None:
    return parse_timestamp(value) if isinstance(value, str) else None


def _title(values: dict[str, Any], reading: Reading, default: str) -> str:
    field, value = take(values, TITLE_FIELDS)
    if value is None:
        spans = (own.span for own in reading.blocks if own.kind == "heading" and own.level == 1)
        headings = (reading.rendered(own.start, own.end) for own in spans)
        value = next(filter(None, headings), default)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise _invalid_field(_("“{value}” is not a text: put it in quotes"), field, value)
    return " ".join(str(value).split())


def _labels(values: dict[str, Any], fields: tuple[str, ...]) -> tuple[str, ...]:
    field, value = take(values, fields)
    if value is None:
        return ()
    items = re.split("[,;]", value) if isinstance(value, str) else value
    if not isinstance(items, list):
        raise _invalid_field(
            _("a list was expected, not “{value}”"),
            field,
            value,
        )
    tags: dict[str, None] = {}
    for item in items:
        if isinstance(item, bool | list | dict):
            raise _invalid_field(
                _("a list was expected, not “{value}”"),
                field,
                item,
            )
        tag = "" if item is None else str(item).strip().removeprefix("#").strip("[]")
        if not _fits(tag):
            raise _invalid_field(_("the tag “{value}” is too long"), field, tag)
        if tag:
            tags[tag] = None
    return tuple(tags)


def _fits(tag: str) -> bool:
    return len(tag.encode()) <= MAX_TAG_BYTES
