"""The cost of every named query over a large index: EXPLAIN (ANALYZE, BUFFERS) of each.

    python -m tests.benchmarks.bench_queries [--chunks 100000] [--home FOLDER] [--markdown FILE]

The parameters are those of one month, one batch or one question. Each query runs twice in a
transaction that is rolled back, and the second time counts. Queries that PostgreSQL does not
explain, or that write a row of figures made elsewhere, are named and left out. A folder given as
home keeps the index for the next run.
"""

import argparse
import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
from psycopg import sql
from psycopg.types.json import Jsonb

from rag_resources.core.retrievers import RankedList
from rag_resources.database.migrations import migrate
from rag_resources.database.pool import Connection, Database
from rag_resources.database.queries import queries
from rag_resources.store.ranked_lists import EmbeddedQuery, ListRequest
from rag_resources.store.search import SearchScope, compose_search
from tests.benchmarks.corpus import MODEL, Corpus, StoredEmbedder
from tests.benchmarks.homes import running_server
from tests.benchmarks.quality_tables import Table, markdown, show

LARGE = ("notes", "note_words", "chunks", "chunk_embeddings_bench", "lexeme_statistics")
BATCH = 25
POOL = 50
COLUMNS = ["query", "ms", "buffers", "rows", "large tables read whole"]


@dataclass(frozen=True)
class Explained:
    """What a query did.

    Attributes:
        buffers: Pages of 8 kB looked at, each time counted.
        scanned: The large tables that it read from end to end.
    """

    name: str
    milliseconds: float
    buffers: int
    rows: float
    scanned: tuple[str, ...]

    def row(self) -> list[str]:
        """Return the row of the table."""
        return [
            f"`{self.name}`",
            f"{self.milliseconds:.1f}",
            f"{self.buffers:,}",
            f"{self.rows:,.0f}",
            ", ".join(self.scanned),
        ]


def sample_parameters(connection: Connection) -> dict[str, Any]:
    """Return values for the parameters of the queries, of one month in the middle of the index."""
    month = datetime(2025, 1, 1, tzinfo=UTC)
    notes = connection.execute(
        "SELECT * FROM notes WHERE created_at >= %s ORDER BY created_at LIMIT %s", (month, BATCH)
    ).fetchall()
    note_ids = [note.id for note in notes]
    chunks = connection.execute(
        "SELECT * FROM chunks WHERE note_id = ANY(%s) ORDER BY note_id, chunk_index", (note_ids,)
    ).fetchall()
    return {
        "month_start": month,
        "month_end": month + timedelta(days=31),
        "first": month - timedelta(days=3650),
        "after_last": month + timedelta(days=3650),
        "started_at": month,
        "note_ids": note_ids,
        "chunk_ids": [chunk.id for chunk in chunks],
        "ids": [chunk.id for chunk in chunks],
        "parents": [chunk.note_id for chunk in chunks],
        "indexes": [chunk.chunk_index for chunk in chunks],
        "contents": [chunk.content for chunk in chunks],
        "contexts": [chunk.context for chunk in chunks],
        "topics": [chunk.topics for chunk in chunks],
        "starts": [chunk.start_char for chunk in chunks],
        "ends": [chunk.end_char for chunk in chunks],
        "hashes": [chunk.content_sha256 for chunk in chunks],
        "external_ids": [f"nueva {number}" for number in range(BATCH)],
        "given": Jsonb(
            [
                (note.external_id, note.title, note.content_sha256.hex(), note.tags, note.metadata)
                for note in notes
            ]
        ),
        "titles": ["Nota"] * BATCH,
        "tags": [Jsonb(["a"])] * BATCH,
        "metadata": [Jsonb({})] * BATCH,
        "created_at": [month] * BATCH,
        "after": note_ids[0],
        "id": note_ids[0],
        "note_id": note_ids[0],
        "evaluation_id": note_ids[0],
        "evaluation_ids": note_ids,
        "tenant": "default",
        "source": notes[0].source,
        "name": MODEL.name,
        "id_prefix": "a",
        "model": MODEL.name,
        "models": [MODEL.name],
        "note_model": MODEL.name,
        "dimension": MODEL.dimension,
        "chunking_hash": "bench",
        "skipped": [],
        "batch_size": BATCH,
        "row_limit": 20,
        "examples": 3,
        "max_chars": 200,
        "grace_hours": 24,
        "keep_days": 90,
        "counted": 1001,
        "configuration": "hybrid",
        "configurations": ["hybrid"],
        "stage": "chunk",
        "table_name": f"chunk_embeddings_{MODEL.name}",
        "index_name": f"chunk_embeddings_{MODEL.name}_embedding_hnsw",
        "row_count": 1,
    }


