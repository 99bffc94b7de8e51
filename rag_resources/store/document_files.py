"""Rows of `documents` and `document_addresses` as files arrive: which file is which document.

Pages and sections are in `store.documents`, readings in `store.extractions`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple
from uuid import UUID

from psycopg.types.json import Jsonb

from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries
from rag_resources.store.documents import DOWNLOADING, delete_document, write_failure


class Arrival(StrEnum):
    """The result of finding a file in a source."""

    NEW = "new"
    """A document that was not known."""

    CHANGED = "changed"
    """The document at this address has another file than before."""

    KNOWN = "known"
    """Another address of a document that is there already."""

    UNCHANGED = "unchanged"


class StoredAddress(NamedTuple):
    """The file last found at an address of a source.

    Attributes:
        etag: The source's ETag of that file.
        title: The document's title; `metadata` is the document's too.
    """

    address: str
    document_id: UUID
    etag: str | None
    file_sha256: bytes | None
    missing_since: datetime | None
    title: str
    metadata: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ArrivedFile:
    """A file whose copy is kept; or one that is still to be downloaded, without hash and copy.

    Attributes:
        media_type: Empty if no reader knows the file.
        file_url: Path of our copy, relative to the folder of files.
        problem: Why it cannot be read; empty if it can.
    """

    address: str
    title: str
    media_type: str
    metadata: Mapping[str, Any]
    file_sha256: bytes | None
    file_url: str | None
    file_bytes: int | None
    etag: str | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Registered:
    """The result of registering a file.

    Attributes:
        earlier_files: SHA-256 of the document's earlier files that nothing needs any more.
    """

    document_id: UUID
    arrival: Arrival
    earlier_files: Sequence[bytes] = ()


@dataclass(frozen=True, slots=True)
class Uploaded:
    """The document that an upload was registered as, and the hash of what was sent."""

    document_id: UUID
    body: str


@dataclass(frozen=True, slots=True)
class DeletedDocument:
    """A document that a person deleted, and why."""

    address: str
    reason: str
    deleted_at: Any


def list_addresses(
    connection: Connection, *, tenant: str, source: str, address: str | None = None
) -> dict[str, StoredAddress]:
    """Return the file last found at each address of a source, or at a single one."""
    rows = queries().list_addresses(connection, tenant=tenant, source=source, address=address)
    return {row.address: StoredAddress(*row) for row in rows}


def find_upload(
    connection: Connection, upload_id: UUID, *, tenant: str, source: str
) -> Uploaded | None:
    """Return the document of an upload; None if it is not registered."""
    row = queries().find_upload(connection, tenant=tenant, source=source, upload_id=str(upload_id))
    return Uploaded(row.document_id, row.etag) if row else None


def list_expired_documents(
    connection: Connection, *, grace_hours: int, document_id: UUID | None = None
) -> list[tuple[UUID, str]]:
    """Return the documents that expired some hours ago or earlier, and their tenants; or one."""
    rows = queries().list_expired_documents(
        connection, grace_hours=grace_hours, document_id=document_id
    )
    return [(row.id, row.tenant_id) for row in rows]


def find_deleted(
    connection: Connection,
    *,
    tenant: str,
    file_sha256: bytes | None = None,
    text_sha256: bytes | None = None,
) -> DeletedDocument | None:
    """Return the deletion of a document with this file or text; None if there was none."""
    rows = list(
        queries().find_deleted_document(
            connection, tenant=tenant, file_sha256=file_sha256, text_sha256=text_sha256
        )
    )
    return DeletedDocument(*rows[0]) if rows else None


def register_file(
    connection: Connection, file: ArrivedFile, *, tenant: str, source: str
) -> Registered | DeletedDocument:
    """Store that a file was found at an address, unless a person has deleted its document.

    A file that is known under another address becomes an address of that document. If the file at
    a known address changed, its document is read anew, unless it has other addresses too.

    Args:
        connection: In a transaction; until it ends, nobody else registers or deletes documents.
        file: The file that was found.
        tenant: The owner.
        source: Name of the source.
    """
    lock_documents(connection, tenant=tenant)
    deleted = find_deleted(connection, tenant=tenant, file_sha256=file.file_sha256)
    if deleted is not None:
        return deleted
    queries().delete_expired_of_file(connection, tenant=tenant, file_sha256=file.file_sha256)
    before = _find_address(connection, file.address, tenant=tenant, source=source)
    known = queries().find_document_of_file(connection, tenant=tenant, file_sha256=file.file_sha256)
    if known is not None:
        same = before is not None and before.document_id == known
        document_id, arrival = known, Arrival.UNCHANGED if same else Arrival.KNOWN
    elif before is None or _addresses(connection, before.document_id) > 1:
        document_id, arrival = _insert(connection, file, tenant, source), Arrival.NEW
    else:
        announced = before.file_sha256 is None
        document_id = before.document_id
        arrival = Arrival.NEW if announced else Arrival.CHANGED
        queries().replace_document_file(connection, document_id=document_id, **_columns(file))
    queries().delete_document_failures(connection, document_id=document_id, stage=DOWNLOADING)
    _point(connection, file, document_id, tenant=tenant, source=source)
    if (
        before
        and before.document_id != document_id
        and not _addresses(connection, before.document_id)
    ):
        delete_document(connection, before.document_id)
    if arrival in (Arrival.NEW, Arrival.CHANGED) and file.problem:
        write_failure(connection, document_id, file.problem)
        queries().set_document_status(connection, document_id=document_id, status="failed")
    earlier = _earlier_files(connection, document_id, before) if before else []
    return Registered(document_id, arrival, earlier)


def lock_documents(connection: Connection, *, tenant: str) -> None:
    """Let nobody else register or delete documents of a tenant until commit."""
    queries().lock_documents(connection, tenant=tenant)


def announce(
    connection: Connection,
    addresses: Mapping[str, tuple[str, Mapping[str, Any]]],
    *,
    tenant: str,
    source: str,
) -> None:
    """Store that files are about to be downloaded, so that a person sees which are still missing.

    Args:
        connection: In a transaction.
        addresses: Title and metadata by address; addresses with a file already are not changed.
        tenant: The owner.
        source: Name of the source.
    """
    queries().lock_documents(connection, tenant=tenant)
    known = list_addresses(connection, tenant=tenant, source=source)
    for address, (title, metadata) in addresses.items():
        before = known.get(address)
        if before and before.file_sha256 is not None:
            continue
        expected = ArrivedFile(
            address=address,
            title=title,
            media_type="",
            metadata=metadata,
            file_sha256=None,
            file_url=None,
            file_bytes=None,
        )
        if before is None:
            document_id = _insert(connection, expected, tenant, source)
            _point(connection, expected, document_id, tenant=tenant, source=source)
        else:
            document_id = before.document_id
        queries().set_document_status(connection, document_id=document_id, status=DOWNLOADING)


def fail_download(
    connection: Connection, address: str, reason: str, *, tenant: str, source: str
) -> None:
    """Store why an announced file could not be downloaded; an earlier file stays as it is."""
    before = _find_address(connection, address, tenant=tenant, source=source)
    if before is None or before.file_sha256 is not None:
        return
    write_failure(connection, before.document_id, reason, stage=DOWNLOADING)
    queries().set_document_status(connection, document_id=before.document_id, status="failed")


def bury_document(
    connection: Connection,
    document_id: UUID,
    note_ids: Sequence[UUID],
    *,
    reason: str,
    text_sha256: bytes | None = None,
) -> None:
    """Delete a document whose notes were deleted; only hashes of it are kept.

    Args:
        connection: In a transaction.
        document_id: The document.
        note_ids: Its deleted notes, whose tombstones are deleted too.
        reason: The person's reason.
        text_sha256: Hash of its text, if that is not stored yet.
    """
    queries().bury_document(
        connection, document_id=document_id, reason=reason, text_sha256=text_sha256
    )
    queries().forget_section_tombstones(
        connection, document_id=document_id, note_ids=list(note_ids)
    )
    delete_document(connection, document_id)


def _find_address(
    connection: Connection, address: str, *, tenant: str, source: str
) -> StoredAddress | None:
    return list_addresses(connection, tenant=tenant, source=source, address=address).get(address)


def _earlier_files(connection: Connection, document_id: UUID, before: StoredAddress) -> list[bytes]:
    rows = queries().list_files(connection, document_id=document_id, file_sha256=before.file_sha256)
    return [bytes(row.file_sha256) for row in rows if not row.is_needed]


def _addresses(connection: Connection, document_id: UUID) -> int:
    count: int = queries().count_addresses(connection, document_id=document_id)
    return count


def _columns(file: ArrivedFile) -> dict[str, Any]:
    return {
        "title": file.title,
        "media_type": file.media_type,
        "metadata": Jsonb(dict(file.metadata)),
        "file_sha256": file.file_sha256,
        "file_url": file.file_url,
        "file_bytes": file.file_bytes,
    }


def _insert(connection: Connection, file: ArrivedFile, tenant: str, source: str) -> UUID:
    document_id: UUID = queries().insert_document(
        connection,
        tenant=tenant,
        source=source,
        page_count=None,
        arrived_at=None,
        **_columns(file),
    )
    return document_id


def _point(
    connection: Connection, file: ArrivedFile, document_id: UUID, *, tenant: str, source: str
) -> None:
    queries().upsert_document_address(
        connection,
        tenant=tenant,
        source=source,
        address=file.address,
        document_id=document_id,
        etag=file.etag,
        file_sha256=file.file_sha256,
    )
