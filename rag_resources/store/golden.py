"""Rows of `golden_dataset`. Their form and validation are `core.golden`."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID, uuid5

from rag_resources.core.golden import GoldenEntry
from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries

NAMESPACE = UUID("0f0f6a32-4f0e-4f55-8b9b-7d7f5d6b5a21")
"""Namespace of the ids of questions imported without one: the same question, the same id."""


@dataclass(frozen=True, slots=True)
class BrokenEntry:
    """A question some of whose relevant notes are gone."""

    query: str
    missing: tuple[UUID, ...]


def list_golden(connection: Connection) -> list[GoldenEntry]:
    """Read the whole dataset, in a stable order."""
    return [
        GoldenEntry(
            query=row.query,
            relevant_note_ids=tuple(row.relevant_note_ids),
            expected_answer=row.expected_answer,
            category=row.category,
            difficulty=row.difficulty,
            tags=tuple(row.tags),
            golden_id=row.id,
            created_at=row.created_at,
            updated_at=row.updated_at,
        )
        for row in queries().list_golden(connection)
    ]


def write_golden(connection: Connection, entries: Sequence[GoldenEntry], *, replace: bool) -> None:
    """Write a validated dataset; unchanged questions are not touched.

    Args:
        connection: In a transaction: all of it or nothing.
        entries: No two with the same normalised query.
        replace: Whether questions that are not among them are deleted.
    """
    for entry in entries:
        queries().upsert_golden(
            connection,
            golden_id=entry.golden_id or uuid5(NAMESPACE, entry.normalized_query),
            query=entry.query,
            normalized_query=entry.normalized_query,
            relevant_note_ids=list(entry.relevant_note_ids),
            expected_answer=entry.expected_answer,
            category=entry.category,
            difficulty=entry.difficulty,
            tags=list(entry.tags),
            created_at=entry.created_at,
            updated_at=entry.updated_at,
        )
    if replace:
        queries().delete_other_golden(
            connection, normalized_queries=[entry.normalized_query for entry in entries]
        )


def find_broken(connection: Connection) -> list[BrokenEntry]:
    """Return the questions with a relevant note that is gone. Property 31."""
    rows = queries().find_broken_golden(connection)
    return [BrokenEntry(row.query, tuple(row.missing)) for row in rows]
