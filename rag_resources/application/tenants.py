"""Use cases of the tenants: creating and listing them, and deleting all of one."""

from collections.abc import Sequence
from dataclasses import dataclass

from rag_resources.core.errors import InvalidParameterError
from rag_resources.core.quoting import shown
from rag_resources.database.pool import Database
from rag_resources.database.queries import queries
from rag_resources.database.schema import own_tables
from rag_resources.documents.arrival import files_folder
from rag_resources.files import open_files
from rag_resources.languages.messages import _
from rag_resources.settings import MAX_TENANT_CHARS, Settings
from rag_resources.store.tenants import EmptiedTable, ListedTenant
from rag_resources.store.tombstones import lock_deletions
from rag_resources.store.vector_indexes import give_own_indexes, take_own_indexes


@dataclass(frozen=True, slots=True)
class Left:
    """The outcome of deleting a tenant.

    Attributes:
        tables: The tables that had rows of the tenant.
        files: How many files were deleted: copies of documents and uploads.
    """

    tables: Sequence[EmptiedTable]
    files: int

    @property
    def deleted(self) -> int:
        """How many rows were deleted."""
        return sum(table.deleted for table in self.tables)

    @property
    def remaining(self) -> int:
        """How many rows exist again, because something was written meanwhile."""
        return sum(table.remaining for table in self.tables)


@dataclass(frozen=True, slots=True)
class Tenants:
    """All tenants of a database."""

    database: Database
    settings: Settings

    def create(self, name: str, *, upload_hours: int | None = None) -> bool:
        """Create a tenant, whose notes may be stored from then on; False if it was created before.

        Args:
            name: Its name.
            upload_hours: Lifetime in hours of uploads that state none, 0 for no end; None leaves
                it as it is.

        Raises:
            InvalidParameterError: The name is blank, too long or cannot be shown.
        """
        if not (name.strip() and name.isprintable() and len(name) <= MAX_TENANT_CHARS):
            raise InvalidParameterError(
                _("The name must have between 1 and {maximum} visible characters.").format(
                    maximum=MAX_TENANT_CHARS
                ),
                name=name,
            )
        with self.database.transaction() as connection:
            created = queries().insert_tenant(connection, tenant=name) is not None
            if upload_hours is not None:
                queries().set_upload_lifetime(connection, tenant=name, hours=upload_hours or None)
            return created

    def list(self) -> Sequence[ListedTenant]:
        """Return the tenants, by name."""
        with self.database.transaction() as connection:
            rows = list(queries().list_tenants(connection))
        return [
            ListedTenant(
                row.tenant, row.notes, row.documents, row.questions, row.keys, row.created_at
            )
            for row in rows
        ]

    def find(self, name: str) -> ListedTenant:
        """Return a tenant.

        Raises:
            InvalidParameterError: There is none of this name.
        """
        for tenant in self.list():
            if tenant.name == name:
                return tenant
        raise InvalidParameterError(
            _("There is no tenant named “{name}”. rag tenant list shows them.").format(
                name=shown(name)
            )
        )

    def promote(self, name: str) -> Sequence[str]:
        """Build vector indexes for a large tenant alone; return the names of those built now.

        Raises:
            InvalidParameterError: There is no tenant of this name.
        """
        self.find(name)
        return give_own_indexes(self.database, name)

    def demote(self, name: str) -> None:
        """Drop the vector indexes that only this tenant has.

        Raises:
            InvalidParameterError: There is no tenant of this name.
        """
        self.find(name)
        take_own_indexes(self.database, name)

    def delete(self, name: str) -> Left:
        """Delete everything of a tenant: rows and files. It cannot be restored.

        Files and its own indexes go first. A process killed in between leaves a tenant that can be
        deleted again.

        Raises:
            InvalidParameterError: There is no tenant of this name, or files cannot be deleted.
        """
        self.find(name)
        files = self._delete_files(name)
        take_own_indexes(self.database, name)
        with self.database.transaction() as connection:
            lock_deletions(connection)
            names = list(own_tables())
            rows = list(queries().delete_tenant(connection, tenant=name, names=names))
        tables = [EmptiedTable(row.relation, row.deleted, row.remaining) for row in rows]
        return Left(tables, files)

    def _delete_files(self, name: str) -> int:
        """Delete a tenant's files, and the page of evaluations, which may quote its questions."""
        from rag_resources.serving.report import REPORT

        files = open_files(self.settings.files_address)
        own = list(files.names(files_folder(name)))
        for each in (*own, REPORT):
            files.delete(each)
        return len(own)
