"""`rag migration status`: from whole notes to chunks, month by month."""

from typing import TYPE_CHECKING, Any

from rag_resources.cli.output import JsonOption, console, say, table, write_json
from rag_resources.cli.session import application
from rag_resources.cli.usage import command, group
from rag_resources.core.messages import Message

if TYPE_CHECKING:
    from rag_resources.store.status import MonthProgress

app = group("migration", Message.HELP_MIGRATION)


@app.callback()
def options() -> None:
    """Keep `status` a command of its own although there is only one."""


@command(app, "status", Message.HELP_MIGRATION_STATUS)
def status(as_json: JsonOption = False) -> None:
    """Say how far the notes of each month have come."""
    from rag_resources.store.status import month_progress, total_progress

    with application() as opened, opened.database.transaction() as connection:
        months = month_progress(connection)
    total = total_progress(months, Message.COLUMN_TOTAL) if months else None
    if as_json:
        write_json(
            {
                "months": [{"month": item.month, **_as_json(item)} for item in months],
                "total": _as_json(total) if total else None,
            }
        )
    elif total:
        _show(months, total)
    else:
        say(Message.MIGRATION_NO_NOTES)


def _show(months: "list[MonthProgress]", total: "MonthProgress") -> None:
    columns = (
        Message.COLUMN_MONTH,
        Message.COLUMN_NOTES,
        Message.COLUMN_CHUNKED,
        "%",
        *(Message.COLUMN_PENDING_OF.format(model=model) for model in total.pending),
        Message.COLUMN_FAILURES,
    )
    rows = [
        (
            item.month,
            str(item.notes),
            str(item.chunked),
            f"{item.percent_chunked:.1f}",
            *(str(count) for count in item.pending.values()),
            str(item.failures),
        )
        for item in (*months, total)
    ]
    console().print(table(columns, rows))
    say(
        Message.MIGRATION_TOTAL.format(
            chunked=total.chunked, notes=total.notes, percent=total.percent_chunked
        )
    )


def _as_json(item: "MonthProgress") -> dict[str, Any]:
    return {
        "notes": item.notes,
        "chunked": item.chunked,
        "percentChunked": round(item.percent_chunked, 2),
        "pendingNotes": dict(item.pending),
        "failures": item.failures,
    }
