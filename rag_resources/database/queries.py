"""The named queries of `sql/queries`, loaded once; the only way SQL reaches Python."""

import re
from functools import cache
from typing import Any

import aiosql
from psycopg import sql

from rag_resources.packaged import packaged

SQL = packaged("rag_resources", "sql")


@cache
def queries() -> Any:
    """Return every named query as a method that takes a connection and named parameters."""
    return aiosql.from_path(SQL / "queries", "psycopg", mandatory_parameters=False)


def statement(name: str, **identifiers: sql.Composable) -> sql.Composed:
    """Return a named query as a composable statement, without its final semicolon.

    Args:
        name: The query's name.
        identifiers: The identifiers for its placeholders in braces.
    """
    return sql.SQL(getattr(queries(), name).sql.rstrip(";\n ")).format(**identifiers)


def numbered(query: sql.Composed) -> tuple[bytes, tuple[str, ...]]:
    """Return a statement with PostgreSQL's own placeholders, and its parameter names in order.

    For `LimitedRawCursor`: the first parameter is $1, and so on.
    """
    names: dict[str, int] = {}

    def number(match: re.Match[str]) -> str:
        return f"${names.setdefault(match[1], len(names) + 1)}"

    text = re.sub(r"%\((\w+)\)s", number, query.as_string(None))
    return text.replace("%%", "%").encode(), tuple(names)
