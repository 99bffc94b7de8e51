"""Writes the records of a source to `notes`. Sources are read in `ingestion.sources`."""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TypeVar

from rag_resources.core.types import NoteRecord, RejectedRecord
from rag_resources.database.pool import Connection, Database
from rag_resources.ingestion.source_file import is_conflict_copy
from rag_resources.languages.messages import Text, _
from rag_resources.store.mirror import write_addresses
from rag_resources.store.notes import (
    OutsideNotes,
    Upsert,
    creation_times,
    names_in_source,
    upsert_notes,
)
from rag_resources.store.rejections import (
    forget_rejections,
    list_rejection_roots,
    replace_rejections,
)
from rag_resources.store.tombstones import Deletion, Tombstone, find_tombstones, lift_tombstone

BATCH_RECORDS = 200
WORKERS = 2
"""Batches written in parallel, each on its own connection; the server takes most of the time."""
NAMED_REJECTIONS = 1_000
"""Most rejected or left-out records whose reasons are kept; further ones are only counted."""
SHOWN_ABSENT = 5
"""Most notes that are named when notes are absent."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Undated:
    """A note that neither states its date nor has it in its name, so it gets its file's.

    Attributes:
        name: Its identifier, as in the list of notes.
        location: Where it is: file, or file and line.
        created_at: When the file was changed.
    """

    name: str
    location: str
    created_at: datetime

    @property
    def label(self) -> str:
        """Its name, with its line if it is one of many in a file: an identifier may be a hash."""
        has_line = self.location.rpartition(":")[2].isdigit()
        return f"{self.name} ({self.location})" if has_line else self.name


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A record of a deleted note: its external id, and why it was left out, in Spanish."""

    external_id: str
    reason: str


@dataclass
class IngestReport:
    """The outcome of ingesting a source.

    Attributes:
        by_month: Counts of `Upsert` values by `YYYY-MM` (UTC).
        rejected: Rejected records with their reasons, the first `NAMED_REJECTIONS`.
        rejected_count: Number of all rejected records.
        left_out: Records of deleted notes with the reasons, the first `NAMED_REJECTIONS`.
        left_out_count: Number of all records of deleted notes.
        text_left_out: Notes by what of their text is left out.
        elsewhere: Records of partitions that this run does not process.
        undated: Records without a date, the first `NAMED_REJECTIONS`, with the one that is stored.
        undated_count: Number of all of them.
        absent: External ids of the source's notes that this reading did not find, the first
            `NAMED_REJECTIONS`: their file or row is gone or rejected. They stay as they are.
        absent_count: Number of all of them.
        conflicts: The first `NAMED_REJECTIONS` notes of conflict copies.
    """

    by_month: dict[str, Counter[Upsert]] = field(default_factory=dict)
    rejected: list[RejectedRecord] = field(default_factory=list)
    rejected_count: int = 0
    left_out: list[LeftOut] = field(default_factory=list)
    left_out_count: int = 0
    text_left_out: Counter[str] = field(default_factory=Counter)
    elsewhere: int = 0
    undated: list[Undated] = field(default_factory=list)
    undated_count: int = 0
    absent: list[str] = field(default_factory=list)
    absent_count: int = 0
    conflicts: list[str] = field(default_factory=list)

    @property
    def written(self) -> int:
        """Number of records that are in the database now, changed or not."""
        return sum(counts.total() for counts in self.by_month.values())

    def sentences(self) -> list[Text]:
        """Tell which notes are absent, and which files are conflict copies."""
        told: list[Text] = []
        if self.absent:
            shown = [
                *self.absent[:SHOWN_ABSENT],
                *(["…"] if self.absent_count > SHOWN_ABSENT else []),
            ]
            told.append(
                _(
                    "Stored notes that this reading did not find any more (their file or row is "
                    "gone, renamed, or was rejected): {count} ({notes}). They are kept as they "
                    "were and still found; “rag notes delete NOTE” deletes one that you do not "
                    "want, and “rag ingest FOLDER --mirror” follows the files."
                ).format(count=self.absent_count, notes=", ".join(shown))
            )
        if self.conflicts:
            told.append(
                _(
                    "Files that synchronisation made because two devices changed one file: "
                    "{notes}. Keep what you want of each, and delete it."
                ).format(notes=", ".join(self.conflicts))
            )
        return told

    def count(self, outcome: Upsert) -> int:
        """Number of records with this outcome, over all months."""
        return sum(counts[outcome] for counts in self.by_month.values())


def ingest(
    database: Database,
    records: Iterable[NoteRecord | RejectedRecord],
    *,
    tenant: str,
    source: str,
    root: str = "",
    is_whole: bool = False,
    copies: Mapping[str, str] | None = None,
    keep: Callable[[datetime], bool] = lambda _: True,
    progress: Callable[[int], None] = lambda _: None,
) -> IngestReport:
    """Write records in batches of one transaction each, `WORKERS` of them at once.

    A record of a deleted note is left out as long as its content is that of the deleted note. If a
    note has several records, the last one counts. The rejected records are stored, in place of
    those that earlier readings had in the same folder or file, whichever they began with.

    Args:
        database: Open.
        records: From `iter_source`; read once as a stream.
        tenant: Owner of the notes.
        source: Name of the source, part of the notes' identity.
        root: The folder or file that is read, completely.
        is_whole: Whether all notes of the source are read, so that others of it are absent.
        copies: Records that are not stored, because the note of another one stands for them, and
            that one; None if the source is not mirrored.
        keep: Whether a creation time is in the partitions of this run.
        progress: Called with the number of records of each batch.

    Raises:
        DatabaseUnavailableError: The connection was lost; what was committed stays.

    Properties: 40, 41, 60.
    """
    report = IngestReport()
    seen: set[str] | None = set() if is_whole else None
    wanted = _wanted(records, keep, report, seen, copies or {})

    def write(batch: Sequence[NoteRecord]) -> _Written:
        return _write(database, batch, tenant=tenant, source=source)

    for written in _in_order(write, _batches(wanted, BATCH_RECORDS)):
        for record, outcome in written.outcomes:
            month = f"{record.created_at.astimezone(UTC):%Y-%m}"
            report.by_month.setdefault(month, Counter())[outcome] += 1
            report.text_left_out.update([*record.metadata.get("leftOut", ())])
            _note_undated(report, record)
        for record, tombstone in written.left_out:
            _leave_out(report, record, tombstone)
        progress(len(written.outcomes) + len(written.left_out))
    with database.transaction() as connection:
        _store_rejections(connection, report.rejected, tenant=tenant, source=source, root=root)
        if copies is not None:
            write_addresses(connection, copies, tenant=tenant, source=source)
        if seen is not None:
            for name in names_in_source(connection, tenant=tenant, source=source):
                if name not in seen:
                    _note_absent(report, name)
    return report


def _store_rejections(
    connection: Connection,
    rejected: Sequence[RejectedRecord],
    *,
    tenant: str,
    source: str,
    root: str,
) -> None:
    """Store a reading's rejections; forget those of earlier readings in what it has read again."""
    read = Path(root).resolve()
    covered = []
    for former in list_rejection_roots(connection, tenant=tenant, source=source):
        path = Path(former).resolve()
        if former != root and path.is_relative_to(read):
            covered.append(former)
        elif path != read and read.is_relative_to(path):
            part = read.relative_to(path).as_posix()
            forget_rejections(connection, tenant=tenant, source=source, root=former, part=part)
    replace_rejections(
        connection, rejected, tenant=tenant, source=source, root=root, covered=covered
    )


@dataclass(frozen=True, slots=True)
class _Written:
    """A batch in the database.

    Attributes:
        outcomes: Its records, with the date that is stored, and the effect on each.
        left_out: Records of deleted notes.
    """

    outcomes: Sequence[tuple[NoteRecord, Upsert]]
    left_out: Sequence[tuple[NoteRecord, Tombstone]]


def _write(
    database: Database, batch: Sequence[NoteRecord], *, tenant: str, source: str
) -> _Written:
    with database.bulk() as connection:
        tombstones = find_tombstones(connection, batch, tenant=tenant, source=source)
        found = list(zip(batch, _without_absent(connection, tombstones), strict=True))
        wanted = [record for record, tombstone in found if tombstone is None]
        outcomes = upsert_notes(connection, wanted, tenant=tenant, source=source)
        dated = _as_dated(connection, wanted, tenant=tenant, source=source)
    return _Written(
        list(zip(dated, outcomes, strict=True)),
        [(record, tombstone) for record, tombstone in found if tombstone is not None],
    )


