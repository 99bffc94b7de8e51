"""Writes what a source gives into `notes`. Reading sources is `ingestion.sources`."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from typing import TypeVar

from rag_resources.core.types import NoteRecord, RejectedRecord
from rag_resources.database.pool import Database
from rag_resources.store.notes import Upsert, upsert_notes

BATCH_RECORDS = 200
NAMED_REJECTIONS = 1_000
"""Rejected records kept with their reasons; the rest are only counted."""

T = TypeVar("T")


@dataclass
class IngestReport:
    """What became of a source's records.

    Attributes:
        by_month: Counts of `Upsert` values by `YYYY-MM` (UTC).
        rejected: Records kept out, with their reasons, the first `NAMED_REJECTIONS`.
        rejected_count: All of them.
        elsewhere: Records that belong to a partition that was not asked for.
    """

    by_month: dict[str, Counter[Upsert]] = field(default_factory=dict)
    rejected: list[RejectedRecord] = field(default_factory=list)
    rejected_count: int = 0
    elsewhere: int = 0

    @property
    def written(self) -> int:
        """Records that are in the database now, changed or not."""
        return sum(counts.total() for counts in self.by_month.values())

    def count(self, outcome: Upsert) -> int:
        """Records with that outcome in all months."""
        return sum(counts[outcome] for counts in self.by_month.values())


def ingest(
    database: Database,
    records: Iterable[NoteRecord | RejectedRecord],
    *,
    tenant: str,
    source: str,
    keep: Callable[[datetime], bool] = lambda _: True,
    progress: Callable[[int], None] = lambda _: None,
) -> IngestReport:
    """Write records in batches, each in its own transaction.

    Args:
        database: Open.
        records: From `iter_source`; read once, never held whole.
        tenant: Owner of the notes.
        source: Name of the source, part of the notes' identity.
        keep: Whether a creation time belongs to the partitions asked for.
        progress: Called with the number of records of each batch.

    Raises:
        DatabaseUnavailableError: The database was lost; what is committed stays.

    Properties: 40, 41.
    """
    report = IngestReport()
    for batch in _batches(_wanted(records, keep, report), BATCH_RECORDS):
        with database.bulk() as connection:
            outcomes = upsert_notes(connection, batch, tenant=tenant, source=source)
        for record, outcome in zip(batch, outcomes, strict=True):
            month = f"{record.created_at.astimezone(UTC):%Y-%m}"
            report.by_month.setdefault(month, Counter())[outcome] += 1
        progress(len(batch))
    return report


def _wanted(
    records: Iterable[NoteRecord | RejectedRecord],
    keep: Callable[[datetime], bool],
    report: IngestReport,
) -> Iterator[NoteRecord]:
    for record in records:
        if isinstance(record, RejectedRecord):
            report.rejected_count += 1
            if len(report.rejected) < NAMED_REJECTIONS:
                report.rejected.append(record)
        elif keep(record.created_at):
            yield record
        else:
            report.elsewhere += 1


def _batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch
