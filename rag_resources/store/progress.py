"""The progress of indexing, in numbers."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from psycopg.types.json import Jsonb

from rag_resources.core.retrievers import VectorKind
from rag_resources.core.types import TimeWindow
from rag_resources.core.windows import WindowsConfig, windows_hash
from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries
from rag_resources.store.models import every_model


@dataclass(frozen=True, slots=True)
class Progress:
    """How many notes there are, and how many are chunked and embedded.

    Attributes:
        vectors: Embedded chunks by model.
    """

    notes: int
    note_vectors: int
    chunked: int
    chunks: int
    vectors: Mapping[str, int]


def read_progress(connection: Connection, note_model: str) -> Progress:
    """Count the current notes, chunks and vectors."""
    counts = queries().count_contents(connection)
    models = {model.name: model for model in every_model(connection)}
    return Progress(
        counts.notes,
        models[note_model].count(VectorKind.NOTE) if note_model in models else 0,
        counts.chunked,
        counts.chunks,
        {name: model.count(VectorKind.CHUNK) for name, model in models.items()},
    )


@dataclass(frozen=True, slots=True)
class WaitingMonth:
    """A month with notes that wait to be chunked, or for vectors, beside notes that do not.

    Attributes:
        start: First moment of the month, in UTC.
        steps: The steps of indexing that they wait for.
        notes: How many wait, once for each step.
        written_at: When the latest of them was written.
    """

    start: datetime
    steps: tuple[str, ...]
    notes: int
    written_at: datetime


def list_waiting_months(connection: Connection, models: Sequence[str]) -> list[WaitingMonth]:
    """Return the months in which notes have waited for half a minute or longer.

    Args:
        connection: In a transaction.
        models: Those whose vectors are waited for.
    """
    return [
        WaitingMonth(row.month, tuple(row.steps), row.notes, row.written_at)
        for row in queries().list_waiting_months(connection, models=list(models))
    ]


def index_is_current(
    connection: Connection,
    window: TimeWindow,
    *,
    chunking_hash: str,
    kinds: Mapping[str, Collection[VectorKind]],
    windows: WindowsConfig | None = None,
) -> bool:
    """Whether every note of some months is chunked and embedded.

    Args:
        connection: Any.
        window: The months.
        chunking_hash: Hash of the configured chunking.
        kinds: The vectors that each model is to have of chunks.
        windows: How chunks are cut; None: by default.
    """
    cut = windows_hash(windows or WindowsConfig())
    current: bool = queries().index_is_current(
        connection,
        month_start=window.start,
        month_end=window.end,
        chunking_hash=chunking_hash,
        models=list(kinds),
        wanted=Jsonb(
            [
                {
                    "name": name,
                    "kinds": sorted(own),
                    "windows_hash": cut if VectorKind.WINDOW in own else None,
                }
                for name, own in kinds.items()
            ]
        ),
    )
    return current
