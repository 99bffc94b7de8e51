"""How far a migration has come: shares, pace and time left, from counts and times.

Reading them is `store.migration_status`; whether quality held is `core.quality_watch`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise

IDLE_S = 60.0
"""A longer pause is no work, but a time when nothing was chunked."""

MIN_NOTES = 10
"""Fewer notes say nothing of a pace."""

LONGEST_MINUTES = 365 * 24 * 60.0
"""No pace lasts a year, so nothing is said of a time so long."""


@dataclass(frozen=True, slots=True)
class MonthProgress:
    """How far the notes of a month have come, or those of several.

    Attributes:
        month: `YYYY-MM`, in UTC.
        notes: Not expired: what there is to migrate.
        chunked: Those that have chunks, whatever way they were cut.
        migrated: Those chunked the way that is configured now.
        sound: Those migrated, and without an error in any chunk.
        failed: Those that could not be chunked, or with an error in some chunk.
        refused: Those that could not be chunked and are not migrated.
        expired: Beside `notes`.
        failures: Texts that could not be indexed; a note may have several.
        pending: Chunked notes that wait for their vectors, by model.
    """

    month: str
    notes: int
    chunked: int
    migrated: int
    sound: int = 0
    failed: int = 0
    refused: int = 0
    expired: int = 0
    failures: int = 0
    pending: Mapping[str, int] = field(default_factory=dict)

    @property
    def remaining(self) -> int:
        """Notes to migrate; those chunked another way are among them."""
        return self.notes - self.migrated

    @property
    def percent_chunked(self) -> float:
        """Share that has chunks."""
        return percent(self.chunked, self.notes)

    @property
    def percent_migrated(self) -> float:
        """Share that is migrated."""
        return percent(self.migrated, self.notes)


@dataclass(frozen=True, slots=True)
class ModelProgress:
    """How far the vectors of a model have come.

    Attributes:
        state: As in `embedding_models`; None if nothing was ever indexed with it.
        serves: Whether what is promoted searches with it.
        chunks: There are, of any note.
        pending_notes: Chunked notes whose vectors are not all there.
        pending_chunks: Chunks of those notes.
        pending_sound_chunks: Chunks of those of them that have no error.
    """

    name: str
    chunks: int
    state: str | None = None
    serves: bool = False
    pending_notes: int = 0
    pending_chunks: int = 0
    pending_sound_chunks: int = 0

    @property
    def current_chunks(self) -> int:
        """Chunks with current vectors; a note's count once all of them have theirs."""
        return self.chunks - self.pending_chunks if self.state else 0

    @property
    def percent(self) -> float:
        """Share of the chunks with current vectors."""
        return percent(self.current_chunks, self.chunks) if self.state else 0.0


@dataclass(frozen=True, slots=True)
class ChunkingWork:
    """Notes that one transaction chunked, and when it began."""

    started_at: datetime
    notes: int


@dataclass(frozen=True, slots=True)
class EmbeddingWork:
    """Vectors that one transaction made, and its time."""

    model: str
    vectors: int
    started_at: datetime
    finished_at: datetime


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast the latest work went, whenever that was.

    Attributes:
        notes_per_minute: Chunked; None if too few were.
        vectors_per_minute: By model; none of a model that made none so far.
    """

    notes_per_minute: float | None
    vectors_per_minute: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Quality:
    """What the golden questions gave.

    Attributes:
        configuration: What was evaluated; None: after a batch of `model`.
    """

    configuration: str | None
    model: str
    measured_at: datetime
    total_queries: int
    hit_rate_at_10: float
    mrr: float
    latency_p95_ms: float


def percent(part: int, whole: int) -> float:
    """Return a share in percent, in [0, 100]; 100 of nothing.

    Rounded down to hundredths: what is not all done is never 100.
    """
    return 10_000 * part // whole / 100 if whole else 100.0


def total_progress(months: Sequence[MonthProgress], label: str) -> MonthProgress:
    """Add up the progress of months, all with the same models."""
    return MonthProgress(
        month=label,
        notes=sum(month.notes for month in months),
        chunked=sum(month.chunked for month in months),
        migrated=sum(month.migrated for month in months),
        sound=sum(month.sound for month in months),
        failed=sum(month.failed for month in months),
        refused=sum(month.refused for month in months),
        expired=sum(month.expired for month in months),
        failures=sum(month.failures for month in months),
        pending={
            model: sum(month.pending[model] for month in months)
            for model in (months[0].pending if months else ())
        },
    )


def notes_per_minute(work: Iterable[ChunkingWork]) -> float | None:
    """Return how many notes are chunked in a minute of work.

    The notes of a transaction took until the next one began, if that was at most `IDLE_S`; else a
    night came between, or the embedding between two batches, and they are left out.

    Args:
        work: The latest, in any order.

    Returns:
        None for fewer than `MIN_NOTES` notes, or if they took no time.
    """
    notes, seconds = 0, 0.0
    for one, following in pairwise(sorted(work, key=lambda item: item.started_at)):
        took = (following.started_at - one.started_at).total_seconds()
        if took <= IDLE_S:
            notes += one.notes
            seconds += took
    return 60 * notes / seconds if notes >= MIN_NOTES and seconds else None


def vectors_per_minute(work: Iterable[EmbeddingWork]) -> dict[str, float]:
    """Return how many vectors of each model are made in a minute of work.

    Only the time of the transactions counts, that of two at once only once: no pause, and neither
    the building of an index nor the check of quality that a batch ends with.

    Args:
        work: The latest of each model, in any order.
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
    """Return how long at least one of some transactions ran."""
    busy, until = timedelta(), None
    for item in sorted(work, key=lambda item: item.started_at):
        start = max(item.started_at, until) if until else item.started_at
        if item.finished_at > start:
            busy += item.finished_at - start
            until = item.finished_at
    return busy.total_seconds()


def minutes_left(total: MonthProgress, models: Sequence[ModelProgress], pace: Pace) -> float | None:
    """Return how long the rest takes at the latest pace: first the chunks, then model by model.

    A note still to be chunked will have as many chunks as others have on average, two vectors each.
    What has an error waits for a person, not for time, and is left out.

    Args:
        total: Of all months.
        models: Those that are to have vectors of every chunk.
        pace: Of the latest work.

    Returns:
        None if there is nothing left to do, if the pace of some of it is not known, or if that is
        more than `LONGEST_MINUTES`.
    """
    notes = total.remaining - total.refused
    chunks_per_note = models[0].chunks / total.chunked if models and total.chunked else 1.0
    work: list[tuple[float, float | None]] = [(notes, pace.notes_per_minute)]
    for model in models:
        waiting = model.pending_sound_chunks if model.state else model.chunks
        vectors = 2 * (waiting + notes * chunks_per_note)
        work.append((vectors, pace.vectors_per_minute.get(model.name)))
    left = [(amount, rate) for amount, rate in work if amount > 0]
    if not left:
        return None
    minutes = 0.0
    for amount, rate in left:
        if rate is None:
            return None
        minutes += amount / rate
    return minutes if minutes <= LONGEST_MINUTES else None
