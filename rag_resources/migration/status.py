"""A migration's status as sentences and tables, for the command line and Dagster.

Its data is read by `store.migration_status`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from rag_resources.configurations import load_configurations
from rag_resources.core.chunking_version import chunking_hash
from rag_resources.core.durations import duration, months_in_words
from rag_resources.core.migration_status import Quality
from rag_resources.core.tables import ReportTable
from rag_resources.database.pool import Database
from rag_resources.evaluation.evidence import count_and_read_evidence
from rag_resources.evaluation.summary import EVIDENCE_WORDS
from rag_resources.languages.formats import number
from rag_resources.languages.messages import _, ngettext, operators
from rag_resources.settings import Settings
from rag_resources.store.migration import StoredBatch
from rag_resources.store.migration_status import MigrationStatus, read_migration_status

MODEL_STATES = {
    None: _("not indexed"),
    "serving": _("serves"),
    "building": _("available"),
    "retired": _("retired"),
}
STATE_NAMES = {
    None: None,
    "serving": "serving",
    "building": "available",
    "retired": "retired",
}
"""The states of models in JSON: what does not serve may be complete."""

_STAGES = {
    "chunk": _("chunking"),
    "embed_note": _("vector of the whole note"),
    "embed_chunk": _("vectors of the chunks"),
}
_ABSENT = "–"
_YES = "sí"


def read_status(database: Database, settings: Settings) -> MigrationStatus:
    """Return the progress of every month and model, with quality, errors and pace."""
    with database.snapshot() as connection:
        status = read_migration_status(
            connection,
            settings.embedding_models,
            chunking_hash=chunking_hash(settings.chunking),
        )
    evaluation = status.evaluation
    if evaluation is None:
        return status
    with database.transaction() as connection:
        evidence = count_and_read_evidence(
            connection,
            [evaluation],
            load_configurations(settings.configuration_folders),
            settings=settings.search,
        )
    return replace(status, evidence=evidence[evaluation.evaluation_id])


def summary(status: MigrationStatus, *, first_month: str) -> list[str]:
    """Return sentences on the migration's progress, blocks, speed, and what to do next.

    Args:
        status: As read from the database.
        first_month: First monthly partition, `YYYY-MM`.
    """
    held = [status.hold.explanation] if status.hold else []
    total = status.total
    if not status.months:
        return [*held, _("There are no notes: begin with “rag ingest FOLDER”.")]
    said = [
        *held,
        *(
            _(
                "The next batch will not start: quality gate closed by embeddings/{model} "
                "({finished_at:%Y-%m-%d %H:%M} UTC): {reason}. Mend the cause and repeat the "
                "check retrieval_quality of that asset, or launch the batch with a reason in "
                "override_quality_gate."
            ).format(
                model=batch.model,
                finished_at=batch.finished_at.astimezone(UTC),
                reason=batch.reason,
            )
            for batch in status.closed
        ),
        ngettext(
            "{migrated} of {notes} note migrated ({percent} %); left: {remaining}.",
            "{migrated} of {notes} notes migrated ({percent} %); left: {remaining}.",
            total.notes,
        ).format(
            migrated=total.migrated,
            notes=total.notes,
            percent=number(total.percent_migrated, 2, operators()),
            remaining=total.remaining,
        ),
    ]
    for count, message in (
        (
            total.chunked - total.migrated,
            _("{count} of those left are chunked in another way (CHUNKING has changed)."),
        ),
        (
            total.failed,
            _(
                "Notes with errors: {count}. Mend the cause and, in the UI (“make ui”), repeat "
                "the months that failed."
            ),
        ),
    ):
        if count:
            said.append(message.format(count=count))
    left = [month.month for month in status.months if month.remaining]
    current = f"{status.read_at.astimezone(UTC):%Y-%m}"
    said.extend(_outside(left, first_month, current))
    said.append(_serving(status))
    pace = [
        _("{rate:.0f} vectors/min with {model}").format(rate=rate, model=model)
        for model, rate in status.vectors_per_minute.items()
    ]
    if pace:
        said.append(_("Pace of the last work: {pace}.").format(pace=", ".join(pace)))
    if not left or any(first_month <= month <= current for month in left):
        said.extend(_prospect(status))
    return said


def tables(status: MigrationStatus) -> list[ReportTable]:
    """Return the tables of the status, leaving out empty ones."""
    found = (
        _months_table(status),
        _models_table(status),
        _quality_table(status),
        _batches_table(status),
        _errors_table(status),
    )
    return [table for table in found if table.rows]


def _outside(left: Sequence[str], first: str, current: str) -> Iterator[str]:
    """Name the months with remaining notes that no partition covers."""
    before = [month for month in left if month < first]
    if before:
        yield _(
            "There are notes from before FIRST_MONTH ({first}) that no month processes: set "
            "FIRST_MONTH={month}."
        ).format(first=first, month=before[0])
    after = [month for month in left if month > current]
    if after:
        yield _(
            "There are notes with a future date ({months}) that no month processes yet: if it is "
            "wrong, correct it in the file; the next run takes the note to its month."
        ).format(months=", ".join(after))


def _serving(status: MigrationStatus) -> str:
    if not (status.serving and status.serving_since):
        return _("No promoted configuration serves yet.")
    return _("“{configuration}” serves with the model {model}, since {since}.").format(
        configuration=status.serving.configuration,
        model=status.serving.model,
        since=f"{_utc(status.serving_since)} UTC",
    )


def _prospect(status: MigrationStatus) -> Iterator[str]:
    """Say when the migration will be done, or what blocks it."""
    if status.is_complete:
        yield _("All notes are migrated, with all their vectors. “rag status” counts the windows.")
    elif status.ready_at and status.minutes_left is not None:
        yield _("Time left: {duration}; it will end around {ready_at:%Y-%m-%d %H:%M} UTC.").format(
            duration=duration(60 * status.minutes_left),
            ready_at=status.ready_at.astimezone(UTC),
        )
    elif not status.hold and not status.closed:
        yield (
            _(
                "Running. How much is left is not known yet: more notes have to be chunked, and "
                "each model has to make vectors."
            )
            if status.is_working
            else _(
                "Nothing is running. Next step: materialise the missing months of chunks and "
                "embeddings in the UI (“make ui”), or run “make run”."
            )
        )


def _months_table(status: MigrationStatus) -> ReportTable:
    models = [model.name for model in status.models]
    rows = (*status.months, status.total) if status.months else ()
    return ReportTable(
        _("Notes by month"),
        (
            _("Month"),
            _("Notes"),
            _("Migrated"),
            "%",
            *(_("Without vectors {model}").format(model=model) for model in models),
            _("Failures"),
        ),
        tuple(
            (
                month.month if month in status.months else _("Total"),
                str(month.notes),
                str(month.migrated),
                f"{month.percent_migrated:.2f}",
                *(str(month.pending[model]) for model in models),
                str(month.failed),
            )
            for month in rows
        ),
    )


def _models_table(status: MigrationStatus) -> ReportTable:
    return ReportTable(
        _("Models"),
        (
            _("Model"),
            _("State"),
            _("Serves"),
            _("Chunks with vectors"),
            "%",
            _("Without vectors"),
        ),
        tuple(
            (
                model.name,
                MODEL_STATES[model.state],
                _YES if model.serves else _ABSENT,
                f"{model.current_chunks} / {model.chunks}",
                f"{model.percent:.2f}",
                str(model.pending_notes),
            )
            for model in status.models
        ),
    )


def _quality_table(status: MigrationStatus) -> ReportTable:
    quality = status.quality
    return ReportTable(
        _("Quality"),
        (
            _("Of"),
            "Hit_Rate@10",
            "MRR",
            "p95 ms",
            _("Questions"),
            _("Date (UTC)"),
        ),
        (_quality_row(quality),) if quality else (),
    )


def _quality_row(quality: Quality) -> tuple[str, ...]:
    measured = quality.configuration or _("trial of {model}").format(model=quality.model)
    if quality.is_disturbed:
        measured = _("{measured} (disturbed)").format(measured=measured)
    if quality.evidence and not quality.evidence.is_current:
        measured = f"{measured} ({EVIDENCE_WORDS[quality.evidence.state]})"
    return (
        measured,
        f"{quality.hit_rate_at_10:.3f}",
        f"{quality.mrr:.3f}",
        f"{quality.latency_p95_ms:.0f}",
        str(quality.total_queries),
        _utc(quality.measured_at),
    )


def _batches_table(status: MigrationStatus) -> ReportTable:
    return ReportTable(
        _("Last batch of each model"),
        (
            _("Model"),
            _("Date (UTC)"),
            _("Months"),
            _("Gate"),
            _("Reason"),
        ),
        tuple(
            (
                batch.model,
                _utc(batch.finished_at),
                months_in_words(batch.months) or _("measured again"),
                gate_words(batch),
                batch.reason,
            )
            for batch in status.batches
        ),
        is_prose=True,
    )


def gate_words(batch: StoredBatch) -> str:
    """Say whether a batch's gate is open or closed, or which run has overridden it."""
    if batch.gate == "open":
        return _("open")
    if batch.overridden_at:
        return _("closed, and opened by a person: {reason}").format(reason=batch.override_reason)
    return _("closed")


def _errors_table(status: MigrationStatus) -> ReportTable:
    return ReportTable(
        _("Errors by kind"),
        (
            _("Kind"),
            _("Model"),
            _("Total"),
            _("Examples"),
        ),
        tuple(
            (
                _STAGES[kind.stage],
                kind.model or _ABSENT,
                str(kind.count),
                "; ".join(f"{example.external_id}: {example.reason}" for example in kind.examples),
            )
            for kind in status.errors
        ),
        is_prose=True,
    )


def _utc(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M}"
