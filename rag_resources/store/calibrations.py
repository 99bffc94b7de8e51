"""Rows of `calibrations`: how often the responses of a configuration are right.

They are made and judged in `evaluation.calibration`.
"""

from dataclasses import dataclass
from datetime import datetime

from psycopg.types.json import Jsonb

from rag_resources.core.confidence import Calibration
from rag_resources.core.evidence import Contents
from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries


@dataclass(frozen=True, slots=True)
class StoredCalibration:
    """A calibration, and what was searched when it was measured.

    Attributes:
        contents: Fingerprints, as an evaluation records them.
        measured_at: When it began, by the database's clock.
    """

    calibration: Calibration
    contents: Contents
    measured_at: datetime


def write_calibration(connection: Connection, config_hash: str, made: StoredCalibration) -> None:
    """Store the calibration of a configuration in place of an earlier one."""
    queries().write_calibration(
        connection,
        config_hash=config_hash,
        calibration=Jsonb(made.calibration.model_dump(mode="json")),
        contents=Jsonb(made.contents),
        measured_at=made.measured_at,
    )


def delete_calibration(connection: Connection, config_hash: str) -> None:
    """Delete the calibration of a configuration, if it has one."""
    queries().delete_calibration(connection, config_hash=config_hash)


def fetch_calibration(connection: Connection, config_hash: str) -> StoredCalibration | None:
    """Return the calibration of a configuration; None if it has none."""
    row = queries().fetch_calibration(connection, config_hash=config_hash)
    if row is None:
        return None
    return StoredCalibration(
        Calibration.model_validate(row.calibration), row.contents, row.measured_at
    )
