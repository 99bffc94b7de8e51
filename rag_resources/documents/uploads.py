"""Files that clients upload: checked, and registered as documents with a copy of each."""

import hashlib
import io
import math
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any
from uuid import UUID, uuid4, uuid5

from psycopg.types.json import Jsonb

from rag_resources.core.configuration import canonical_hash
from rag_resources.core.deadline import Deadline
from rag_resources.core.errors import (
    ConflictError,
    InvalidSourceError,
)
from rag_resources.core.quoting import printable, shown
from rag_resources.core.timestamps import EXPIRES_AT_FIELDS, parse_timestamp
from rag_resources.database.pool import Connection, Database
from rag_resources.database.queries import queries
from rag_resources.documents.arrival import file_name, why_left_out
from rag_resources.documents.folder import title_of
from rag_resources.documents.media_types import media_type_of
from rag_resources.files import Files
from rag_resources.languages.messages import _, about, joined
from rag_resources.store.document_files import (
    Arrival,
    ArrivedFile,
    DeletedDocument,
    find_upload,
    lock_documents,
    register_file,
)
from rag_resources.store.document_list import DocumentSummary, fetch_summary
from rag_resources.store.tenants import upload_lifetime_hours

SOURCE = "uploads"
"""The source of uploaded documents."""

MAX_NAME_CHARS = 200
_REGISTER_MS = 10_000.0
_KEYS = UUID("6f1c2a52-6f0e-4f5d-9a0c-0f4b1f6f3a11")


