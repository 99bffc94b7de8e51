"""Compares the schema of a database with the one that this version of the product uses.

Migrating it belongs in `migrations`, and happens only on request: by `rag up` and `make run`.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any

import psycopg

from rag_resources.core.errors import SchemaMismatchError
from rag_resources.database.queries import SQL, queries
from rag_resources.languages.messages import _
from rag_resources.packaged import product_version

Connection = psycopg.Connection[Any]


class SchemaState(StrEnum):
    """How the schema of a database relates to the one that this product uses."""

    CURRENT = "current"
    MISSING = "missing"
    OLDER = "older"
    NEWER = "newer"
    OBSOLETE = "obsolete"


@dataclass(frozen=True)
class Schema:
    """The schema of a database.

    Attributes:
        state: How it relates to the schema of this product version.
        version: Its latest migration; None if it has none.
        pending: Migrations of this product version that it lacks, in order.
    """

    state: SchemaState
    version: str | None
    pending: tuple[str, ...]

    @property
    def problem(self) -> str | None:
        """Why it cannot be used, with both versions and what to do; None if it can."""
        names = {"found": self.version, "expected": schema_version(), "product": product_version()}
        match self.state:
            case SchemaState.CURRENT:
                return None
            case SchemaState.MISSING:
                return _(
                    "The database does not have this program's schema yet ({expected}). Nothing "
                    "was changed: create it with “rag up” or “make run”."
                ).format(**names)
            case SchemaState.OLDER:
                return _(
                    "The database has the schema {found} and this program (version {product}) "
                    "uses {expected}; missing: {pending}. Nothing was changed: stop what still "
                    "uses the former version and bring it up to date with “rag up” or “make run”."
                ).format(pending=", ".join(self.pending), **names)
            case SchemaState.NEWER:
                return _(
                    "The database has the schema {found}, newer than that of this program "
                    "(version {product}, schema {expected}). Nothing was changed: install the "
                    "version of the program that brought it up to date, or a later one."
                ).format(**names)
            case SchemaState.OBSOLETE:
                return _(
                    "The database has the schema {found}, from before the first release: export "
                    "it with “rag notes export” of the program that made it, and read the file "
                    "with “rag ingest” into a new database."
                ).format(**names)


@cache
def known_migrations() -> tuple[str, ...]:
    """Return the names of this product's migrations, in order."""
    return tuple(sorted(path.stem for path in (SQL / "migrations").glob("*.sql")))


@cache
def own_tables() -> tuple[str, ...]:
    """Return the names of this product's tables; an adopted database has others besides."""
    return tuple(re.findall(r"^CREATE TABLE (\w+)", (SQL / "schema.sql").read_text("utf-8"), re.M))


def schema_version() -> str:
    """Return the schema version that this product uses: the name of its latest migration."""
    return known_migrations()[-1]


def read_schema(connection: Connection) -> Schema:
    """Read which migrations were applied to a database."""
    known = known_migrations()
    applied: set[str] = set()
    if queries().has_schema_log(connection):
        applied = {migration for (migration,) in queries().list_applied_migrations(connection)}
    pending = tuple(migration for migration in known if migration not in applied)
    if not applied:
        return Schema(SchemaState.MISSING, None, pending)
    if known[0] not in applied:
        return Schema(SchemaState.OBSOLETE, max(applied), pending)
    if not applied.issubset(known):
        return Schema(SchemaState.NEWER, max(applied), pending)
    return Schema(SchemaState.OLDER if pending else SchemaState.CURRENT, max(applied), pending)


def check_schema(connection: Connection) -> None:
    """Check that a database has the schema of this product version; nothing is changed.

    Raises:
        SchemaMismatchError: It has none, or an older or newer one; the message says what to do.
    """
    _refuse(read_schema(connection), {SchemaState.CURRENT})


def check_can_migrate(connection: Connection) -> Schema:
    """Return the schema of a database, to which the missing migrations can be applied.

    Raises:
        SchemaMismatchError: Its schema is newer, or from before the baseline.
    """
    schema = read_schema(connection)
    _refuse(schema, {SchemaState.CURRENT, SchemaState.MISSING, SchemaState.OLDER})
    return schema


def _refuse(schema: Schema, accepted: set[SchemaState]) -> None:
    if schema.problem and schema.state not in accepted:
        raise SchemaMismatchError(schema.problem, found=schema.version, expected=schema_version())