def _without_absent(
    connection: Connection, tombstones: Sequence[Tombstone | None]
) -> Iterator[Tombstone | None]:
    """Yield tombstones; those of notes whose file was gone and is back are lifted instead."""
    for tombstone in tombstones:
        if tombstone and tombstone.kind is Deletion.ABSENT:
            lift_tombstone(connection, tombstone)
        yield tombstone if tombstone and tombstone.kind is not Deletion.ABSENT else None


def _as_dated(
    connection: Connection, records: Sequence[NoteRecord], *, tenant: str, source: str
) -> list[NoteRecord]:
    """Return records with the date that is stored: a note without one keeps its first."""
    undated = [record.external_id for record in records if undated_of(record)]
    if not undated:
        return list(records)
    stored = creation_times(connection, undated, tenant=tenant, source=source)
    return [
        replace(record, created_at=stored.get(record.external_id, record.created_at))
        if undated_of(record)
        else record
        for record in records
    ]


def _in_order(
    write: Callable[[Sequence[NoteRecord]], _Written], batches: Iterable[Sequence[NoteRecord]]
) -> Iterator[_Written]:
    """Write several batches in parallel; yield the outcome of each, in their order.

    A batch that shares a note with one under way waits for it: the later record must win, and two
    transactions that write the same notes in another order would deadlock.
    """
    waiting: deque[tuple[frozenset[str], Future[_Written]]] = deque()
    with ThreadPoolExecutor(WORKERS) as workers:
        for batch in batches:
            ids = frozenset(record.external_id for record in batch)
            while len(waiting) >= WORKERS or any(ids & others for others, __ in waiting):
                yield waiting.popleft()[1].result()
            waiting.append((ids, workers.submit(write, batch)))
        for __, written in waiting:
            yield written.result()


def undated_of(record: NoteRecord) -> Undated | None:
    """Describe a record that has no date; None if it has one, if only in its name."""
    if record.date_source != "file_modified":
        return None
    return Undated(record.external_id, record.location, record.created_at.astimezone(UTC))


def _note_undated(report: IngestReport, record: NoteRecord) -> None:
    if undated := undated_of(record):
        report.undated_count += 1
        if len(report.undated) < NAMED_REJECTIONS:
            report.undated.append(undated)


def _note_absent(report: IngestReport, name: str) -> None:
    report.absent_count += 1
    if len(report.absent) < NAMED_REJECTIONS:
        report.absent.append(name)


def _reject(report: IngestReport, record: RejectedRecord) -> None:
    report.rejected_count += 1
    if len(report.rejected) < NAMED_REJECTIONS:
        report.rejected.append(record)


def _leave_out(report: IngestReport, record: NoteRecord, tombstone: Tombstone) -> None:
    report.left_out_count += 1
    if len(report.left_out) >= NAMED_REJECTIONS:
        return
    purged = tombstone.kind is Deletion.PURGED
    message = (
        _("It expired and was deleted on {date:%Y-%m-%d}.")
        if purged
        else _("It was deleted on {date:%Y-%m-%d}.")
    )
    reason = message.format(date=tombstone.deleted_at.astimezone(UTC))
    if tombstone.reason:
        reason += _(" Reason: {reason}").format(reason=tombstone.reason)
    report.left_out.append(LeftOut(record.external_id, reason))


def _wanted(
    records: Iterable[NoteRecord | RejectedRecord],
    keep: Callable[[datetime], bool],
    report: IngestReport,
    seen: set[str] | None,
    copies: Mapping[str, str],
) -> Iterator[NoteRecord]:
    for record in records:
        if isinstance(record, RejectedRecord):
            _reject(report, record)
            continue
        if seen is not None:
            seen.add(record.external_id)
        if is_conflict_copy(record.external_id) and len(report.conflicts) < NAMED_REJECTIONS:
            report.conflicts.append(record.external_id)
        if record.external_id in copies:
            continue
        if keep(record.created_at):
            yield record
        else:
            report.elsewhere += 1


def _batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch


def outside_in_words(outside: OutsideNotes) -> Text:
    """Say which notes no month processes."""
    return _(
        "Notes that no month processes: {count} ({first} … {last}). They are found, but whole: "
        "{examples}. Correct their dates, or set FIRST_MONTH."
    ).format(
        count=outside.count,
        first=f"{outside.earliest:%Y-%m-%d}",
        last=f"{outside.latest:%Y-%m-%d}",
        examples=", ".join(outside.examples),
    )
