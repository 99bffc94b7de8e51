"""Reads once how far each standby lags, for `rag status`. Reading from standbys is in `readers`."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import psycopg
from psycopg.conninfo import conninfo_to_dict

from rag_resources.core.errors import DatabaseUnavailableError
from rag_resources.database.migrations import connect
from rag_resources.database.queries import queries


class StandbyState(StrEnum):
    """Whether a standby can be read from."""

    CURRENT = "current"
    BEHIND = "behind"
    LOST = "lost"
    NO_STANDBY = "no_standby"
    """Not a standby any more, as after a promotion."""


@dataclass(frozen=True, slots=True)
class StandbyStatus:
    """The present state of a standby.

    Attributes:
        address: Host and port.
        state: Whether it can be read from.
        behind_bytes: How much of the write-ahead log it lacks; None if that is not known.
    """

    address: str
    state: StandbyState
    behind_bytes: int | None = None


def place(url: str) -> str:
    """Return host and port of a database's URL, without its password."""
    parts = conninfo_to_dict(url)
    return f"{parts.get('host', 'localhost')}:{parts.get('port', 5432)}"


def look_at_standbys(primary_url: str, urls: Sequence[str]) -> list[StandbyStatus]:
    """Return how far each standby lags behind the primary's position of a moment before.

    Raises:
        DatabaseUnavailableError: The primary does not answer.
    """
    with connect(primary_url) as primary:
        written = queries().reached_position(primary)
    return [_look(url, int(written)) for url in urls]


def _look(url: str, written: int) -> StandbyStatus:
    try:
        with connect(url, variable="DATABASE_READ_URL") as connection:
            replayed = queries().replay_position(connection)
    except (DatabaseUnavailableError, psycopg.Error):
        return StandbyStatus(place(url), StandbyState.LOST)
    if replayed is None:
        return StandbyStatus(place(url), StandbyState.NO_STANDBY)
    behind = max(0, written - int(replayed))
    state = StandbyState.BEHIND if behind else StandbyState.CURRENT
    return StandbyStatus(place(url), state, behind)
