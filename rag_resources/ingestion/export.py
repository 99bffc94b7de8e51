"""Writes a tenant's notes and deletions as JSON Lines, and reads them into a new database.

Notes of documents are left out: their files are read again. Golden questions are in `golden.files`.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

from psycopg.types.json import Jsonb
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from rag_resources.core.errors import InvalidSourceError
from rag_resources.core.quoting import shown
from rag_resources.core.text import is_blank
from rag_resources.core.types import DateSource, RejectedRecord
from rag_resources.database.pool import Database
from rag_resources.database.queries import queries
from rag_resources.files import PRIVATE, set_aside, write_atomically
from rag_resources.ingestion.records import storable_fields
from rag_resources.ingestion.row_files import load_object, opened
from rag_resources.ingestion.source_file import InvalidRecordError
from rag_resources.languages.messages import _, about
from rag_resources.store.tombstones import Deletion

HEADER = b'{"export": {"version": 1}}\n'
"""The first line of such a file."""

BATCH_LINES = 200
BATCH_CHARS = 4_000_000
NAMED_REJECTIONS = 1_000

Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class _Row(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel, validate_by_name=True, from_attributes=True, extra="forbid"
    )


class _Note(_Row):
    id: UUID
    source: str
    external_id: str | None
    title: str
    content: str
    tags: list[str]
    metadata: dict[str, Any]
    created_at: AwareDatetime
    updated_at: AwareDatetime
    expires_at: AwareDatetime | None
    date_source: DateSource | None


class _Deletion(_Row):
    note_id: UUID
    source: str
    external_id: str | None
    content_sha256: Sha256
    kind: Deletion
    reason: str
    deleted_at: AwareDatetime
    expires_at: AwareDatetime | None
    note: dict[str, Any] | None


class _DocumentDeletion(_Row):
    file_sha256: Sha256
    text_sha256: Sha256 | None
    source: str
    address: str
    reason: str
    deleted_at: AwareDatetime


_ROWS: dict[str, type[_Row]] = {
    "note": _Note,
    "deletion": _Deletion,
    "documentDeletion": _DocumentDeletion,
}
"""What a line holds, by its only key."""


@dataclass
class ExportReading:
    """The outcome of reading an export.

    Attributes:
        inserted: New rows, by kind of line.
        present: Rows that were there already, by kind; they stay as they are.
        rejected: Lines that cannot be read, the first `NAMED_REJECTIONS`.
        rejected_count: Number of all of them.
    """

    inserted: Counter[str] = field(default_factory=Counter)
    present: Counter[str] = field(default_factory=Counter)
    rejected: list[RejectedRecord] = field(default_factory=list)
    rejected_count: int = 0


def export_lines(database: Database, *, tenant: str, counts: Counter[str]) -> Iterator[bytes]:
    """Yield the lines of an export, all of one moment.

    Args:
        database: Open.
        tenant: The owner.
        counts: Gets the number of lines of each kind.
    """
    statements = {
        "note": queries().export_notes,
        "deletion": queries().export_deletions,
        "documentDeletion": queries().export_document_deletions,
    }
    yield HEADER
    with database.snapshot() as connection:
        for kind, statement in statements.items():
            with connection.cursor(name=f"export_{kind.lower()}") as cursor:
                cursor.itersize = BATCH_LINES
                for row in cursor.execute(statement.sql, {"tenant": tenant}):
                    line = _ROWS[kind].model_validate(row).model_dump(mode="json", by_alias=True)
                    yield f"{json.dumps({kind: line}, ensure_ascii=False)}\n".encode()
                    counts[kind] += 1


def export_notes(database: Database, path: Path, *, tenant: str) -> Counter[str]:
    """Write an export atomically; a file that is there already is set aside.

    Returns:
        The number of lines of each kind.

    Raises:
        InvalidSourceError: The file cannot be written.
    """
    counts: Counter[str] = Counter()
    try:
        if path.is_file():
            set_aside(path)
        write_atomically(path, export_lines(database, tenant=tenant, counts=counts), mode=PRIVATE)
    except OSError as error:
        raise InvalidSourceError(
            _(
                "{path} cannot be written: check the folder, the permissions and the free space."
            ).format(path=path)
        ) from error
    return counts


def is_export(path: Path) -> bool:
    """Whether a path is a file that `export_notes` wrote."""
    with suppress(OSError):
        if path.is_file():
            with path.open("rb") as file:
                return file.read(len(HEADER)) == HEADER
    return False


def read_export(
    database: Database,
    path: Path,
    *,
    tenant: str,
    progress: Callable[[int], None] = lambda _: None,
) -> ExportReading:
    """Store the notes and deletions of an export under their ids; repeating it changes nothing.

    Args:
        database: Open.
        path: A file for which `is_export` is true.
        tenant: The new owner.
        progress: Called with the number of lines of each batch.

    Raises:
        DatabaseUnavailableError: The connection was lost; what was committed stays.
    """
    reading = ExportReading()
    with opened(path, newline="\n") as lines:
        for kind, rows in _batches(_rows(islice(lines, 1, None), path.name, reading)):
            inserted = _insert(database, kind, rows, tenant=tenant)
            reading.inserted[kind] += inserted
            reading.present[kind] += len(rows) - inserted
            progress(len(rows))
    return reading


def _insert(database: Database, kind: str, rows: list[_Row], *, tenant: str) -> int:
    statements = {
        "note": queries().insert_exported_notes,
        "deletion": queries().insert_exported_deletions,
        "documentDeletion": queries().insert_exported_document_deletions,
    }
    given = Jsonb([row.model_dump(mode="json") for row in rows])
    with database.bulk() as connection:
        queries().lock_tombstones(connection)
        inserted: int = statements[kind](connection, tenant=tenant, given=given)
    return inserted


def _rows(
    lines: Iterable[str], name: str, reading: ExportReading
) -> Iterator[tuple[str, _Row, int]]:
    """Yield kind, row and length of each line that can be read."""
    for number, line in enumerate(lines, start=2):
        if is_blank(line):
            continue
        try:
            kind, row = _parsed(line, number)
        except InvalidRecordError as error:
            reading.rejected_count += 1
            if len(reading.rejected) < NAMED_REJECTIONS:
                reading.rejected.append(error.rejected(f"{name}:{number}"))
        else:
            yield kind, row, len(line)


def _parsed(line: str, number: int) -> tuple[str, _Row]:
    given = load_object(line, number)
    kind, fields = next(iter(given.items()), ("", None))
    if len(given) != 1 or kind not in _ROWS or not isinstance(fields, dict):
        raise _not_exported(kind, fields)
    try:
        return kind, _ROWS[kind].model_validate(storable_fields(fields))
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        missing = first["type"] == "missing"
        raise _not_exported(name, None if missing else first["input"]) from error


def _not_exported(name: str, value: Any) -> InvalidRecordError:
    return InvalidRecordError(
        about(name, _("invalid value (“{value}”)").format(value=shown(value))),
        field=name,
    )


def _batches(rows: Iterable[tuple[str, _Row, int]]) -> Iterator[tuple[str, list[_Row]]]:
    """Put rows of one kind together, of limited number and size."""
    batch: list[_Row] = []
    current, chars = "", 0
    for kind, row, size in rows:
        full = len(batch) == BATCH_LINES or chars + size > BATCH_CHARS
        if batch and (kind != current or full):
            yield current, batch
            batch, chars = [], 0
        current = kind
        batch.append(row)
        chars += size
    if batch:
        yield current, batch
