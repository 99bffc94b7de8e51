"""Deleted notes stay deleted, whatever is ingested, edited, deleted and restored in any order."""

from dataclasses import replace
from datetime import UTC, datetime

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag_resources.core.types import NoteRecord
from rag_resources.database.pool import Database
from rag_resources.indexing.purge import purge
from rag_resources.ingestion.deletion import delete_notes, restore_notes
from rag_resources.ingestion.ingest import ingest
from rag_resources.store.notes import note_id

# The database is emptied by every example itself.
one_database = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])

NOTES = ("a", "b")
CONTENTS = ("La primera.", "La segunda.", "La tercera.")
RECORD = NoteRecord("", "", "", datetime(2025, 1, 1, tzinfo=UTC))

steps = st.lists(
    st.one_of(
        st.tuples(
            st.just("ingest"),
            st.lists(st.tuples(st.sampled_from(NOTES), st.sampled_from(CONTENTS)), max_size=4),
        ),
        st.tuples(st.sampled_from(["delete", "purge", "restore"]), st.sampled_from(NOTES)),
    ),
    max_size=12,
)


@one_database
@given(steps)
def test_property_60_what_was_deleted_or_purged_is_not_ingested_again(
    database: Database, history: list[tuple[str, str | list[tuple[str, str]]]]
) -> None:
    """The stored notes are those of a model that forgets no deletion until it is undone."""
    with database.transaction() as connection:
        connection.execute("DELETE FROM notes")
        connection.execute("DELETE FROM tombstones")
    stored: dict[str, str] = {}
    buried: dict[str, list[tuple[str, bool]]] = {name: [] for name in NOTES}
    for step, what in history:
        if isinstance(what, list):
            records = [replace(RECORD, external_id=n, content=c) for n, c in what]
            report = ingest(database, records, tenant="ana", source="diario")
            away = [(n, c) for n, c in what if c in dict(buried[n])]
            assert [left_out.external_id for left_out in report.left_out] == [n for n, _ in away]
            stored |= {n: c for n, c in what if (n, c) not in away}
        elif step == "restore":
            if what in stored or not buried[what]:
                continue  # Refused, which other tests look at.
            content, kept = buried[what].pop()
            restore_notes(database, [what], tenant="ana")
            stored |= {what: content} if kept else {}
        elif what in stored:
            _remove(database, what, purged=step == "purge")
            buried[what].append((stored.pop(what), step == "delete"))
        with database.transaction() as connection:
            rows = connection.execute("SELECT external_id, content FROM notes").fetchall()
        assert {row.external_id: row.content for row in rows} == stored


def _remove(database: Database, name: str, *, purged: bool) -> None:
    wanted = note_id("ana", "diario", name)
    if not purged:
        assert delete_notes(database, [wanted], reason="") == [wanted]
        return
    with database.transaction() as connection:
        connection.execute("UPDATE notes SET expires_at = now() WHERE id = %s", (wanted,))
    assert purge(database, grace_hours=0).deleted == 1
