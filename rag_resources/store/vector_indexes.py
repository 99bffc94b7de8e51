"""The HNSW indexes of vectors: one for each kind of a model, and tenants' own ones."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import structlog
from psycopg import sql

from rag_resources.core.retrievers import VectorKind
from rag_resources.core.types import ModelInfo
from rag_resources.database.claims import until_none_is_left
from rag_resources.database.pool import Connection, Database
from rag_resources.database.queries import queries, statement
from rag_resources.store.models import fetch_model, require_model
from rag_resources.store.vectors import vectors_table

_log = structlog.get_logger()

_NAME_CHARS = 16

INDEX_PATIENCE_S = 4 * 3600.0
"""How long to wait for another run to build the indexes of a model with millions of vectors."""

LIVE_INSERT_COST = 6
"""Cost of inserting a vector into a live index, as a multiple of its cost in an index build."""

MIN_ROWS = 1_000
"""With fewer vectors a search is exact, and there is no index of their kind."""
EXACT_ROWS = 200_000
"""Above this many vectors search is never exact, even during a backfill."""


def ensure_vector_indexes(
    database: Database, info: ModelInfo, *, min_rows: int | None = None
) -> list[str]:
    """Build the missing HNSW indexes of a model, one for each kind with enough vectors to need it.

    Below `min_rows` an exact search takes a few milliseconds and finds everything. For a model that
    is being backfilled and does not serve yet, the indexes are built late: when inserting the
    remaining vectors into a live index costs less than the build.

    Tenants that were given indexes of their own (`give_own_indexes`) have them for every kind.

    A valid index is never dropped: later vectors are inserted into it, which for a month of a large
    base costs less than a rebuild. An index whose build was interrupted is invalid. It is dropped
    and built again, unless another run is building it; this then waits for that run.

    Args:
        database: Open.
        info: The model.
        min_rows: With fewer vectors there is no index; None: `MIN_ROWS`.

    Returns:
        The names of the indexes built now.

    Raises:
        IndexingError: Another run took too long to build them.
        ModelMissingError: The model was retired meanwhile.
    """
    built: list[str] = []
    with database.autocommit() as connection, _index_claim(connection, info.name):
        require_model(connection, info.name)
        backfill = queries().fetch_backfill(connection, model=info.name)
        owners = [row.tenant for row in queries().list_tenants_with_own_indexes(connection)]
        for kind in VectorKind:
            table = vectors_table(info.name, kind)
            (row,) = connection.execute(statement("count_vectors", table=table))
            if not queries().is_analyzed(
                connection, table_name=_name(table), row_count=row.vectors
            ):
                connection.execute(statement("analyze_table", table=table))
            if _are_due(backfill, row.vectors, MIN_ROWS if min_rows is None else min_rows):
                for tenant in (None, *owners):
                    built += _build(connection, table, row.vectors, info.dimension, tenant)
    return built


def _build(
    connection: Connection, table: sql.Identifier, rows: int, dimension: int, tenant: str | None
) -> list[str]:
    """Build an index unless it is there; return its name if it was built."""
    name = _index_name(table, tenant)
    found = queries().find_index(connection, index_name=name)
    if found and found.valid:
        return []
    connection.execute(statement("drop_index", index=sql.Identifier(name)))
    with _build_memory(connection, rows, dimension):
        connection.execute(
            statement(
                "build_vector_index" if tenant is None else "build_own_index",
                index=sql.Identifier(name),
                table=table,
                dimension=sql.Literal(dimension),
                tenant=sql.Literal(tenant),
            )
        )
    return [name]


def _name(table: sql.Identifier) -> str:
    return str(table.as_string(None)).strip('"')


def _index_name(table: sql.Identifier, tenant: str | None) -> str:
    """Return the name of an index; the name of a tenant's own index does not reveal the tenant."""
    if tenant is None:
        return f"{_name(table)}_hnsw"
    digest = hashlib.sha256("\0".join((_name(table), tenant)).encode()).hexdigest()
    return f"own_hnsw_{digest[:_NAME_CHARS]}"


def give_own_indexes(database: Database, tenant: str) -> list[str]:
    """Build HNSW indexes over the vectors of one tenant alone, for every model.

    In an index of all tenants' vectors, a search finds the nearest of all tenants, and too few of
    its own. Later vectors are inserted into both. Questions are answered meanwhile; if this is
    killed, the next call does the rest.

    Returns:
        The names of the indexes built now; a model with few vectors gets them later, when it has
        more.

    Raises:
        IndexingError: Another run took too long to build some.
    """
    with database.transaction() as connection:
        queries().want_own_indexes(connection, tenant=tenant)
        names = [row.name for row in queries().list_models(connection)]
        models = [name for name in names if fetch_model(connection, name)]
    return [index for model in models for index in index_model_that_serves(database, model)]


def take_own_indexes(database: Database, tenant: str) -> None:
    """Drop a tenant's own indexes, also those that a killed call has left.

    This waits for a run that is building indexes, because it may be building some of these.

    Raises:
        IndexingError: The wait took too long.
    """
    with database.transaction() as connection:
        were_wanted = queries().want_no_own_indexes(connection, tenant=tenant) is not None
        models = [row.name for row in queries().list_models(connection)]
    with database.autocommit() as connection:
        for model in models:
            names = [_index_name(vectors_table(model, kind), tenant) for kind in VectorKind]
            found = [queries().find_index(connection, index_name=name) for name in names]
            if not (were_wanted or any(found)):
                continue
            with _index_claim(connection, model):
                for name in names:
                    connection.execute(statement("drop_index", index=sql.Identifier(name)))


@contextmanager
def _build_memory(connection: Connection, rows: int, dimension: int) -> Iterator[None]:
    """Give an index build the memory that its graph needs, up to the server's limit."""
    memory = queries().fit_build_memory(connection, row_count=rows, dimension=dimension)
    if memory.needed_kb > memory.allowed_kb:
        _log.warning(
            "index_build_exceeds_memory",
            needed_mb=memory.needed_kb // 1024,
            maintenance_work_mem_mb=memory.allowed_kb // 1024,
        )
    try:
        yield
    finally:
        if not connection.broken:
            queries().reset_build_memory(connection)


def _are_due(backfill: Any, rows: int, min_rows: int) -> bool:
    """Whether this many vectors should have their indexes now."""
    if rows < min_rows:
        return False
    if rows >= EXACT_ROWS:
        return True
    return bool(backfill.serves or LIVE_INSERT_COST * backfill.waiting <= backfill.notes)


def index_model_that_serves(database: Database, model: str) -> list[str]:
    """Build the missing indexes of a model that was just made to serve.

    A model that does not serve may go without indexes until its backfill is nearly done.
    """
    with database.transaction() as connection:
        info = require_model(connection, model)
    return ensure_vector_indexes(database, info)


@contextmanager
def _index_claim(connection: Connection, model: str) -> Iterator[None]:
    """Claim the vector indexes of a model.

    The claim is polled. Waiting inside a statement would hold a snapshot, for which another run's
    `CREATE INDEX CONCURRENTLY` waits: a deadlock. A killed run keeps its claim until the server
    has finished the run's last statement, which may be an index build.
    """

    def take() -> int:
        return 0 if queries().claim_indexes(connection, model=model) else 1

    until_none_is_left(take, patience_s=INDEX_PATIENCE_S)
    try:
        yield
    finally:
        if not connection.broken:
            queries().release_indexes(connection, model=model)
