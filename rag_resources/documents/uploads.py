"""Files that clients upload: stored at once, and registered as soon as the database answers.

A record of an upload is written before its file. So nothing is lost if the process is killed at any
moment, or the database is down: `register_kept` registers the stored uploads later.
"""

import hashlib
import io
import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import PurePosixPath
from typing import Any
from uuid import UUID, uuid4, uuid5

import psycopg
import structlog

from rag_resources.core.configuration import canonical_hash
from rag_resources.core.deadline import Deadline
from rag_resources.core.errors import (
    ConflictError,
    InvalidParameterError,
    InvalidSourceError,
)
from rag_resources.core.quoting import printable
from rag_resources.database.pool import Connection, Database
from rag_resources.documents.arrival import file_name, why_left_out
from rag_resources.documents.folder import title_of
from rag_resources.documents.media_types import media_type_of
from rag_resources.documents.metadata import checked_metadata, has_expired
from rag_resources.files import Files
from rag_resources.languages.messages import _, joined
from rag_resources.store.document_files import (
    ArrivedFile,
    DeletedDocument,
    find_upload,
    is_known_file,
    lock_documents,
    register_file,
)
from rag_resources.store.tenants import upload_lifetime_hours

SOURCE = "uploads"
"""The source of uploaded documents."""

MAX_NAME_CHARS = 200
_KEPT = "uploads"
_SET_ASIDE = "uploads-set-aside"
_INCOMPLETE = timedelta(hours=1)
_REGISTER_MS = 10_000.0
_KEYS = UUID("6f1c2a52-6f0e-4f5d-9a0c-0f4b1f6f3a11")

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Upload:
    """A file that was uploaded.

    Attributes:
        upload_id: The same for a repeated request with the same idempotency key.
        name: The file's name, without folders.
    """

    upload_id: UUID
    tenant: str
    name: str
    title: str
    media_type: str
    metadata: Mapping[str, Any]
    file_sha256: bytes
    file_bytes: int
    received_at: datetime

    @property
    def address(self) -> str:
        """The document's address in the source of uploads."""
        return f"{self.upload_id}/{self.name}"

    @property
    def body(self) -> str:
        """The hash of all that the client sent; an idempotency key is bound to one such body."""
        sent = {"name": self.name, "title": self.title, "metadata": dict(self.metadata)}
        return canonical_hash({**sent, "file": self.file_sha256.hex()})


def check_upload(
    content: bytes,
    name: str,
    *,
    tenant: str,
    title: str = "",
    metadata: Any = None,
    idempotency_key: str = "",
) -> Upload:
    """Check an upload, and return its record.

    Raises:
        InvalidSourceError: No reader knows the file, or the metadata are not valid, or say that it
            has expired.
    """
    try:
        checked = checked_metadata(metadata)
    except InvalidSourceError as error:
        raise InvalidSourceError(joined(": ", ("metadata", error.message))) from error
    if has_expired(checked):
        raise InvalidSourceError(
            _(
                "It has expired, as its metadata say (expiresAt). Change the date if it should be "
                "read."
            )
        )
    own = PurePosixPath(printable(name.replace("\\", "/"))).name[-MAX_NAME_CHARS:] or "documento"
    owner = f"{len(tenant)} {tenant} {idempotency_key}"
    return Upload(
        upload_id=uuid5(_KEYS, owner) if idempotency_key else uuid4(),
        tenant=tenant,
        name=own,
        title=title.strip() or title_of(own),
        media_type=media_type_of(io.BytesIO(content), own),
        metadata=checked,
        file_sha256=hashlib.sha256(content).digest(),
        file_bytes=len(content),
        received_at=datetime.now(UTC),
    )


def keep(files: Files, upload: Upload, content: bytes) -> None:
    """Store the file of an upload, with a record that it waits to be registered.

    Raises:
        ConflictError: Something else was uploaded under the same idempotency key.
        InvalidParameterError: Files cannot be written.
    """
    kept = find_kept(files, upload.upload_id)
    if kept is not None and kept.body != upload.body:
        raise _conflict()
    files.write(_note_name(upload.upload_id), _to_bytes(upload))
    files.write(file_name(upload.tenant, upload.file_sha256), content)


