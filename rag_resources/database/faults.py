"""Translates errors of PostgreSQL into the product's, which have a message for users.

A failed statement carries an SQLSTATE (PostgreSQL manual, appendix A). A failed connection carries
only the server's words, which are recognised in English.
"""

from collections.abc import Mapping

import psycopg

from rag_resources.core.errors import (
    DatabaseError,
    DatabaseTimeoutError,
    DatabaseUnavailableError,
)
from rag_resources.languages.messages import Text, _

_STATES: Mapping[str, tuple[type[DatabaseError], Text]] = {
    "25006": (
        DatabaseError,
        _(
            "The database is read-only (perhaps it is a standby, or default_transaction_read_only "
            "is on). Nothing was changed: use a server in DATABASE_URL that accepts writes."
        ),
    ),
    "53100": (
        DatabaseError,
        _(
            "The disk of the database is full. What is stored is safe: free some space and repeat "
            "the command."
        ),
    ),
    "53300": (
        DatabaseUnavailableError,
        _(
            "The database server runs, but accepts no more connections: all are taken. Close "
            "those that are not needed or raise max_connections, and try again."
        ),
    ),
    "57014": (
        DatabaseTimeoutError,
        _("The database interrupted an operation that took too long. Look at its load and repeat."),
    ),
    "57P03": (
        DatabaseUnavailableError,
        _(
            "The database server is starting, recovering or stopping, and accepts no connections "
            "yet. Wait some seconds and try again."
        ),
    ),
}

_WORDS = (
    ("too many clients", "53300"),
    ("too many connections", "53300"),
    ("connection slots are reserved", "53300"),
    ("the database system is", "57P03"),
)
"""The server's words when it refuses a connection, and the SQLSTATE they stand for."""


_OF_THE_VALUES = frozenset({"22", "23", "54", "P0"})
"""Classes of SQLSTATE: invalid data, a constraint, a limit of PostgreSQL (such as the size of a
`tsvector`), an exception that a trigger raises."""


def is_refusal(error: psycopg.Error) -> bool:
    """Whether PostgreSQL refused what was to be written, so that a retry would fail again."""
    return (error.sqlstate or "")[:2] in _OF_THE_VALUES


def database_fault(error: psycopg.Error) -> DatabaseError | None:
    """Return the error to raise for one of PostgreSQL's; None if there is no message for it."""
    return fault_of(error.sqlstate, str(error), reason=first_line(error))


def fault_of(state: str | None, said: str, *, reason: str) -> DatabaseError | None:
    """Return the error to raise; None if there is no message for it.

    Args:
        state: The SQLSTATE, if there is one.
        said: The whole message of PostgreSQL or of its client.
        reason: Its first line, without the statement or credentials.
    """
    state = state or next((state for words, state in _WORDS if words in said), None)
    if state is None or state not in _STATES:
        return None
    kind, message = _STATES[state]
    return kind(message, sqlstate=state, reason=reason)


def first_line(error: psycopg.Error) -> str:
    """Return the first line of PostgreSQL's message, without the statement or credentials."""
    text = (error.diag.message_primary or str(error)).strip()
    return text.splitlines()[0] if text else type(error).__name__
