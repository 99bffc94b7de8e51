"""Documents expire as they or their tenant say."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import pytest

from rag_resources.application.tenants import Tenants
from rag_resources.core.errors import InvalidSourceError
from rag_resources.database.pool import Database
from rag_resources.documents.deletion import purge_documents
from rag_resources.documents.uploads import check_upload, register
from rag_resources.files import LocalFiles
from rag_resources.settings import load_settings
from tests.corpus import Corpus
from tests.integration.test_document_pipeline import HOUSING, TRANSPORT, Stand


@pytest.fixture
def tenant() -> str:
    return "ana"


@pytest.fixture
def stand(database: Database, tmp_path: Path) -> Stand:
    folder = tmp_path / "docs"
    folder.mkdir()
    return Stand(database, folder, LocalFiles(tmp_path / "files"), Corpus(database))


def upload(stand: Stand, content: bytes, name: str = "acta.txt", **metadata: str) -> UUID:
    received = check_upload(content, name, tenant="ana", metadata=metadata)
    return register(stand.database, stand.files, received, content)


def test_an_upload_expires_as_its_tenant_says(stand: Stand) -> None:
    """Or as it says itself. It is hidden at once, purged later, and may come again before that."""
    Tenants(stand.database, load_settings()).create("ana", upload_hours=24)
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


def test_what_has_expired_already_is_not_taken() -> None:
    with pytest.raises(InvalidSourceError, match="Ha caducado"):
        check_upload(b"Un texto.", "a.txt", tenant="ana", metadata={"expiresAt": "2020-01-01"})


def test_an_expiry_that_is_no_date_is_refused_when_it_arrives() -> None:
    """Later it would have stopped the other documents of its month."""
    with pytest.raises(InvalidSourceError, match="«mañana» no es una fecha"):
        check_upload(b"Un texto.", "a.txt", tenant="ana", metadata={"expiresAt": "mañana"})


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
