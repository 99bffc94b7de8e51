"""What a tenant may have: notes, documents and uploads that do not fit wait or are refused."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import pytest

from rag_resources.core.errors import InvalidSourceError, QuotaError
from rag_resources.core.messages import Message
from rag_resources.core.quotas import MEGABYTE, Quota
from rag_resources.core.types import NoteRecord
from rag_resources.database.pool import Database
from rag_resources.documents.deletion import purge_documents
from rag_resources.documents.uploads import check_upload, keep, register
from rag_resources.files import LocalFiles
from rag_resources.ingestion.ingest import IngestReport, ingest
from rag_resources.store import document_files
from rag_resources.store.notes import Upsert
from rag_resources.store.quotas import read_usage, write_quota
from tests.command_line import Outcome, call_rag, isolate
from tests.corpus import START, Corpus
from tests.integration.test_document_pipeline import HOUSING, TRANSPORT, Stand

TEXT = "El ascensor no funciona."


@pytest.fixture
def tenant() -> str:
    return "ana"


@pytest.fixture
def stand(database: Database, tmp_path: Path) -> Stand:
    folder = tmp_path / "docs"
    folder.mkdir()
    return Stand(database, folder, LocalFiles(tmp_path / "files"), Corpus(database))


def limit(database: Database, quota: Quota, tenant: str = "ana") -> None:
    with database.transaction() as connection:
        write_quota(connection, tenant, quota)


def write(database: Database, *texts: str, first: int = 0, tenant: str = "ana") -> IngestReport:
    """Ingest notes, numbered from the first."""
    records = [
        NoteRecord(f"{number}", "", text, START, location=f"{number}.md")
        for number, text in enumerate(texts, first)
    ]
    return ingest(database, records, tenant=tenant, source="notas")


def notes_of(database: Database, tenant: str = "ana") -> int:
    with database.transaction() as connection:
        return read_usage(connection, tenant).notes


def test_records_that_do_not_fit_are_named(database: Database) -> None:
    """The others are written; those that are there may be edited; a deletion makes room."""
    limit(database, Quota(notes=3))
    report = write(database, *[TEXT] * 5)
    assert report.count(Upsert.INSERTED) == 3
    assert report.rejected_count == 2
    problem = Message.QUOTA_NOTES.format(tenant="ana", most=3)
    assert [(each.location, each.reason) for each in report.rejected] == [
        ("3.md", problem),
        ("4.md", problem),
    ]

    assert write(database, f"{TEXT} Ya funciona.").count(Upsert.UPDATED) == 1
    assert write(database, *[TEXT] * 5, tenant="blas").count(Upsert.INSERTED) == 5
    with database.transaction() as connection:
        connection.execute("DELETE FROM notes WHERE external_id = '0'")
    assert write(database, *[TEXT] * 2, first=3).count(Upsert.INSERTED) == 1


def test_the_size_of_texts_is_limited_in_bytes(database: Database) -> None:
    """A longer version of a note counts by what it has more."""
    limit(database, Quota(size_bytes=100))
    assert write(database, "ñ" * 45).written == 1
    assert write(database, "x" * 11, first=1).rejected_count == 1
    assert write(database, "x" * 10, first=1).written == 1
    assert write(database, "ñ" * 46).rejected_count == 1
    assert write(database, "ñ" * 44).written == 1


def test_runs_at_once_do_not_exceed_it_together(database: Database) -> None:
    limit(database, Quota(notes=250))

    def run(number: int) -> int:
        return write(database, *[TEXT] * 200, first=200 * number).written

    with ThreadPoolExecutor(3) as pool:
        written = sum(pool.map(run, range(3)))

    assert written == notes_of(database) == 250


def test_a_document_that_does_not_fit_waits(stand: Stand) -> None:
    """It says why; with more room the next run finishes it, unread again. Others go on."""
    write(stand.database, TEXT)
    limit(stand.database, Quota(notes=2))
    stand.write("a.md", f"# Vivienda\n\n{HOUSING}\n\n# Transporte\n\n{TRANSPORT}\n")
    stand.write("b.md", HOUSING)
    _, extracted, applied = stand.run()

    assert (len(applied.refused), applied.documents) == (1, 1)
    waiting = next(each for each in stand.documents() if not each.notes)
    (failure,) = stand.details(str(waiting.document_id)).failures
    assert failure.reason == Message.QUOTA_NOTES.format(tenant="ana", most=2)

    limit(stand.database, Quota(notes=10))
    assert stand.extract().documents == 0
    assert stand.apply().documents == 1
    assert stand.details(str(waiting.document_id)).failures == []
    assert extracted.documents == 2


def test_a_file_that_does_not_fit_is_named(stand: Stand) -> None:
    """It is read again once there is room."""
    limit(stand.database, Quota(size_bytes=len(HOUSING.encode()) + 10))
    stand.write("a.md", HOUSING)
    stand.write("b.md", TRANSPORT * 10)
    report = stand.arrive()
    (rejected,) = report.rejected
    assert rejected.location == "b.md"
    assert "no puede tener más de 0.0 MB" in rejected.reason
    assert len(stand.copies()) == 1

    limit(stand.database, Quota(size_bytes=MEGABYTE))
    assert stand.arrive().rejected == []
    assert len(stand.copies()) == 2


# --- Uploads ------------------------------------------------------------------------------------


def upload(stand: Stand, content: bytes, name: str = "acta.txt", **metadata: str) -> UUID:
    received = check_upload(content, name, tenant="ana", metadata=metadata)
    keep(stand.files, received, content)
    return register(stand.database, stand.files, received)


def test_an_upload_that_does_not_fit_is_refused_and_not_kept(stand: Stand) -> None:
    limit(stand.database, Quota(size_bytes=10))
    with pytest.raises(QuotaError, match="no puede tener más"):
        upload(stand, HOUSING.encode())
    assert stand.copies() == []
    upload(stand, b"Breve.")
    assert len(stand.copies()) == 1


def test_an_upload_expires_as_its_tenant_says(stand: Stand) -> None:
    """Or as it says itself. It is hidden at once, purged later, and may come again before that."""
    limit(stand.database, Quota(upload_hours=24))
    document = upload(stand, HOUSING.encode())
    own = upload(stand, TRANSPORT.encode(), "otra.txt", expiresAt="2040-01-01")
    stand.extract()
    stand.apply()
    expiries = stand.corpus.fetch(
        "SELECT d.id, d.expires_at, n.expires_at AS of_note FROM documents d JOIN notes n "
        "ON n.document_id = d.id ORDER BY d.expires_at"
    )
    (first, expires_at, of_note), (second, late, of_late) = map(tuple, expiries)
    assert (first, second) == (document, own)
    assert abs(expires_at - datetime.now(UTC) - timedelta(hours=24)) < timedelta(minutes=5)
    assert expires_at == of_note
    assert late == of_late == datetime(2040, 1, 1, tzinfo=UTC)

    expire(stand, document)
    assert [each.document_id for each in stand.documents()] == [own]
    again = upload(stand, HOUSING.encode())
    assert again != document
    stand.extract()
    stand.apply()
    assert {each.document_id for each in stand.documents()} == {own, again}
    assert len(stand.notes()) == 2

    expire(stand, again)
    assert purge_documents(stand.database, stand.files, grace_hours=24) == 0
    assert purge_documents(stand.database, stand.files, grace_hours=0) == 1
    assert [each.document_id for each in stand.documents()] == [own]
    assert len(stand.notes()) == len(stand.copies()) == 1
    assert upload(stand, HOUSING.encode()) not in (document, again)


def expire(stand: Stand, document: UUID) -> None:
    """Let the time of a document have come an hour ago."""
    past = "now() - interval '1 hour'"
    for table, column in (("documents", "id"), ("notes", "document_id")):
        stand.corpus.fetch(
            f"UPDATE {table} SET expires_at = {past} WHERE {column} = %s RETURNING id", document
        )


def test_what_has_expired_already_is_not_taken(stand: Stand) -> None:
    """From a folder it is left out by name, each time, instead of being read and purged again.

    One that was read before is hidden at once, with its notes.
    """
    with pytest.raises(InvalidSourceError, match="Ha caducado"):
        check_upload(b"Un texto.", "a.txt", tenant="ana", metadata={"expiresAt": "2020-01-01"})

    stand.write("plan.md", HOUSING)
    stand.write("plan.md.yaml", "expiresAt: 2040-01-01\n")
    stand.run()
    assert len(stand.notes()) == 1
    stand.write("plan.md.yaml", "expiresAt: 2020-01-01\n")
    for _ in range(2):
        (left_out,) = stand.arrive().left_out
        assert (left_out.location, left_out.reason) == ("plan.md", Message.DOCUMENT_EXPIRED)
    assert stand.documents() == []
    still = "SELECT count(*) FROM notes WHERE expires_at IS NULL OR expires_at > now()"
    assert stand.corpus.fetch(still) == [(0,)]
    assert purge_documents(stand.database, stand.files, grace_hours=0) == 1
    assert stand.arrive().left_out
    assert (stand.documents(), stand.notes(), stand.copies()) == ([], [], [])

    stand.write("plan.md.yaml", "expiresAt: 2041-01-01\n")
    stand.run()
    assert len(stand.notes()) == 1, "nothing is remembered of what was purged"


def test_a_copy_that_another_document_has_now_is_kept(stand: Stand) -> None:
    """A document had that file once, and is purged."""
    stand.write("a.txt", HOUSING)
    stand.run()
    (first,) = stand.documents()
    stand.write("a.txt", TRANSPORT)
    stand.run()
    stand.write("b.txt", HOUSING)
    stand.run()
    expire(stand, first.document_id)
    assert purge_documents(stand.database, stand.files, grace_hours=0) == 1

    (left,) = stand.documents()
    assert left.title == "b"
    assert [path.read_text("utf-8") for path in stand.copies()] == [HOUSING]


def test_what_lives_longer_by_now_is_not_purged(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its time was changed after the list was made."""
    document = upload(stand, HOUSING.encode())
    listed = [(document, "ana")]
    monkeypatch.setattr(document_files, "list_expired_documents", lambda *_, **__: listed)
    assert purge_documents(stand.database, stand.files, grace_hours=0) == 0
    assert len(stand.documents()) == len(stand.copies()) == 1


