"""`rag migration status`: the progress from whole notes to chunks, by month and model."""

from typing import TYPE_CHECKING, Any

from rag_resources.cli.output import (
    JsonOption,
    console,
    say,
    table,
    write_json,
)
from rag_resources.cli.session import read_settings, tell_wait
from rag_resources.cli.status import find_server, schema_of
from rag_resources.cli.usage import command, group
from rag_resources.core.messages import Message

if TYPE_CHECKING:
    from rag_resources.core.migration_status import ModelProgress, MonthProgress, Quality
    from rag_resources.settings import Settings
    from rag_resources.store.migration import StoredBatch
    from rag_resources.store.migration_status import ErrorKind, MigrationStatus

_KEYS = (
    *("readAt", "months", "total", "models", "errors", "lastBatches", "quality", "baseline"),
    *("floor", "pace", "isWorking", "isComplete", "minutesLeft", "readyAt", "serving", "hold"),
)
"""Keys of the JSON output after `database`, in this order."""

app = group("migration", Message.HELP_MIGRATION)


@app.callback()
def options() -> None:
    """Keep `status` a subcommand although it is the only one."""


@command(app, "status", Message.HELP_MIGRATION_STATUS)
def status(as_json: JsonOption = False) -> None:
    """Show how far the migration is, without starting or changing anything."""
    settings = read_settings()
    server, url = find_server(settings)
    schema = schema_of(url) if url else None
    found = _read(url, settings) if url and schema and not schema.problem else None
    if as_json:
        state = "ready" if found else f"schema{schema.state.capitalize()}" if schema else "stopped"
        contents = _as_json(found, settings) if found else dict.fromkeys(_KEYS) | {"months": []}
        write_json({"database": state} | {key: contents[key] for key in _KEYS})
    elif found:
        _show(found, settings)
    elif schema and schema.problem:
        say(schema.problem)
    else:
        say(Message.SERVER_STOPPED.format(path=server["dataDir"]))


def _read(url: str, settings: "Settings") -> "MigrationStatus":
    """Read the status from a database with the current schema."""
    from rag_resources.database.locate import database_at
    from rag_resources.migration.reading import read_status

    with database_at(settings, url, on_wait=tell_wait) as database:
        return read_status(database, settings)


def _show(found: "MigrationStatus", settings: "Settings") -> None:
    from rag_resources.migration.status import summary, tables

    if found.months:
        for item in tables(found):
            console().print(table(item.columns, item.rows, title=item.title, prose=item.is_prose))
    for line in summary(found, first_month=settings.first_month):
        say(line)


def _as_json(found: "MigrationStatus", settings: "Settings") -> dict[str, Any]:
    serving, hold = found.serving, found.hold
    return {
        "readAt": found.read_at.isoformat(),
        "months": [{"month": month.month, **_month(month)} for month in found.months],
        "total": _month(found.total) if found.months else None,
        "models": [_model(model) for model in found.models],
        "errors": [_error(kind) for kind in found.errors],
        "lastBatches": [_batch(batch) for batch in found.last_batches.values()],
        "quality": _quality(found.quality),
        "baseline": _quality(found.baseline_quality),
        "floor": settings.migration_floor,
        "pace": {
            "notesPerMinute": found.pace.notes_per_minute,
            "vectorsPerMinute": dict(found.pace.vectors_per_minute),
        },
        "isWorking": found.is_working,
        "isComplete": found.is_complete,
        "minutesLeft": found.minutes_left,
        "readyAt": found.ready_at.isoformat() if found.ready_at else None,
        "serving": {
            "configuration": serving.configuration,
            "model": serving.model,
            "since": found.serving_since.isoformat(),
        }
        if serving and found.serving_since
        else None,
        "hold": {
            "kind": hold.kind,
            "reason": hold.reason,
            "runId": hold.run_id,
            "setAt": hold.set_at.isoformat(),
        }
        if hold
        else None,
    }


def _month(month: "MonthProgress") -> dict[str, Any]:
    return {
        "notes": month.notes,
        "chunked": month.chunked,
        "percentChunked": month.percent_chunked,
        "pendingNotes": dict(month.pending),
        "failures": month.failures,
        "migrated": month.migrated,
        "remaining": month.remaining,
        "percentMigrated": month.percent_migrated,
        "failedNotes": month.failed,
        "expired": month.expired,
    }


def _model(model: "ModelProgress") -> dict[str, Any]:
    from rag_resources.migration.status import STATE_NAMES

    return {
        "name": model.name,
        "state": STATE_NAMES[model.state],
        "serves": model.serves,
        "currentChunks": model.current_chunks,
        "chunks": model.chunks,
        "percent": model.percent,
        "pendingNotes": model.pending_notes,
    }


def _error(kind: "ErrorKind") -> dict[str, Any]:
    return {
        "stage": kind.stage,
        "model": kind.model,
        "count": kind.count,
        "examples": [
            {
                "noteId": str(example.note_id),
                "externalId": example.external_id,
                "reason": example.reason,
            }
            for example in kind.examples
        ],
    }


def _batch(batch: "StoredBatch") -> dict[str, Any]:
    return {
        "model": batch.model,
        "finishedAt": batch.finished_at.isoformat(),
        "months": batch.months,
        "runId": batch.run_id,
        "gate": batch.gate,
        "reason": batch.reason,
        "overrideReason": batch.override_reason,
        "overriddenAt": batch.overridden_at.isoformat() if batch.overridden_at else None,
        "totalQueries": batch.total_queries,
        "hitRateAt10": batch.hit_rate_at_10,
        "mrr": batch.mrr,
        "latencyP95Ms": batch.latency_p95_ms,
    }


def _quality(quality: "Quality | None") -> dict[str, Any] | None:
    if quality is None:
        return None
    return {
        "configuration": quality.configuration,
        "model": quality.model,
        "measuredAt": quality.measured_at.isoformat(),
        "totalQueries": quality.total_queries,
        "hitRateAt10": quality.hit_rate_at_10,
        "mrr": quality.mrr,
        "latencyP95Ms": quality.latency_p95_ms,
        "evidence": quality.evidence.state.value if quality.evidence else None,
    }
