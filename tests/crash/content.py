"""The result of indexing in a database, to be compared with the expected one."""

import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

from rag_resources.database.pool import Database

Content = Mapping[str, list[Any]]

_POLL_S = 0.01
_PATIENCE_S = 60.0

CONTENT = {
    "notes": "SELECT id, created_at, content_sha256, chunked_at IS NULL, chunking_hash FROM notes",
    "chunks": "SELECT id, note_id, content, context, topics, chunk_index, start_char, end_char "
    "FROM chunks",
    "vectors": "SELECT model, kind, chunk_id, note_id, position, start_char, end_char, "
    "embedding::text, text_sha256 FROM vectors",
    "queue": "SELECT model, note_id FROM pending_vectors",
    "failures": "SELECT stage, note_id, chunk_id, model, error::text FROM indexing_failures",
    "statistics": "SELECT lexeme, document_count, chunk_count, average_lexeme_occurrences "
    "FROM lexeme_statistics, corpus_statistics",
    "indexes": "SELECT c.relname, i.indisvalid, i.indisready, i.indislive FROM pg_index i "
    "JOIN pg_class c ON c.oid = i.indexrelid "
    "WHERE c.relnamespace = current_schema()::regnamespace",
    "orphans": """
        SELECT e.model, e.chunk_id AS id FROM vectors e
        LEFT JOIN chunks c ON c.id = e.chunk_id WHERE e.kind <> 'note' AND c.id IS NULL
        UNION ALL
        SELECT '', c.id FROM chunks c LEFT JOIN notes n ON n.id = c.note_id WHERE n.id IS NULL
        UNION ALL
        SELECT e.model, e.note_id FROM vectors e
        LEFT JOIN notes n ON n.id = e.note_id WHERE e.kind = 'note' AND n.id IS NULL""",
}
_SESSIONS = """
    SELECT pid FROM pg_stat_activity WHERE datname = current_database()
        AND pid <> pg_backend_pid() AND backend_type = 'client backend'"""
_TEMPORARY = "SELECT relname FROM pg_class WHERE relpersistence = 't'"


def content(database: Database, queries: Mapping[str, str] = CONTENT) -> Content:
    """All that these queries find; by default what indexing makes, without times."""
    with database.snapshot() as connection:
        return {name: connection.execute(query).fetchall() for name, query in queries.items()}


def differences(found: Content, wanted: Content) -> list[str]:
    """Name what an index has too much and what it lacks."""
    problems = []
    for name in wanted:
        have, want = Counter(found[name]), Counter(wanted[name])
        if have != want:
            surplus, missing = have - want, want - have
            problems.append(
                f"{name}: {surplus.total()} rows too many, {missing.total()} missing, "
                f"one of them {next(iter(surplus or missing))}"
            )
    return problems


def temporary_tables(database: Database) -> list[str]:
    """Return what dead sessions left behind, once the server has noticed that they are gone."""
    deadline = time.monotonic() + _PATIENCE_S
    while _fetch(database, _SESSIONS) and time.monotonic() < deadline:
        time.sleep(_POLL_S)
    return [row.relname for row in _fetch(database, _TEMPORARY)]


def _fetch(database: Database, query: str) -> list[Any]:
    with database.transaction() as connection:
        return connection.execute(query).fetchall()
