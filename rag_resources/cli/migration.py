"""`rag migration status`: the progress from whole notes to chunks, by month and model."""

from typing import TYPE_CHECKING, Any

from rag_resources.cli.output import JsonOption, picked, say, show_table, write_json
from rag_resources.cli.session import read_settings
from rag_resources.cli.status import find_server, schema_of
from rag_resources.cli.usage import command, group
from rag_resources.languages.messages import _

if TYPE_CHECKING:
    from rag_resources.core.migration_status import ModelProgress, MonthProgress, Quality
    from rag_resources.settings import Settings
    from rag_resources.store.migration import StoredBatch
    from rag_resources.store.migration_status import MigrationStatus

_KEYS = (
    *("readAt", "months", "total", "models", "errors", "lastBatches", "quality", "floor"),
    *("vectorsPerMinute", "isWorking", "isComplete", "minutesLeft", "readyAt", "serving", "hold"),
)
"""Keys of the JSON output after `database`, in this order."""

app = group("migration", _("The way from whole notes to chunks."))


@app.callback()
def options() -> None:
    """Keep `status` a subcommand although it is the only one."""


@command(
    app,
    "status",
    _(
        "Says how much is migrated, by month and model, with which quality, which errors and how "
        "much is left. It starts and changes nothing. The pace is that of the last 50 "
        "transactions that chunked notes, without pauses of more than a minute, and of the last "
        "50 that made vectors of each model, without pauses, indexes or checks."
    ),
)
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
        say(
            _("The embedded PostgreSQL is not running: use “rag up”. Data: {path}").format(
                path=server["dataDir"]
            )
        )


def _read(url: str, settings: "Settings") -> "MigrationStatus":
    """Read the status from a database with the current schema."""
    from rag_resources.database.locate import database_at
    from rag_resources.migration.status import read_status

    with database_at(settings, url) as database:
        return read_status(database, settings)


def _show(found: "MigrationStatus", settings: "Settings") -> None:
    from rag_resources.migration.status import summary, tables

    if found.months:
        for item in tables(found):
            show_table(item)
    for line in summary(found, first_month=settings.first_month):
        say(line)


def _as_json(found: "MigrationStatus", settings: "Settings") -> dict[str, Any]:
    serving, hold = found.serving, found.hold
    return {
        **picked(
            found,
            "read_at",
            "is_working",
            "is_complete",
            "minutes_left",
            "ready_at",
            "vectors_per_minute",
        ),
        "months": [{"month": month.month, **_month(month)} for month in found.months],
        "total": _month(found.total) if found.months else None,
        "models": [_model(model) for model in found.models],
        "errors": [picked(kind, "stage", "model", "count", "examples") for kind in found.errors],
        "lastBatches": [_batch(batch) for batch in found.batches],
        "quality": _quality(found.quality),
        "floor": settings.migration_floor,
        "serving": serving
        and picked(serving, "configuration", "model") | {"since": found.serving_since},
        "hold": hold and picked(hold, "kind", "reason", "run_id", "set_at"),
    }


def _month(month: "MonthProgress") -> dict[str, Any]:
    return picked(
        month,
        *("notes", "chunked", "migrated", "remaining", "percent_migrated"),
        pending_notes="pending",
        failed_notes="failed",
    )


def _model(model: "ModelProgress") -> dict[str, Any]:
    from rag_resources.migration.status import STATE_NAMES

    counts = ("serves", "current_chunks", "chunks", "percent", "pending_notes")
    return {"name": model.name, "state": STATE_NAMES[model.state], **picked(model, *counts)}


def _batch(batch: "StoredBatch") -> dict[str, Any]:
    return picked(
        batch,
        *("model", "finished_at", "months", "run_id", "gate", "reason", "override_reason"),
        *("overridden_at", "total_queries", "hit_rate_at_10", "mrr", "latency_p95_ms"),
    )


def _quality(quality: "Quality | None") -> dict[str, Any] | None:
    if quality is None:
        return None
    measured = ("configuration", "model", "measured_at", "total_queries", "hit_rate_at_10", "mrr")
    state = quality.evidence.state if quality.evidence else None
    return picked(quality, *measured, "latency_p95_ms") | {"evidence": state}