def register(database: Database, files: Files, upload: Upload) -> UUID:
    """Register a kept upload as a document, once; return the document's id.

    It expires at the time in its metadata, or else after its tenant's default.

    Raises:
        ConflictError: Something else was uploaded under the same idempotency key, or a person
            deleted the document.
        DatabaseError: The database does not answer; the upload stays stored.
    """
    arrived = ArrivedFile(
        address=upload.address,
        title=upload.title,
        media_type=upload.media_type,
        metadata=upload.metadata,
        file_sha256=upload.file_sha256,
        file_url=file_name(upload.tenant, upload.file_sha256),
        file_bytes=upload.file_bytes,
        etag=upload.body,
    )
    with database.transaction(Deadline.after(_REGISTER_MS, time.monotonic)) as connection:
        lock_documents(connection, tenant=upload.tenant)
        outcome = _registered(connection, upload, arrived)
        if (
            isinstance(outcome, ConflictError)
            and not is_known_file(connection, upload.file_sha256, tenant=upload.tenant)
            and not _is_kept_by_another(files, upload)
        ):
            # Before the commit: nobody else can register the same file meanwhile.
            files.delete(file_name(upload.tenant, upload.file_sha256))
    files.delete(_note_name(upload.upload_id))
    if isinstance(outcome, ConflictError):
        raise outcome
    return outcome


def _registered(
    connection: Connection, upload: Upload, arrived: ArrivedFile
) -> UUID | ConflictError:
    """Return the document that an upload was registered as, or why it was not."""
    own = {"tenant": upload.tenant, "source": SOURCE}
    before = find_upload(connection, upload.upload_id, **own)
    if before is not None and before.body != upload.body:
        return _conflict()
    registered = register_file(connection, _expiring(connection, upload, arrived), **own)
    if isinstance(registered, DeletedDocument):
        return ConflictError(why_left_out(registered))
    return registered.document_id


def _expiring(connection: Connection, upload: Upload, arrived: ArrivedFile) -> ArrivedFile:
    """Return the file of an upload with its time of expiry, if its tenant has a default."""
    hours = upload_lifetime_hours(connection, upload.tenant)
    if hours is None or "expiresAt" in upload.metadata:
        return arrived
    expires_at = upload.received_at + timedelta(hours=hours)
    return replace(arrived, metadata={**upload.metadata, "expiresAt": expires_at.isoformat()})


def register_kept(database: Database, files: Files) -> int:
    """Register the uploads that were stored while the database was down; return how many."""
    registered = 0
    for upload in _kept(files):
        try:
            files.read(file_name(upload.tenant, upload.file_sha256))
        except InvalidParameterError:
            # It is being written, or was cut off before the client had an answer.
            if datetime.now(UTC) - upload.received_at > _INCOMPLETE:
                files.delete(_note_name(upload.upload_id))
            continue
        try:
            register(database, files, upload)
        except ConflictError as error:
            _log.warning("upload_refused", upload=str(upload.upload_id), error=error.msgid)
        except (psycopg.DataError, UnicodeError) as error:
            # It can never be stored, and must not keep the others from it.
            name = str(upload.upload_id)
            _log.error("upload_set_aside", upload=name, error=type(error).__name__)
            files.write(f"{_SET_ASIDE}/{name}.json", _to_bytes(upload))
            files.delete(_note_name(upload.upload_id))
        else:
            registered += 1
    return registered


def find_kept(files: Files, upload_id: UUID) -> Upload | None:
    """Return an upload that is not registered yet."""
    return _read(files, _note_name(upload_id))


def kept_uploads(files: Files, tenant: str) -> list[str]:
    """Return the names of the records of a tenant's uploads that are not registered."""
    return [
        name
        for folder in (_KEPT, _SET_ASIDE)
        for name in files.names(folder)
        if (upload := _read(files, name)) and upload.tenant == tenant
    ]


def _kept(files: Files) -> Iterator[Upload]:
    """Yield the uploads that are not registered yet."""
    notes = (_read(files, name) for name in files.names(_KEPT))
    return (upload for upload in notes if upload is not None)


def _is_kept_by_another(files: Files, upload: Upload) -> bool:
    """Whether an upload that is not registered yet has the same file."""
    file = (upload.tenant, upload.file_sha256)
    return any(
        (other.tenant, other.file_sha256) == file and other.upload_id != upload.upload_id
        for other in _kept(files)
    )


def _conflict() -> ConflictError:
    return ConflictError(
        _("Another file was uploaded with this Idempotency-Key. Use a new key for each file.")
    )


def _note_name(upload_id: UUID) -> str:
    return f"{_KEPT}/{upload_id}.json"


def _to_bytes(upload: Upload) -> bytes:
    return json.dumps(
        {
            "upload_id": str(upload.upload_id),
            "tenant": upload.tenant,
            "name": upload.name,
            "title": upload.title,
            "media_type": upload.media_type,
            "metadata": upload.metadata,
            "file_sha256": upload.file_sha256.hex(),
            "file_bytes": upload.file_bytes,
            "received_at": upload.received_at.isoformat(),
        }
    ).encode()


def _read(files: Files, name: str) -> Upload | None:
    try:
        values = json.loads(files.read(name))
    except InvalidParameterError:
        return None
    return Upload(
        **values
        | {
            "upload_id": UUID(values["upload_id"]),
            "file_sha256": bytes.fromhex(values["file_sha256"]),
            "received_at": datetime.fromisoformat(values["received_at"]),
        }
    )
