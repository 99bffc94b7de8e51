"""The progress of a migration: shares, pace and time left, computed from counts and times.

Reading those belongs in `store.migration_status`; interim quality tests in `core.migration_gate`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from rag_resources.core.evidence import Evidence

LONGEST_MINUTES = 365 * 24 * 60.0
"""Longest time left that is reported: one year."""


@dataclass(frozen=True, slots=True)
class MonthProgress:
    """The progress of the notes of one month, or of several.

    Attributes:
        month: `YYYY-MM`, in UTC.
        notes: Notes that have not expired; these are to be migrated.
        chunked: Notes with chunks, made with any settings.
        migrated: Notes chunked with the current settings.
        failed: Notes that could not be chunked, or with an error in some chunk.
        pending: Chunked notes that wait for their vectors, by model.
    """

    month: str
    notes: int
    chunked: int
    migrated: int
    failed: int = 0
    pending: Mapping[str, int] = field(default_factory=dict)

    @property
    def remaining(self) -> int:
        """Notes still to migrate, including those chunked with other settings."""
        return self.notes - self.migrated

    @property
    def percent_migrated(self) -> float:
        """Percentage of notes that are migrated."""
        return percent(self.migrated, self.notes)


@dataclass(frozen=True, slots=True)
class ModelProgress:
    """The progress of a model's vectors.

    Attributes:
        state: As in `embedding_models`; None if nothing was ever indexed with it.
        serves: Whether the promoted configuration searches with it.
        chunks: Number of chunks of all notes.
        pending_notes: Chunked notes that lack some vectors.
        pending_chunks: Chunks of those notes.
    """

    name: str
    chunks: int
    state: str | None = None
    serves: bool = False
    pending_notes: int = 0
    pending_chunks: int = 0

    @property
    def current_chunks(self) -> int:
        """Chunks with current vectors; those of a note count once all of them have theirs."""
        return self.chunks - self.pending_chunks if self.state else 0

    @property
    def percent(self) -> float:
        """Percentage of chunks with current vectors; 0 without chunks."""
        return percent(self.current_chunks, self.chunks) if self.state and self.chunks else 0.0


@dataclass(frozen=True, slots=True)
class EmbeddingWork:
    """Vectors that one transaction made, and its time."""

    model: str
    vectors: int
    started_at: datetime
    finished_at: datetime


@dataclass(frozen=True, slots=True)
class Quality:
    """The results of the golden questions.

    Attributes:
        configuration: The evaluated configuration; None for a measurement after a batch of
            `model`.
        is_disturbed: Whether a question could not be asked in full.
        evidence: Whether the evaluation is current, aged or stale; None after a batch.
    """

    configuration: str | None
    model: str
    measured_at: datetime
    total_queries: int
    hit_rate_at_10: float
    mrr: float
    latency_p95_ms: float
    is_disturbed: bool = False
    evidence: Evidence | None = None

    @property
    def is_stale(self) -> bool:
        """Whether the figures are stale."""
        return self.evidence is not None and self.evidence.is_stale


def percent(part: int, whole: int) -> float:
    """Return a share in percent, in [0, 100]; 100 if `whole` is 0.

    Rounded down to hundredths, so that unfinished work is never shown as 100.
    """
    return 10_000 * part // whole / 100 if whole else 100.0


def total_progress(months: Sequence[MonthProgress], label: str) -> MonthProgress:
    """Add up the progress of months, all with the same models."""
    return MonthProgress(
        month=label,
        notes=sum(month.notes for month in months),
        chunked=sum(month.chunked for month in months),
        migrated=sum(month.migrated for month in months),
        failed=sum(month.failed for month in months),
        pending={
            model: sum(month.pending[model] for month in months)
            for model in (months[0].pending if months else ())
        },
    )


def vectors_per_minute(work: Iterable[EmbeddingWork]) -> dict[str, float]:
    """Return how many vectors of each model are made per minute of work.

    Only the time of the transactions counts; overlapping time counts once. Pauses, index builds
    and the quality test at the end of a batch do not count.

    Args:
        work: The latest transactions of each model, in any order.
    """
    by_model: dict[str, list[EmbeddingWork]] = {}
    for item in work:
        by_model.setdefault(item.model, []).append(item)
    rates = {}
    for model, items in by_model.items():
        vectors, seconds = sum(item.vectors for item in items), _busy_seconds(items)
        if vectors and seconds:
            rates[model] = 60 * vectors / seconds
    return rates


def _busy_seconds(work: Iterable[EmbeddingWork]) -> float:
    """Return for how long at least one of the transactions was running."""
    busy, until = timedelta(), None
    for item in sorted(work, key=lambda item: item.started_at):
        start = max(item.started_at, until) if until else item.started_at
        if item.finished_at > start:
            busy += item.finished_at - start
            until = item.finished_at
    return busy.total_seconds()


def minutes_left(
    total: MonthProgress, models: Sequence[ModelProgress], vectors_per_minute: Mapping[str, float]
) -> float | None:
    """Return how long the vectors of the rest take at the latest pace, model by model.

    Notes still to be chunked are assumed to have the average number of chunks, with two vectors
    each; chunking itself takes little time.

    Args:
        total: The progress of all months together.
        models: The models that embed every chunk.
        vectors_per_minute: The pace of the latest work, by model.

    Returns:
        Minutes. None if there is nothing left to do, if a pace is unknown, or if the time exceeds
        `LONGEST_MINUTES`.
    """
    chunks_per_note = models[0].chunks / total.chunked if models and total.chunked else 1.0
    minutes = 0.0
    for model in models:
        waiting = model.pending_chunks if model.state else model.chunks
        vectors = 2 * (waiting + total.remaining * chunks_per_note)
        if vectors and model.name not in vectors_per_minute:
            return None
        minutes += vectors / vectors_per_minute.get(model.name, 1.0)
    return minutes if 0 < minutes <= LONGEST_MINUTES else None
