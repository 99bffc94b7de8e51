"""Ingesting records into `notes`: inserts, updates, unchanged notes, rejections and counts."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from rag_resources.core.configuration import ChunkingConfig
from rag_resources.core.errors import InvalidFiltersError, InvalidSourceError
from rag_resources.core.filters import parse_filters
from rag_resources.core.types import NoteRecord, RejectedRecord, TimeWindow
from rag_resources.database.pool import Connection, Database
from rag_resources.indexing.chunk import chunk_window
from rag_resources.ingestion import ingest as module
from rag_resources.ingestion.ingest import BATCH_RECORDS, IngestReport, ingest
from rag_resources.store import notes
from rag_resources.store.notes import FileDatedMonth, Upsert, list_file_dated_months, note_id
from rag_resources.store.search import any_visible

ALWAYS = TimeWindow(datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC))
RECORD = NoteRecord(
    external_id="diario/1.md",
    title="Lunes",
    content="Hoy llovió en Orriols. Fui a ver a Vera.",
    created_at=datetime(2025, 3, 31, 23, 30, tzinfo=UTC),
    tags=("diario", "lluvia"),
    metadata={"lugar": "Orriols", "páginas": [1, 2], "nada": None},
)


def load(
    database: Database,
    *records: NoteRecord | RejectedRecord,
    tenant: str = "ana",
    source: str = "diario",
) -> IngestReport:
    return ingest(database, records, tenant=tenant, source=source)


def rows(database: Database) -> list[Any]:
    """Every note with its row version, and who locked it last."""
    with database.transaction() as connection:
        return connection.execute(
            "SELECT xmin::text, xmax::text, n.* FROM notes n ORDER BY n.id"
        ).fetchall()


def chunked(database: Database) -> Any:
    """The only note, after chunking."""
    chunk_window(database, ALWAYS, ChunkingConfig())
    (row,) = rows(database)
    assert row.chunked_at is not None
    return row


def test_new_record_becomes_a_note_with_everything_the_source_said(database: Database) -> None:
    report = load(database, RECORD)

    (row,) = rows(database)
    assert row.id == note_id("ana", "diario", "diario/1.md")
    assert (row.tenant_id, row.source, row.external_id) == ("ana", "diario", "diario/1.md")
    assert (row.title, row.content, row.created_at) == (
        RECORD.title,
        RECORD.content,
        RECORD.created_at,
    )
    assert (row.tags, row.metadata) == (["diario", "lluvia"], RECORD.metadata)
    assert row.chunked_at is None
    assert row.expires_at is None
    assert report.by_month == {"2025-03": Counter({Upsert.INSERTED: 1})}


def test_identity_is_tenant_source_and_external_id(database: Database) -> None:
    """The same external id of another tenant or source is another note."""
    load(database, RECORD)
    load(database, RECORD, tenant="blas")
    load(database, RECORD, source="reuniones")
    load(database, replace(RECORD, external_id="diario/2.md"))

    assert len({row.id for row in rows(database)}) == 4
    report = load(database, replace(RECORD, content="Otra cosa."), tenant="blas")

    assert report.count(Upsert.UPDATED) == 1
    changed = {(row.tenant_id, row.source, row.external_id) for row in rows(database)}
    assert len(changed) == 4
    assert [row.tenant_id for row in rows(database) if row.content == "Otra cosa."] == ["blas"]


@pytest.mark.parametrize("change", [{"content": "Hoy no llovió."}, {"title": "Martes"}])
def test_changed_text_is_to_be_chunked_again_under_the_same_id(
    database: Database, change: dict[str, str]
) -> None:
    load(database, RECORD)
    before = chunked(database)

    report = load(database, replace(RECORD, **change))  # type: ignore[arg-type]

    (after,) = rows(database)
    assert report.count(Upsert.UPDATED) == 1
    assert after.chunked_at is None
    assert after.updated_at > before.updated_at
    assert (after.id, after.created_at) == (before.id, before.created_at)
    assert (after.title, after.content) == (
        change.get("title", RECORD.title),
        change.get("content", RECORD.content),
    )


def test_changed_tags_cause_chunking(database: Database) -> None:
    """They are among the words of chunks."""
    load(database, RECORD)
    before = chunked(database)

    report = load(database, replace(RECORD, tags=("diario",)))

    (after,) = rows(database)
    assert report.count(Upsert.UPDATED) == 1
    assert after.chunked_at is None
    assert after.updated_at > before.updated_at
    assert after.tags == ["diario"]


def test_a_file_that_is_changed_keeps_its_note_in_its_month(database: Database) -> None:
    """The date of a file counts once, for a note that states none."""
    undated = replace(RECORD, date_source="file_modified")
    load(database, undated)
    touched = replace(undated, created_at=undated.created_at + timedelta(days=90))

    assert load(database, touched).count(Upsert.UNCHANGED) == 1
    report = load(database, replace(touched, content="Cambiada."))

    assert [row.created_at for row in rows(database)] == [RECORD.created_at]
    assert [note.created_at for note in report.undated] == [RECORD.created_at]
    assert list(report.by_month) == [f"{RECORD.created_at:%Y-%m}"]


def test_records_repeated_in_batches_written_at_once_leave_their_last_version(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In whatever order the batches name the notes, and beside batches of other notes."""
    monkeypatch.setattr(module, "BATCH_RECORDS", 3)
    orders = ("abc", "cba", "xyz", "bca", "uvw", "acx")
    records = [
        replace(RECORD, external_id=name, content=f"Versión {version} de {name}.")
        for version, names in enumerate(orders)
        for name in names
    ]

    report = load(database, *records)

    last = {record.external_id: record.content for record in records}
    assert {row.external_id: row.content for row in rows(database)} == last
    assert report.by_month == {
        "2025-03": Counter({Upsert.INSERTED: len(last), Upsert.UPDATED: len(records) - len(last)})
    }


