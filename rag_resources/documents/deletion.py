"""Deletes documents with everything that has their text, and lets sources bring them back.

Expired documents are deleted by `purge_documents`.
"""

from uuid import UUID

from rag_resources.database.pool import Connection, Database
from rag_resources.database.queries import queries
from rag_resources.documents.arrival import file_name
from rag_resources.files import Files
from rag_resources.store import document_files as store
from rag_resources.store.chunks import update_statistics
from rag_resources.store.documents import delete_document as delete_rows
from rag_resources.store.tombstones import Deletion, bury_notes, lock_deletions


def delete_document(
    database: Database, files: Files, document_id: UUID, *, tenant: str, reason: str = ""
) -> int:
    """Delete a document: our copies of its file, pages, notes, chunks and vectors. Property 51.

    Only hashes, addresses and the reason are kept, so that its source does not bring it back.
    The copies go first: a process killed in between leaves a document that can be deleted again.

    Returns:
        The number of notes deleted.
    """
    with database.transaction() as connection:
        store.lock_documents(connection, tenant=tenant)
        _delete_copies(connection, files, document_id, tenant)
        lock_deletions(connection)
        notes = [
            row.id for row in queries().list_section_notes(connection, document_id=document_id)
        ]
        deleted = bury_notes(connection, notes, kind=Deletion.DELETED)
        store.bury_document(connection, document_id, deleted, reason=reason)
    with database.transaction() as connection:
        update_statistics(connection, forgetting=True)
    return len(deleted)


def purge_documents(database: Database, files: Files, *, grace_hours: int) -> int:
    """Delete the documents that expired some hours ago or earlier; return how many.

    If this runs before the notes are purged, no trace of them or their notes is kept, so that the
    same file may come again. The copies are deleted first, as in `delete_document`.
    """
    deleted = 0
    with database.transaction() as connection:
        expired = store.list_expired_documents(connection, grace_hours=grace_hours)
    for document_id, tenant in expired:
        with database.transaction() as connection:
            store.lock_documents(connection, tenant=tenant)
            # Since the list was made, its expiry may have changed, or its file may have come again.
            if not store.list_expired_documents(
                connection, grace_hours=grace_hours, document_id=document_id
            ):
                continue
            _delete_copies(connection, files, document_id, tenant)
            lock_deletions(connection)
            delete_rows(connection, document_id)
            deleted += 1
    if deleted:
        with database.transaction() as connection:
            update_statistics(connection, forgetting=True)
    return deleted


def _delete_copies(connection: Connection, files: Files, document_id: UUID, tenant: str) -> None:
    """Delete our copies of the files that a document has had and no other one has now."""
    for row in queries().list_files(connection, document_id=document_id, file_sha256=None):
        files.delete(file_name(tenant, bytes(row.file_sha256)))


def restore_document(database: Database, address: str, *, tenant: str) -> bool:
    """Let the source bring back a deleted document; False if none was deleted at this address."""
    with database.transaction() as connection:
        return bool(
            list(queries().forget_deleted_document(connection, tenant=tenant, address=address))
        )
