"""Deleted notes stay deleted: their tombstones keep ingestion from bringing them back."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from rag_resources.core.types import NoteRecord
from rag_resources.database.pool import Database
from rag_resources.indexing.purge import purge
from rag_resources.ingestion.ingest import IngestReport, ingest
from rag_resources.store.notes import Upsert

RECORD = NoteRecord(
    "diario/1.md", "Lunes", "Lo del sótano no lo sabe nadie.", datetime(2025, 3, 2, tzinfo=UTC)
)
OTHER = replace(RECORD, external_id="diario/2.md", content="Lo de la azotea.")


def load(
    database: Database, *records: NoteRecord, tenant: str = "ana", source: str = "diario"
) -> IngestReport:
    return ingest(database, records, tenant=tenant, source=source)


def contents(database: Database) -> set[str]:
    with database.transaction() as connection:
        return {row.content for row in connection.execute("SELECT content FROM notes")}


def expire(database: Database, external_id: str) -> None:
    with database.transaction() as connection:
        connection.execute(
            "UPDATE notes SET expires_at = now() - interval '1 hour' WHERE external_id = %s",
            (external_id,),
        )


@pytest.fixture
def purged(database: Database) -> Database:
    """One note expired and was purged, the other stayed; the source still has both."""
    load(database, RECORD, OTHER)
    expire(database, RECORD.external_id)
    assert purge(database, grace_hours=0).deleted == 1
    return database


def test_a_purged_note_does_not_come_back_from_its_source(purged: Database) -> None:
    """It came back without an expiry, and was found first."""
    report = load(purged, RECORD, OTHER)

    assert contents(purged) == {OTHER.content}
    assert report.by_month == {"2025-03": Counter({Upsert.UNCHANGED: 1})}
    (left_out,) = report.left_out
    assert report.left_out_count == 1
    assert left_out.external_id == RECORD.external_id
    assert left_out.reason == f"Caducó y se borró el {datetime.now(UTC):%Y-%m-%d}."


def test_it_is_the_note_of_one_tenant_and_source(purged: Database) -> None:
    assert load(purged, RECORD, tenant="blas").count(Upsert.INSERTED) == 1
    assert load(purged, RECORD, source="agenda").count(Upsert.INSERTED) == 1
    assert load(purged, replace(RECORD, external_id="3")).count(Upsert.INSERTED) == 1


def test_a_purged_note_leaves_none_of_its_text(purged: Database) -> None:
    with purged.transaction() as connection:
        row = connection.execute("SELECT to_jsonb(t)::text AS text FROM tombstones t").fetchone()
    assert row is not None
    assert "sótano" not in row.text
    assert "Lunes" not in row.text