@pytest.mark.parametrize(
    "long",
    [
        {"content": "Llovió. " * 100},
        {"title": "Lunes " * 100},
        {"tags": ("lluvia",) * 100},
        {"metadata": {"lugar": ["Xàtiva"] * 100}},
    ],
    ids=lambda long: next(iter(long)),
)
def test_long_records_are_written_by_several_statements(
    database: Database, monkeypatch: pytest.MonkeyPatch, long: dict[str, Any]
) -> None:
    """A message to PostgreSQL holds 1 GB, and a jsonb 256 MB."""
    monkeypatch.setattr(notes, "STATEMENT_CHARS", 1_000)
    written: list[int] = []
    write = notes._write

    def counted(connection: Connection, records: Sequence[NoteRecord], **owner: str) -> Any:
        written.append(len(records))
        return write(connection, records, **owner)

    monkeypatch.setattr(notes, "_write", counted)
    record = replace(RECORD, **long)
    others = [replace(record, external_id=f"{number}.md") for number in range(3)]

    report = load(database, record, *others, record)

    assert len(rows(database)) == 4
    assert written == [1, 1, 1, 1]
    assert report.by_month == {"2025-03": Counter({Upsert.INSERTED: 4, Upsert.UNCHANGED: 1})}


def test_rejected_records_are_named_counted_and_stop_nothing(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "NAMED_REJECTIONS", 2)
    bad = [RejectedRecord(f"notas.jsonl:{line}", "sin contenido") for line in range(3)]

    report = load(database, bad[0], RECORD, bad[1], bad[2])

    assert report.rejected == bad[:2]
    assert report.rejected_count == 3
    assert report.count(Upsert.INSERTED) == 1
    assert len(rows(database)) == 1


def rejections(database: Database) -> list[tuple[str, str]]:
    with database.transaction() as connection:
        found = connection.execute(
            "SELECT root, location FROM rejected_records ORDER BY root, position"
        )
        return [(row.root, row.location) for row in found]


