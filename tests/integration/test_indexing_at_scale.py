"""The optimisations of a large backfill do not change its result."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import psycopg
import pytest
from structlog.testing import capture_logs

from rag_resources.core.configuration import ChunkingConfig
from rag_resources.core.retrievers import VectorKind
from rag_resources.core.types import NoteRecord, TimeWindow
from rag_resources.database.pool import Connection, Database
from rag_resources.indexing.chunk import chunk_window
from rag_resources.indexing.embed import embed_chunks
from rag_resources.store import vector_indexes
from rag_resources.store.models import register_model
from rag_resources.store.notes import upsert_notes
from rag_resources.store.vector_indexes import (
    LIVE_INSERT_COST,
    _build_memory,
    ensure_vector_indexes,
)
from tests.embedders import HashEmbedder

NOON = datetime(2025, 1, 1, 12, tzinfo=UTC)
ALWAYS = TimeWindow(NOON - timedelta(days=1), NOON + timedelta(days=1))
MORNING, AFTERNOON = TimeWindow(ALWAYS.start, NOON), TimeWindow(NOON, ALWAYS.end)
MODEL = HashEmbedder()
INDEXES = [
    "vectors_openai_hash_chunk_hnsw",
    "vectors_openai_hash_contextual_hnsw",
]


def add_notes(database: Database, count: int, created_at: datetime) -> None:
    """Notes of one chunk each, all of one moment."""
    records = [NoteRecord(f"{uuid4()}", "", f"Nota {n}.", created_at) for n in range(count)]
    with database.transaction() as connection:
        upsert_notes(connection, records, tenant="ana", source="s")


def index(database: Database, window: TimeWindow) -> None:
    with database.transaction() as connection:
        register_model(
            connection, MODEL.info, {VectorKind.CHUNK, VectorKind.CONTEXTUAL, VectorKind.NOTE}
        )
    chunk_window(database, window, ChunkingConfig())
    embed_chunks(database, MODEL, window)


@pytest.fixture
def half_done(database: Database) -> Database:
    """One more of twelve notes is left than the index build tolerates."""
    left = 12 // LIVE_INSERT_COST + 1
    add_notes(database, 12 - left, NOON)
    add_notes(database, left, NOON - timedelta(hours=1))
    index(database, AFTERNOON)
    return database


def finish(database: Database) -> None:
    index(database, MORNING)


def serve(database: Database) -> None:
    with database.transaction() as connection:
        connection.execute(
            "INSERT INTO promotions (configuration, config, config_hash, model, reason) "
            "VALUES ('c', '{}', 'h', %s, 'a test')",
            (MODEL.info.name,),
        )


def nothing_more(_: Database) -> None:
    """Leave it as it is."""


@pytest.mark.parametrize(
    ("change", "exact_rows", "built"),
    [
        (nothing_more, 100, False),
        (finish, 100, True),
        (serve, 100, True),
        (nothing_more, 1, True),
    ],
    ids=["waits", "is done", "serves", "too large to be searched exactly"],
)
def test_indexes_wait_for_the_end_of_a_backfill_unless_they_are_needed(
    half_done: Database,
    change: Callable[[Database], None],
    exact_rows: int,
    built: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(vector_indexes, "EXACT_ROWS", exact_rows)
    change(half_done)
    names = ensure_vector_indexes(half_done, MODEL.info, min_rows=1)

    assert names == (INDEXES if built else [])


@pytest.mark.parametrize(
    ("rows", "dimension", "needed_mb"), [(10, 512, 16), (100_000, 384, 156), (1_000_000, 384, 1560)]
)
def test_an_index_build_takes_what_its_graph_needs_and_the_server_allows(
    database: Database, rows: int, dimension: int, needed_mb: int
) -> None:
    with database.autocommit() as connection:

        def current_mb() -> int:
            row = connection.execute(
                "SELECT setting::int / 1024 AS mb FROM pg_settings WHERE name = %s",
                ("maintenance_work_mem",),
            ).fetchone()
            return int(row.mb)

        allowed_mb = current_mb()
        with (
            capture_logs() as logs,
            _build_memory(connection, rows, dimension),
        ):
            assert current_mb() == min(needed_mb, allowed_mb)
        assert current_mb() == allowed_mb
    assert [log["needed_mb"] for log in logs] == ([needed_mb] if needed_mb > allowed_mb else [])


# How often a text has each of its words; where they stand does not matter.
OFTEN = (
    "SELECT array_agg((l.lexeme, cardinality(l.positions)) ORDER BY l.lexeme) FROM unnest({}) AS l"
)


def have_their_words(connection: Connection) -> set[tuple[bool, bool]]:
    """Whether chunks have the words of their texts, and have them counted."""
    rows = connection.execute(
        f"SELECT ({OFTEN.format('c.tsv')}) = ({OFTEN.format('t.words')}) AS same, "
        "c.lexeme_occurrences = count_occurrences(t.words) AS counted FROM chunks AS c "
        "CROSS JOIN LATERAL spanish_tsvector(c.topics || ' ' || c.content) AS t (words)"
    ).fetchall()
    return {tuple(row) for row in rows}


def test_words_of_a_chunk_follow_its_text(database: Database) -> None:
    """Whoever writes it, and whatever they write into the columns of the words."""
    add_notes(database, 3, NOON)
    chunk_window(database, ALWAYS, ChunkingConfig())
    with database.transaction() as connection:
        connection.execute("UPDATE chunks SET topics = 'La reunión de marzo'")
        connection.execute("UPDATE chunks SET tsv = '', lexeme_occurrences = 7")

        assert have_their_words(connection) == {(True, True)}


@pytest.mark.parametrize(
    "title", ["", "Acta de marzo", "Sesión", "v1.2: notas", "a@b.es", "<b", "x" * 1_100]
)
@pytest.mark.parametrize(
    "end", ["", "\n\nOtro párrafo, con <b>marcas</b> & más.", " Y algo más." * 300]
)
def test_words_of_a_note_that_is_one_chunk_are_those_of_its_text(
    database: Database, title: str, end: str
) -> None:
    """As often, too; they are copied from the note where the parser sees the same."""
    content = (
        f"La reunion fue una decisión: ir a www.ejemplo.es/a a las 9.30 (socio-económico).{end}"
    )
    with database.transaction() as connection:
        connection.execute(
            "INSERT INTO notes (title, content, created_at) VALUES (%s, %s, %s)",
            (title, content, NOON),
        )
    chunk_window(database, ALWAYS, ChunkingConfig())
    with database.transaction() as connection:
        assert have_their_words(connection) == {(True, True)}


def test_note_edited_from_another_schema_is_chunked_again(
    database: Database, database_url: str
) -> None:
    """By an application that may change nothing but the content, and knows no schema."""
    add_notes(database, 1, NOON)
    chunk_window(database, ALWAYS, ChunkingConfig())
    role = f"writer_{uuid4().hex}"
    with psycopg.connect(database_url) as owner:
        owner.execute(f"CREATE ROLE {role}")
        owner.execute(f"GRANT SELECT, UPDATE (content) ON notes TO {role}")
        owner.execute(f"SET LOCAL ROLE {role}")
        owner.execute("SET LOCAL rag.tenant = 'ana'")
        owner.execute("SET LOCAL search_path = pg_catalog")
        owner.execute("UPDATE public.notes SET content = 'Otra cosa.'")
        owner.execute("RESET ROLE")
        owner.execute(f"REVOKE ALL ON public.notes FROM {role}")
        owner.execute(f"DROP ROLE {role}")
        assert owner.execute("SELECT chunked_at FROM public.notes").fetchall() == [(None,)]
    assert chunk_window(database, ALWAYS, ChunkingConfig()).notes == 1
