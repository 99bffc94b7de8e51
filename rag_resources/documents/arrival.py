"""Registers the files of a source: keeps a copy of each, and finds out which are new.

Listing a folder is in `documents.folder`; reading the files is in `documents.extracting`.
"""

import hashlib
import io
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC

from psycopg.types.json import Jsonb

from rag_resources.core.errors import InvalidSourceError
from rag_resources.core.extraction_config import ExtractionConfig
from rag_resources.core.types import RejectedRecord
from rag_resources.database.pool import Database
from rag_resources.database.queries import queries
from rag_resources.documents.folder import FoundFile
from rag_resources.documents.media_types import media_type_of
from rag_resources.files import Files
from rag_resources.languages.messages import _
from rag_resources.store.document_files import (
    Arrival,
    ArrivedFile,
    DeletedDocument,
    StoredAddress,
    fail_download,
    find_deleted,
    list_addresses,
    register_file,
)

_TENANT_CHARS = 16


@dataclass
class ArrivalReport:
    """The outcome of registering the files of a source.

    Attributes:
        counts: Number of files by outcome.
        rejected: Files that could not be registered, and why.
        left_out: Files of documents that a person deleted, and why.
        missing: Addresses that the source has lost; their documents are kept.
    """

    counts: Counter[Arrival] = field(default_factory=Counter)
    rejected: list[RejectedRecord] = field(default_factory=list)
    left_out: list[RejectedRecord] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


def arrive(
    database: Database,
    files: Files,
    found: Iterable[FoundFile | RejectedRecord],
    *,
    tenant: str,
    source: str,
    config: ExtractionConfig,
) -> ArrivalReport:
    """Register the files of a source, each in a transaction of its own.

    A file whose ETag did not change is not opened. The copy is written before the rows, so that a
    process killed in between leaves a copy that the next run uses.

    Args:
        database: Open.
        files: Where copies are kept.
        found: The files of the source.
        tenant: The owner.
        source: Its name; part of the identity of an address.
        config: Limits the size of files.
    """
    report, addresses = ArrivalReport(), []
    with database.transaction() as connection:
        known = list_addresses(connection, tenant=tenant, source=source)
    for each in found:
        if isinstance(each, RejectedRecord):
            report.rejected.append(each)
            addresses.append(each.location)
            with database.transaction() as connection:
                fail_download(connection, each.location, each.reason, tenant=tenant, source=source)
            continue
        addresses.append(each.address)
        try:
            outcome = _take(database, files, each, known, tenant, source, config)
        except (InvalidSourceError, OSError) as error:
            reason = getattr(
                error,
                "message",
                _(
                    "It cannot be read. Check that it exists, is no broken link, and "
                    "that there is permission to read."
                ),
            )
            report.rejected.append(RejectedRecord(each.address, reason))
            continue
        if isinstance(outcome, RejectedRecord):
            report.left_out.append(outcome)
        else:
            report.counts[outcome] += 1
    with database.transaction() as connection:
        rows = queries().mark_missing_addresses(
            connection, tenant=tenant, source=source, addresses=addresses
        )
        report.missing = [row.address for row in rows]
    return report


def _take(
    database: Database,
    files: Files,
    found: FoundFile,
    known: Mapping[str, StoredAddress],
    tenant: str,
    source: str,
    config: ExtractionConfig,
) -> Arrival | RejectedRecord:
    before = known.get(found.address)
    if before and before.etag == found.etag:
        return _unchanged(database, found, before, known)
    content = _read(found, config.file_mb)
    file_sha256 = hashlib.sha256(content).digest()
    if before and before.file_sha256 == file_sha256:
        with database.transaction() as connection:
            queries().upsert_document_address(
                connection,
                tenant=tenant,
                source=source,
                address=found.address,
                document_id=before.document_id,
                etag=found.etag,
                file_sha256=file_sha256,
            )
        return _unchanged(database, found, before, known)
    media_type, problem = _kind(content, found.address)
    arrived = ArrivedFile(
        address=found.address,
        title=found.title,
        media_type=media_type,
        metadata=found.metadata,
        file_sha256=file_sha256,
        file_url=file_name(tenant, file_sha256),
        file_bytes=len(content),
        etag=found.etag,
        problem=problem,
    )
    with database.transaction() as connection:
        deleted = find_deleted(connection, tenant=tenant, file_sha256=file_sha256)
    if deleted is None:
        files.write(file_name(tenant, file_sha256), content)
        with database.transaction() as connection:
            registered = register_file(connection, arrived, tenant=tenant, source=source)
            if not isinstance(registered, DeletedDocument):
                # Before the commit: if the process is killed here, the next run does it again.
                for sha256 in registered.earlier_files:
                    files.delete(file_name(tenant, sha256))
                return registered.arrival
        deleted = registered
    # The deletion may have found the text in another file, whose copy is still there.
    files.delete(file_name(tenant, file_sha256))
    return RejectedRecord(found.address, why_left_out(deleted))


def why_left_out(deleted: DeletedDocument) -> str:
    """Say when and why a person deleted a document."""
    reason: str = _("It was deleted on {date:%Y-%m-%d}.").format(
        date=deleted.deleted_at.astimezone(UTC)
    )
    if deleted.reason:
        reason += _(" Reason: {reason}").format(reason=deleted.reason)
    return reason


def file_name(tenant: str, file_sha256: bytes) -> str:
    """Return the name of our copy of a file; it does not contain the tenant or path literally."""
    return f"{files_folder(tenant)}/{file_sha256.hex()}"


def files_folder(tenant: str) -> str:
    """Return the name of the folder of our copies of a tenant's files."""
    owner = hashlib.sha256(tenant.encode()).hexdigest()[:_TENANT_CHARS]
    return f"documents/{owner}"


def _unchanged(
    database: Database,
    found: FoundFile,
    before: StoredAddress,
    known: Mapping[str, StoredAddress],
) -> Arrival:
    """Store new metadata; for a document with several addresses, only the first one's."""
    changed = (found.title, dict(found.metadata)) != (before.title, dict(before.metadata))
    if changed and found.address == min(
        address for address, each in known.items() if each.document_id == before.document_id
    ):
        with database.transaction() as connection:
            queries().update_document_metadata(
                connection,
                document_id=before.document_id,
                title=found.title,
                metadata=Jsonb(dict(found.metadata)),
            )
    return Arrival.UNCHANGED


def _read(found: FoundFile, megabytes: int) -> bytes:
    with found.open() as file:
        content = file.read(megabytes * 1024**2 + 1)
    if len(content) > megabytes * 1024**2:
        raise InvalidSourceError(
            _(
                "The file takes more than {megabytes} MB. Raise EXTRACTION__FILE_MB or split the "
                "file."
            ).format(megabytes=megabytes)
        )
    return content


def _kind(content: bytes, address: str) -> tuple[str, str]:
    """Return the media type of a file, or why no reader knows it."""
    try:
        return media_type_of(io.BytesIO(content), address), ""
    except InvalidSourceError as error:
        return "", error.message