def test_a_reading_replaces_the_rejections_of_all_that_it_read_again(
    database: Database, tmp_path: Path
) -> None:
    """Under whatever path it was read before: relative, as a whole, or in part."""
    whole, part, other = tmp_path / "notas", tmp_path / "notas" / "obras", tmp_path / "notas2"

    def read(root: Path, *locations: str) -> None:
        bad = [RejectedRecord(location, "sin contenido") for location in locations]
        ingest(database, bad, tenant="ana", source="diario", root=str(root))

    read(whole, "a.md:2", "obras/g.md:2", "obras/h.md", "obras2/g.md")
    read(other, "x.md")
    read(part / "g.md")
    read(part / ".." / "a.md")
    assert rejections(database) == [
        (str(whole), "obras/h.md"),
        (str(whole), "obras2/g.md"),
        (str(other), "x.md"),
    ]
    read(part, "i.md")
    assert rejections(database)[:2] == [(str(whole), "obras2/g.md"), (str(part), "i.md")]
    read(part / ".." / ".." / "notas", "a.md")
    assert rejections(database) == [
        (str(part / ".." / ".." / "notas"), "a.md"),
        (str(other), "x.md"),
    ]
    read(whole)
    assert rejections(database) == [(str(other), "x.md")]


def test_records_of_other_partitions_are_counted_and_left_out(database: Database) -> None:
    march = TimeWindow(datetime(2025, 3, 1, tzinfo=UTC), datetime(2025, 4, 1, tzinfo=UTC))
    april = replace(RECORD, external_id="abril", created_at=datetime(2025, 4, 1, tzinfo=UTC))

    report = ingest(
        database,
        [RECORD, april],
        tenant="ana",
        source="diario",
        keep=lambda moment: march.start <= moment < march.end,
    )

    assert [row.external_id for row in rows(database)] == ["diario/1.md"]
    assert report.elsewhere == 1
    assert report.by_month == {"2025-03": Counter({Upsert.INSERTED: 1})}


def many(count: int) -> Sequence[NoteRecord]:
    return [replace(RECORD, external_id=f"{number:05}") for number in range(count)]


def test_source_that_fails_keeps_what_was_committed_and_a_rerun_finishes(
    database: Database,
) -> None:
    records = many(BATCH_RECORDS + 10)

    def interrupted() -> Iterator[NoteRecord]:
        yield from records[: BATCH_RECORDS + 5]
        raise InvalidSourceError("La carpeta ya no existe.")

    with pytest.raises(InvalidSourceError):
        ingest(database, interrupted(), tenant="ana", source="diario")
    assert len(rows(database)) == BATCH_RECORDS

    report = ingest(database, records, tenant="ana", source="diario")

    assert report.count(Upsert.UNCHANGED) == BATCH_RECORDS
    assert report.count(Upsert.INSERTED) == 10


def test_a_date_that_a_person_corrects_moves_the_note(database: Database) -> None:
    load(database, RECORD)
    corrected = replace(RECORD, created_at=RECORD.created_at + timedelta(days=90))

    assert load(database, corrected).count(Upsert.UPDATED) == 1
    assert load(database, corrected).count(Upsert.UNCHANGED) == 1

    assert [row.created_at for row in rows(database)] == [corrected.created_at]


def test_where_a_date_is_from_is_stored_and_filters(database: Database) -> None:
    load(database, RECORD, replace(RECORD, external_id="b", date_source="git"))
    stated = replace(RECORD, external_id="b", date_source="file_name")
    assert load(database, stated).count(Upsert.UPDATED) == 1

    with database.transaction() as connection:
        found = [
            any_visible(connection, tenant="ana", filters=parse_filters({"date_source": source}))
            for source in ("field", "file_name", "git")
        ]
    assert found == [True, True, False]
    with pytest.raises(InvalidFiltersError):
        parse_filters({"date_source": "luna"})


def test_months_are_named_in_which_most_dates_are_those_of_files(database: Database) -> None:
    undated = replace(RECORD, date_source="file_modified")
    load(database, RECORD, replace(undated, external_id="b"))
    with database.transaction() as connection:
        assert list_file_dated_months(connection, tenant="ana") == []
    load(database, replace(undated, external_id="c"))
    with database.transaction() as connection:
        months = list_file_dated_months(connection, tenant="ana")
    assert months == [FileDatedMonth("2025-03", 3, 2)]