def test_an_expiry_that_is_no_date_is_refused_when_it_arrives() -> None:
    """Later it would have stopped the other documents of its month."""
    with pytest.raises(InvalidSourceError, match="«mañana» no es una fecha de caducidad"):
        check_upload(b"Un texto.", "a.txt", tenant="ana", metadata={"expiresAt": "mañana"})


# --- The command --------------------------------------------------------------------------------


@pytest.fixture
def rag(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    database_url: str,
) -> Callable[..., Outcome]:
    isolate(monkeypatch, tmp_path, DATABASE_URL=database_url, GOLDEN_SOURCE="", TENANT="ana")
    return lambda *arguments: call_rag(monkeypatch, capsys, *arguments)


def test_limits_are_shown_and_changed_one_by_one(
    rag: Callable[..., Outcome], database: Database
) -> None:
    write(database, TEXT)
    assert "sin límite" in rag("tenant", "quota", "ana").out

    options = ("--notes", "100", "--megabytes", "2", "--questions", "30", "--upload-hours", "24")
    changed = rag("tenant", "quota", "ana", *options, "--json")
    assert json.loads(changed.out) == {
        "tenant": "ana",
        "quota": {
            "notes": 100,
            "sizeBytes": 2 * MEGABYTE,
            "questionsAMinute": 30,
            "uploadHours": 24,
        },
        "usage": {"notes": 1, "sizeBytes": len(TEXT)},
    }
    less = rag("tenant", "quota", "ana", "--notes", "5", "--without", "questions", "--json").json
    assert less["quota"]["notes"] == 5
    assert less["quota"]["questionsAMinute"] is None
    assert less["quota"]["uploadHours"] == 24
    shown = rag("tenant", "quota", "ana")
    assert "2.0 MB" in shown.out
    assert "24 h" in shown.out
    assert rag("tenant", "list", "--json").json["tenants"][0]["name"] == "ana"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("nadie",), "No hay ningún cliente con el nombre «nadie»"),
        (("ana", "--notes", "-1"), "-1"),
        (("ana", "--without", "todo"), "todo"),
        (("ana", "--notes", "5", "--without", "notes"), Message.TENANT_QUOTA_TWICE),
    ],
)
def test_limits_that_cannot_be_are_refused(
    rag: Callable[..., Outcome], database: Database, arguments: tuple[str, ...], problem: str
) -> None:
    write(database, TEXT)
    refused = rag("tenant", "quota", *arguments)
    assert refused.code == 2
    assert problem in refused.err
