"""Databases of earlier versions, with data, come up to date in place and lose nothing.

The dumps are of five notes, three questions and their evaluations, made by those versions with
`pg_dump --inserts`.
"""

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from rag_resources.core.errors import SchemaMismatchError
from rag_resources.database.migrations import connect, migrate
from rag_resources.database.schema import check_schema, read_schema
from tests.earlier_schema import migrate_without
from tests.integration.test_migrations import catalogue

DATA = Path(__file__).parents[1] / "data"
DUMPS = sorted(DATA.glob("schema_*.sql.gz"))
LATE = ("0040_tenant_keys", "0041_tenant_versions", "0042_row_security", "0043_leaving")
SINCE = (
    "0057_quotas",
    "0058_tenant_vectors",
    "0060_word_changes",
    "0061_tenant_views",
    "0062_tags",
    "0064_graph_indexes",
    "0065_link_proposals",
    "0066_faster_words",
)
KEPT = {
    "notes": "SELECT id, external_id, title, content, tags, metadata, created_at FROM notes",
    "chunks": "SELECT id, note_id, chunk_index, start_char, end_char, content FROM chunks",
    "vectors": "SELECT chunk_id, model, embedding::text FROM chunk_embeddings",
    "note vectors": "SELECT note_id, model, embedding::text FROM note_embeddings",
    "questions": "SELECT id, query, relevant_note_ids, expected_answer FROM golden_dataset",
    "evaluations": "SELECT id, configuration, config_hash, hit_rate_at_10 FROM evaluation_results",
    "answers": "SELECT evaluation_id, golden_id, retrieved_note_ids FROM evaluation_queries",
    "promotions": "SELECT id, configuration, config_hash FROM promotions",
    "history": "SELECT count(*) FROM golden_history",
}


def rows(url: str) -> dict[str, list[tuple[Any, ...]]]:
    with psycopg.connect(url) as connection:
        return {name: sorted(connection.execute(query), key=str) for name, query in KEPT.items()}


def restored(url: str, dump: Path) -> str:
    """Fill an empty database from a dump."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(gzip.decompress(dump.read_bytes()))  # type: ignore[call-overload]
    return url


@pytest.mark.parametrize("dump", DUMPS, ids=lambda path: path.name.partition(".")[0])
def test_an_earlier_database_keeps_everything(
    create_database: Callable[..., str], dump: Path
) -> None:
    url = restored(create_database(), dump)
    before = rows(url)
    assert len(before["notes"]) == 5
    assert len(before["questions"]) == 3
    assert before["vectors"]
    assert before["evaluations"]
    with connect(url) as connection, pytest.raises(SchemaMismatchError, match="rag up"):
        check_schema(connection)
    assert migrate(url)
    assert rows(url) == before
    with connect(url) as connection:
        assert read_schema(connection).problem is None
    assert migrate(url) == []


def test_tenants_come_to_a_database_that_has_later_migrations(
    create_database: Callable[..., str],
) -> None:
    """The schema and the rows are the same as if they had come first."""
    in_order, late = (restored(create_database(), DUMPS[-1]) for _ in range(2))
    migrate(in_order)
    migrate_without(late, *LATE, *SINCE)
    before = rows(late)
    assert migrate(late) == [*LATE, *SINCE]
    assert catalogue(late) == catalogue(in_order)
    assert rows(late) == before == rows(in_order)
