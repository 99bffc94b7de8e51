"""Golden datasets in JSON files and SQuAD sets: import, export. Their form is `core.golden`."""

import json
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from rag_resources.core.errors import InvalidGoldenDatasetError, InvalidSourceError
from rag_resources.core.golden import GoldenEntry, parse_golden
from rag_resources.core.messages import Message
from rag_resources.core.text import is_blank
from rag_resources.database.pool import Database
from rag_resources.ingestion.squad import SquadDataset
from rag_resources.store.golden import list_golden, write_golden
from rag_resources.store.notes import find_note, note_id

SQUAD_DIFFICULTY = 3
"""SQuAD says nothing of difficulty: every question gets the middle one."""


def read_golden(database: Database, path: Path, *, tenant: str) -> list[GoldenEntry]:
    """Read and validate a file against the notes there are, without writing anything.

    Raises:
        InvalidSourceError: The file cannot be read.
        InvalidGoldenDatasetError: With every bad entry named.

    Properties: 30, 31, 32, 33.
    """
    raw = _load(path)
    with database.transaction() as connection:
        return parse_golden(
            raw,
            origin=str(path),
            resolve_note=lambda name: find_note(connection, name, tenant=tenant),
        )


def import_golden(
    database: Database, path: Path, *, tenant: str, replace: bool = True
) -> list[GoldenEntry]:
    """Import a file, all of it or nothing. Same errors as `read_golden`.

    Args:
        database: Open.
        path: A JSON file.
        tenant: Whose notes the questions speak of.
        replace: Whether questions that are not in the file are deleted.
    """
    entries = read_golden(database, path, tenant=tenant)
    with database.transaction() as connection:
        write_golden(connection, entries, replace=replace)
    return entries


def export_golden(database: Database, path: Path) -> int:
    """Write the dataset to a file, whole or not at all. Returns how many questions it has."""
    with database.transaction() as connection:
        entries = list_golden(connection)
    text = json.dumps(
        {"entries": [entry.to_json() for entry in entries]}, ensure_ascii=False, indent=1
    )
    try:
        with NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, delete=False) as file:
            file.write(text + "\n")
        Path(file.name).replace(path)
    except OSError as error:
        raise InvalidSourceError(Message.FILE_NOT_WRITABLE.format(path=path)) from error
    return len(entries)


def squad_entries(dataset: SquadDataset, *, tenant: str, source: str) -> list[GoldenEntry]:
    """Turn the questions of a SQuAD set into golden entries; all of them are factual."""
    return [
        GoldenEntry(
            query=question.query,
            relevant_note_ids=tuple(
                note_id(tenant, source, external_id) for external_id in question.note_external_ids
            ),
            expected_answer=question.answer,
            category="factual",
            difficulty=SQUAD_DIFFICULTY,
            tags=("squad",),
        )
        for question in dataset.questions
        if not is_blank(question.query) and not is_blank(question.answer)
    ]


def _load(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidSourceError(Message.FILE_NOT_READABLE.format(path=path)) from error
    except (json.JSONDecodeError, RecursionError) as error:
        raise InvalidGoldenDatasetError(
            Message.GOLDEN_INVALID.format(origin=path),
            [Message.GOLDEN_JSON.format(reason=" ".join(str(error).split()))],
        ) from error
