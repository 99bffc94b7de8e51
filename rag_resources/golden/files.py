"""Imports and exports golden datasets as files; the format is in `core.golden`."""

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from pydantic import BaseModel, Field, ValidationError

from rag_resources.core.errors import (
    InvalidGoldenDatasetError,
    InvalidParameterError,
    InvalidSourceError,
    unreadable,
)
from rag_resources.core.frames import (
    CSV,
    PARQUET,
    TEXT,
    entries_of_frame,
    frame_bytes,
    golden_frame,
)
from rag_resources.core.golden import GoldenEntry, parse_golden, unknown_keys
from rag_resources.core.golden_drafts import LEFT_OUT, without_drafts
from rag_resources.core.text import normalize_query
from rag_resources.core.validation import describe_problems
from rag_resources.database.pool import Connection, Database
from rag_resources.files import PRIVATE, set_aside, write_atomically
from rag_resources.golden.document_places import name_notes_of_pages
from rag_resources.languages.messages import _
from rag_resources.store.golden import (
    GoldenImport,
    import_entries,
    list_golden,
)
from rag_resources.store.notes import find_note, list_notes, note_content
from rag_resources.store.tombstones import deleted_names

UNANSWERABLE = "unanswerable"
"""The category of questions that no note answers."""


@dataclass(frozen=True, slots=True)
class GoldenFile:
    """The content of a valid file of questions.

    Attributes:
        entries: Its questions.
        drafts: Its drafts, which have no answer yet.
        orphaned: Its questions that name a deleted note; an import leaves them out.
        unknown: A sentence for each key that is not read.
    """

    entries: list[GoldenEntry]
    drafts: list[str]
    orphaned: list[str] = dataclasses.field(default_factory=list)
    unknown: list[str] = dataclasses.field(default_factory=list)


def read_golden(database: Database, path: Path, *, tenant: str) -> GoldenFile:
    """Read a file and check it as an import would, without writing anything.

    Raises:
        InvalidSourceError: The file cannot be read.
        InvalidGoldenDatasetError: Some entries are invalid (all are named), there are none, or no
            note is stored that they could name, or a question repeats a stored one.

    Properties: 30, 31, 32, 33.
    """
    given = load_rows(path)
    raw, drafts = without_drafts(given)
    with database.transaction() as connection:
        __, notes = list_notes(connection, tenant=tenant, limit=1)
        if not notes:
            raise InvalidGoldenDatasetError(
                _(
                    "There is no note yet to check {path} against. Ingest yours first: “rag run”, "
                    "or “rag ingest FOLDER”."
                ).format(path=path),
                [],
            )
        raw, orphaned = _without_deleted_notes(connection, raw, tenant)
        may_be_empty = bool(orphaned or drafts)
        entries = _parse(connection, raw, str(path), tenant, may_be_empty=may_be_empty)
        with connection.transaction(force_rollback=True):
            source = str(path.resolve())
            import_entries(connection, entries, source=source, orphaned=orphaned, origin=path.name)
    return GoldenFile(entries, drafts, orphaned, unknown_keys(given))


def import_golden(
    database: Database,
    path: Path,
    *,
    tenant: str,
    replace: bool = False,
    reason: str = "",
    run_id: str | None = None,
) -> GoldenImport:
    """Import a whole file, or nothing if any entry is invalid. Same errors as `read_golden`.

    Entries that name a deleted note are left out; if they are stored already, they stay.

    Args:
        database: Open.
        path: A JSON, CSV or Parquet file.
        tenant: Whose notes the questions refer to.
        replace: Whether the file replaces the whole dataset. Otherwise the entries of a person
            are kept, as `import_entries` describes.
        reason: Why questions are removed or changed, for the history.
        run_id: Dagster's run, if any, for the history.
    """
    return import_rows(
        database,
        load_rows(path),
        name=str(path),
        tenant=tenant,
        source=str(path.resolve()),
        origin=f"{path.name} ({run_id})" if run_id else path.name,
        replace=replace,
        reason=reason,
    )


def import_rows(
    database: Database,
    raw: Any,
    *,
    name: str,
    tenant: str,
    source: str,
    origin: str,
    replace: bool = False,
    reason: str = "",
) -> GoldenImport:
    """Import the content of a file; see `import_golden`.

    Args:
        database: Open.
        raw: A list of entries, or a mapping with one under `entries`.
        name: The file's name in errors.
        tenant: Whose notes the questions refer to.
        source: The file's identity: a later import from the same source replaces the entries.
        origin: The cause that the history records.
        replace: As `import_golden`.
        reason: As `import_golden`.
    """
    unknown = unknown_keys(raw)
    raw, drafts = without_drafts(raw)
    with database.transaction() as connection:
        raw, orphaned = _without_deleted_notes(connection, raw, tenant)
        entries = _parse(connection, raw, name, tenant, may_be_empty=bool(orphaned or drafts))
        imported = import_entries(
            connection,
            entries,
            source=source,
            orphaned=orphaned,
            replace=replace,
            origin=origin,
            reason=reason,
        )
    return dataclasses.replace(imported, drafts=drafts, unknown=unknown)