def named_statements() -> Iterator[tuple[str, str]]:
    """Yield every named query that stands alone, with its text."""
    for name in queries().available_queries:
        text = getattr(queries(), name).sql
        if not name.endswith("_cursor") and not re.search(r"\{\w+\}", text):
            yield name, text


def searches() -> Iterator[tuple[str, sql.Composable, Mapping[str, Any]]]:
    """Yield the searches of one question, composed at run time, by their lists."""
    corpus = Corpus()
    (question,) = corpus.questions(1, stream=1)
    (vector,) = StoredEmbedder(corpus).embed_queries([question])
    by_vector = {"embedded": EmbeddedQuery(MODEL, vector, 0.0)}
    requests = {
        "search_vectors": [
            ListRequest(RankedList.SEMANTIC, **by_vector),
            ListRequest(RankedList.CONTEXTUAL, **by_vector),
        ],
        "search_chunk_words": [ListRequest(RankedList.FULLTEXT, text=question)],
        "search_note_words": [ListRequest(RankedList.NOTES_FULLTEXT, text=question)],
    }
    scope = SearchScope("default", chunk_model=MODEL.name, any_unchunked=False, any_hidden=False)
    for name, lists in requests.items():
        yield name, *compose_search(lists, scope, pool=POOL)


def explain(
    connection: Connection, name: str, text: sql.Composable, parameters: Mapping[str, Any]
) -> Explained:
    """Execute a statement twice, and undo it.

    Raises:
        psycopg.Error: It cannot be explained, or lacks a parameter.
    """
    for _ in range(2):
        with connection.transaction(force_rollback=True):
            (found,) = connection.execute(
                sql.SQL("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ") + text, parameters
            ).fetchone()
    plan = found[0]["Plan"]
    scanned = {
        node["Relation Name"]
        for node in nodes(plan)
        if node["Node Type"] == "Seq Scan" and node["Actual Loops"] > 0
    }
    return Explained(
        name,
        found[0]["Execution Time"],
        plan["Shared Hit Blocks"] + plan["Shared Read Blocks"],
        plan["Actual Rows"],
        tuple(table for table in LARGE if table in scanned),
    )


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield every node of a plan."""
    yield plan
    for child in plan.get("Plans", []):
        yield from nodes(child)


def explain_all(connection: Connection) -> tuple[list[Explained], list[str]]:
    """Explain every query that can be explained, most expensive first, and name the others."""
    parameters = sample_parameters(connection)
    # Of new notes, where the others are of chunks.
    contents = parameters["contents"][:BATCH]
    own = {"upsert_notes": {"ids": [uuid4() for _ in contents], "contents": contents}}
    explained, left_out = [], []
    statements = [
        (name, sql.SQL(text.rstrip(";\n ")), parameters | own.get(name, {}))
        for name, text in named_statements()
    ]
    for name, text, values in [*statements, *searches()]:
        try:
            explained.append(explain(connection, name, text, values))
        except (psycopg.Error, KeyError):
            left_out.append(name)
    return sorted(explained, key=lambda item: -item.milliseconds), sorted(left_out)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--home", type=Path, help="keeps the index for the next run")
    parser.add_argument("--markdown", type=Path, help="file to write the table to")
    asked = parser.parse_args()
    with ExitStack() as stack:
        server = stack.enter_context(running_server(asked.home))
        server.ensure_database("bench")
        migrate(server.dsn("bench"))
        with Database(server.dsn("bench")) as database:
            Corpus().load(database, asked.chunks)
            with database.transaction() as connection:
                explained, left_out = explain_all(connection)
                connection.rollback()
    tables = [
        Table(
            f"Named queries over {asked.chunks:,} chunks",
            COLUMNS,
            [item.row() for item in explained],
            f"Left out: {', '.join(left_out)}.",
        )
    ]
    show(tables)
    if asked.markdown:
        asked.markdown.write_text(markdown(tables), "utf-8")


if __name__ == "__main__":
    main()
