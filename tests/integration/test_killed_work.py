"""What a kill leaves behind, beside what `test_crash` and `test_ways_round` kill."""

from datetime import UTC, datetime

import pytest

from rag_resources.core.errors import DatabaseError
from rag_resources.core.types import NoteRecord
from rag_resources.database.migrations import migrate
from rag_resources.database.pool import Database
from rag_resources.database.server import EmbeddedServer
from rag_resources.ingestion.ingest import ingest
from tests.crash.disk import ballast, fill, small_disk
from tests.evaluated_corpus import CANDIDATE, Evaluated
from tests.killed import kill_at_insert

DISK_MB = 300
WRITTEN = datetime(2025, 1, 1, tzinfo=UTC)
EVALUATE = """
import sys
from rag_resources.database.pool import Database
from tests.evaluated_corpus import CANDIDATE, Evaluated
with Database(sys.argv[1]) as database:
    Evaluated.found(database).evaluate(CANDIDATE)
"""


def test_a_killed_evaluation_leaves_nothing(database: Database, database_url: str) -> None:
    """Neither figures nor single questions; the next evaluation is a whole one."""
    corpus = Evaluated.filled(database, 8)
    kill_at_insert(database_url, "evaluation_queries", EVALUATE)
    counted = (
        "SELECT (SELECT count(*) FROM evaluation_results) AS evaluations, "
        "(SELECT count(*) FROM evaluation_queries) AS questions"
    )
    assert corpus.fetch(counted) == [(0, 0)]
    corpus.evaluate(CANDIDATE)
    [(evaluations, questions)] = corpus.fetch(counted)
    assert (evaluations, questions > 0) == (1, True)
    assert corpus.evidence().is_current


def test_a_full_disk_loses_no_note_and_doubles_none() -> None:
    """Ingestion ends with an error that names a database problem; with room it goes on."""
    words = " ".join(map(str, range(1_500)))
    records = [NoteRecord(str(n), "", f"Nota {n}: {words}", WRITTEN) for n in range(100)]
    with small_disk(DISK_MB) as disk:
        if not disk.is_small:
            pytest.skip("may not mount")
        home = disk.folder / "home"
        home.mkdir()
        server = EmbeddedServer(home)
        server.up()
        try:
            server.ensure_database("rag")
            migrate(server.dsn("rag"))
            with Database(server.dsn("rag")) as database:
                ingest(database, records[:10], tenant="ana", source="x")
                fill(disk.folder)
                with pytest.raises(DatabaseError):
                    ingest(database, records, tenant="ana", source="x")
            ballast(disk.folder).unlink()
            server.up()
            with Database(server.dsn("rag")) as database:
                ingest(database, records, tenant="ana", source="x")
                with database.transaction() as connection:
                    rows = connection.execute("SELECT external_id, content FROM notes").fetchall()
            wanted = [(record.external_id, record.content) for record in records]
            assert sorted(map(tuple, rows)) == sorted(wanted)
        finally:
            server.down()