def export_golden(database: Database, path: Path, *, force: bool = False) -> int:
    """Write the dataset to a file atomically and return its number of questions.

    Args:
        database: Open.
        path: The file to write.
        force: Whether to replace a file with other content; it is kept beside the new one.

    Raises:
        InvalidParameterError: The file exists with other content.
        InvalidSourceError: The file cannot be written.
    """
    with database.transaction() as connection:
        entries = list_golden(connection)
    if path.suffix.lower() in (CSV, PARQUET):
        data = frame_bytes(golden_frame(entries), path.name)
    else:
        fields = {"entries": [entry.to_json() for entry in entries]}
        data = (json.dumps(fields, ensure_ascii=False, indent=1) + "\n").encode()
    try:
        if path.is_file() and path.read_bytes() != data:
            if not force:
                raise InvalidParameterError(
                    _(
                        "{path} exists with other content and was left alone: it may have drafts, "
                        "or questions that were not imported. Choose another name, or add "
                        "--force, which replaces it and keeps the former one."
                    ).format(path=path)
                )
            set_aside(path)
        write_atomically(path, data, mode=PRIVATE)
    except OSError as error:
        raise InvalidSourceError(
            _(
                "{path} cannot be written: check the folder, the permissions and the free space."
            ).format(path=path)
        ) from error
    return len(entries)


def _without_deleted_notes(connection: Connection, raw: Any, tenant: str) -> tuple[Any, list[str]]:
    """Leave out the rows that name a deleted note; return all others, and these questions."""
    rows = raw.get("entries") if isinstance(raw, dict) else raw
    gone = deleted_names(connection, tenant=tenant)
    if not gone or not isinstance(rows, list):
        return raw, []
    orphaned = [row for row in rows if _names(row) & gone]
    left = [LEFT_OUT if row in orphaned else row for row in rows]
    return left, [row["query"] for row in orphaned]


def _names(row: Any) -> set[str]:
    """Return the names of an entry's notes; none if it is not an entry."""
    if not isinstance(row, dict) or not isinstance(row.get("query"), str):
        return set()
    names = row.get("relevantNoteIds") or row.get("relevantNotes")
    return {str(name) for name in names} if isinstance(names, list) else set()


def _parse(
    connection: Connection, raw: Any, name: str, tenant: str, *, may_be_empty: bool = False
) -> list[GoldenEntry]:
    raw, without_page = name_notes_of_pages(connection, raw, tenant=tenant)
    entries = parse_golden(
        raw,
        origin=name,
        known_problems=without_page,
        resolve_note=lambda name: find_note(connection, name, tenant=tenant),
        content_of=lambda found: note_content(connection, found),
    )
    if not entries and not may_be_empty:  # importing no entries would delete all others
        raise InvalidGoldenDatasetError(
            _("{path} has no question; nothing was changed.").format(path=name), []
        )
    return entries


def load_rows(path: Path) -> Any:
    """Return the content of a file of questions: JSON, or a table in CSV or Parquet.

    Raises:
        InvalidSourceError: The file cannot be read.
        InvalidGoldenDatasetError: It is not of its format.
    """
    kind = path.suffix.lower()
    if kind not in (CSV, PARQUET):
        return load_json(path)
    import pandas as pd

    try:
        with path.open("rb") as file:
            if kind == CSV:
                frame = pd.read_csv(file, dtype=TEXT, keep_default_na=False, encoding="utf-8-sig")
            else:
                frame = pd.read_parquet(file)
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidSourceError(unreadable(path, error)) from error
    except ValueError as error:  # pandas' and pyarrow's errors of a broken file are of this kind
        raise InvalidGoldenDatasetError(
            _("{origin} is not valid; nothing was changed:").format(origin=path),
            [_("is not a valid table: {reason}").format(reason=error)],
        ) from error
    return entries_of_frame(frame)


def load_json(path: Path) -> Any:
    """Return the content of a JSON file of questions.

    Raises:
        InvalidSourceError: The file cannot be read.
        InvalidGoldenDatasetError: It is not JSON; the message says where.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidSourceError(unreadable(path, error)) from error
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidGoldenDatasetError(
            _("{origin} is not valid; nothing was changed:").format(origin=path),
            [
                _("is not valid {kind} (line {line}, column {column})").format(
                    kind="JSON", line=getattr(error, "lineno", 1), column=getattr(error, "colno", 1)
                )
            ],
        ) from error


class _Row(BaseModel):
    query: str = Field(min_length=1, pattern=r"\S")
    tags: tuple[str, ...] = ()


class _Rows(BaseModel):
    entries: tuple[_Row, ...]


def read_unanswerable(path: Path, *, tag: str | None = None) -> list[GoldenEntry]:
    """Return the questions of a file as entries without relevant notes; repeats count once.

    Args:
        path: JSON: `{"entries": [{"query": "…", "tags": ["…"]}]}`; other fields are ignored.
        tag: Only those with this tag; None takes all.

    Raises:
        InvalidSourceError: The file cannot be read.
        InvalidGoldenDatasetError: It is not of that form; every problem is named.
    """
    raw = load_json(path)
    try:
        rows = _Rows.model_validate(raw).entries
    except ValidationError as error:
        headline = _("The file of questions without an answer is not valid ({origin}):").format(
            origin=path
        )
        raise InvalidGoldenDatasetError(headline, describe_problems(error)) from error
    found = {normalize_query(row.query): row for row in rows if tag is None or tag in row.tags}
    return [
        GoldenEntry(
            query=row.query,
            relevant_note_ids=(),
            expected_answer="",
            category=UNANSWERABLE,
            difficulty=1,
            tags=row.tags,
            golden_id=uuid5(NAMESPACE_URL, normalized),
        )
        for normalized, row in found.items()
    ]