@dataclass(frozen=True, slots=True)
class Upload:
    """A file that was uploaded.

    Attributes:
        upload_id: The same for a repeated request with the same idempotency key.
        name: The file's name, without folders.
        is_titled: Whether the client gave the title; else it is made of the name.
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
    is_titled: bool

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
        is_titled=bool(title.strip()),
    )


def register(database: Database, files: Files, upload: Upload, content: bytes) -> UUID:
    """Register an upload as a document, once; return the document's id.

    It expires at the time in its metadata, or else after its tenant's default. The copy is written
    before the commit: a process killed in between leaves one that a repeated request uses.

    Raises:
        ConflictError: Something else was uploaded under the same idempotency key, or a person
            deleted the document.
        InvalidParameterError: Files cannot be written.
        DatabaseError: The database does not answer.
    """
    name = file_name(upload.tenant, upload.file_sha256)
    own = {"tenant": upload.tenant, "source": SOURCE}
    arrived = ArrivedFile(
        address=upload.address,
        title=upload.title,
        media_type=upload.media_type,
        metadata=upload.metadata,
        file_sha256=upload.file_sha256,
        file_url=name,
        file_bytes=upload.file_bytes,
        etag=upload.body,
    )
    with database.transaction(Deadline.after(_REGISTER_MS, time.monotonic)) as connection:
        lock_documents(connection, tenant=upload.tenant)
        before = find_upload(connection, upload.upload_id, **own)
        if before is not None and before.body != upload.body:
            raise ConflictError(
                _(
                    "Another file was uploaded with this Idempotency-Key. Use a new key for each "
                    "file."
                )
            )
        registered = register_file(connection, _expiring(connection, upload, arrived), **own)
        if isinstance(registered, DeletedDocument):
            remedy = _(
                'To let it in again, send {{"address": "{address}"}} to POST '
                "/v1/documents/restore first."
            ).format(address=registered.address)
            raise ConflictError(joined(" ", (why_left_out(registered), remedy)))
        files.write(name, content)
        if before is None and registered.arrival is Arrival.KNOWN:
            with suppress(ConflictError):  # One of a folder is described there.
                describe(
                    connection,
                    registered.document_id,
                    tenant=upload.tenant,
                    title=upload.title if upload.is_titled else None,
                    changes=upload.metadata,
                )
        return registered.document_id


def describe(
    connection: Connection,
    document_id: UUID,
    *,
    tenant: str,
    title: str | None = None,
    changes: Mapping[str, Any] = MappingProxyType({}),
) -> DocumentSummary | None:
    """Change the title and metadata of an uploaded document; None if there is no such document.

    Args:
        connection: In a transaction.
        document_id: The document.
        tenant: The owner.
        title: None leaves it as it is.
        changes: Fields of the metadata; None takes one away.

    Raises:
        InvalidSourceError: The metadata are not valid.
        ConflictError: It is of a source that would change them back.
    """
    found = fetch_summary(connection, document_id, tenant=tenant)
    if found is None:
        return None
    others = sorted({own["source"] for own in found.addresses} - {SOURCE})
    if others:
        raise ConflictError(
            _(
                "The title and metadata are those of its source, “{source}”: change them there."
            ).format(source=others[0])
        )
    edited = {**found.metadata, **checked_changes(changes)}
    queries().update_document_metadata(
        connection,
        document_id=document_id,
        title=title or found.title,
        metadata=Jsonb({key: value for key, value in edited.items() if value is not None}),
    )
    return fetch_summary(connection, document_id, tenant=tenant)


def _expiring(connection: Connection, upload: Upload, arrived: ArrivedFile) -> ArrivedFile:
    """Return the file of an upload with its time of expiry, if its tenant has a default."""
    hours = upload_lifetime_hours(connection, upload.tenant)
    if hours is None or "expiresAt" in upload.metadata:
        return arrived
    expires_at = upload.received_at + timedelta(hours=hours)
    return replace(arrived, metadata={**upload.metadata, "expiresAt": expires_at.isoformat()})


MAX_KEYS = 100
MAX_VALUE_CHARS = 1_000


def checked_metadata(values: Any) -> dict[str, Any]:
    """Return metadata with values that JSON and filters support; dates become text.

    `expiresAt` is when the document expires.

    Raises:
        InvalidSourceError: They are not a mapping, are too many, or a value has another type.
    """
    if values is None:
        return {}
    if not isinstance(values, Mapping) or len(values) > MAX_KEYS:
        raise InvalidSourceError(
            _(
                "must be lines of the form “field: value” (in JSON an object), {maximum} at most."
            ).format(maximum=MAX_KEYS)
        )
    plain = {str(key): _plain(str(key), value) for key, value in values.items()}
    for name in EXPIRES_AT_FIELDS:
        if (value := plain.pop(name, None)) is not None:
            plain["expiresAt"] = _moment(name, value)
    return plain


def checked_changes(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return changes of metadata, checked; those that are None take a field away.

    Raises:
        InvalidSourceError: As for `checked_metadata`.
    """
    kept = {key: value for key, value in values.items() if value is not None}
    return dict.fromkeys(map(str, values.keys() - kept.keys())) | checked_metadata(kept)


def has_expired(metadata: Mapping[str, Any]) -> bool:
    """Whether the document with these checked metadata has expired."""
    expires_at = metadata.get("expiresAt")
    return expires_at is not None and datetime.fromisoformat(expires_at) <= datetime.now(UTC)


def _moment(key: str, value: Any) -> str:
    moment = parse_timestamp(value) if isinstance(value, str) else None
    if moment is None:
        raise InvalidSourceError(
            about(
                key,
                _(
                    "“{value}” is not a date; write it like this: 2025-03-14 or "
                    "2025-03-14T18:30:00+01:00"
                ).format(value=shown(value)),
            )
        )
    return moment.isoformat()


def _plain(key: str, value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(key, each) for each in value[:MAX_KEYS]]
    if isinstance(value, str) and len(value) <= MAX_VALUE_CHARS and "\0" not in value:
        return value
    if isinstance(value, date):
        return value.isoformat()
    is_number = isinstance(value, int | float) and math.isfinite(value)
    if value is None or (is_number and abs(value) < 2**63):
        return value
    raise InvalidSourceError(
        _("“{key}” must be a text, a number, a date, yes or no, or a list of them.").format(
            key=shown(key)
        )
    )
