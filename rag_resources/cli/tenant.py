"""`rag tenant`: the tenants that share the database."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from rag_resources.cli.launch import forget_runs
from rag_resources.cli.output import (
    JsonOption,
    conclude,
    confirmed,
    note,
    print_table,
    say,
    warn,
    write_json,
)
from rag_resources.cli.session import application
from rag_resources.cli.usage import command, group
from rag_resources.core.errors import InvalidParameterError
from rag_resources.core.messages import Message

if TYPE_CHECKING:
    from rag_resources.application.tenants import Left
    from rag_resources.store.tenants import ListedTenant

app = group("tenant", Message.HELP_TENANT)

Name = Annotated[str, typer.Argument(metavar="CLIENTE", help=Message.HELP_TENANT_NAME)]


@command(app, "create", Message.HELP_TENANT_CREATE)
def create(
    name: Name,
    upload_hours: Annotated[
        int | None, typer.Option(min=0, max=87_600, help=Message.HELP_QUOTA_UPLOADS)
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Create a tenant, or change the lifetime of its uploads."""
    with application() as opened:
        created = opened.tenants.create(name, upload_hours=upload_hours)
    message = Message.TENANT_CREATED if created else Message.TENANT_EXISTS
    conclude(message.format(name=name), {"tenant": name, "created": created}, as_json=as_json)


@command(app, "list", Message.HELP_TENANT_LIST)
def list_tenants(as_json: JsonOption = False) -> None:
    """Show the tenants and how much each has."""
    with application() as opened:
        tenants = opened.tenants.list()
    if as_json:
        write_json({"tenants": tenants})
        return
    if not tenants:
        say(Message.TENANTS_NONE)
        return
    columns = (
        Message.COLUMN_TENANT,
        Message.COLUMN_TENANT_NOTES,
        Message.COLUMN_TENANT_DOCUMENTS,
        Message.COLUMN_TENANT_QUESTIONS,
        Message.COLUMN_TENANT_KEYS,
        Message.COLUMN_TENANT_CREATED,
    )
    print_table(
        columns,
        [
            (
                each.name,
                *map(str, (each.notes, each.documents, each.questions, each.keys)),
                f"{each.created_at:%Y-%m-%d}" if each.created_at else "",
            )
            for each in tenants
        ],
    )


@command(app, "promote", Message.HELP_TENANT_PROMOTE)
def promote(
    name: Name,
    undo: Annotated[bool, typer.Option("--undo", help=Message.HELP_TENANT_UNDO)] = False,
    as_json: JsonOption = False,
) -> None:
    """Build vector indexes for a large tenant alone, or drop them."""
    with application() as opened:
        if undo:
            opened.tenants.demote(name)
            built: Sequence[str] = ()
            told = Message.TENANT_DEMOTED.format(name=name)
        else:
            built = opened.tenants.promote(name)
            told = Message.TENANT_PROMOTED.format(name=name, count=len(built))
    conclude(told, {"tenant": name, "ownIndexes": not undo, "built": len(built)}, as_json=as_json)


@command(app, "delete", Message.HELP_TENANT_DELETE)
def delete(
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", help=Message.HELP_TENANT_YES)] = False,
    as_json: JsonOption = False,
) -> None:
    """Delete everything of a tenant after confirmation by a person, and report it."""
    from rag_resources.providers.cache import WRITTEN_ANSWERS

    with application() as opened:
        tenant = opened.tenants.find(name)
        if not (yes or _confirmed(tenant)):
            raise InvalidParameterError(Message.TENANT_DELETE_UNCONFIRMED)
        left = opened.tenants.delete(name)
        runs_remain = not forget_runs(opened.settings, name)
    if as_json:
        write_json(_json(name, left))
    else:
        _show(name, left)
    if left.remaining:
        warn(Message.TENANT_REMAINING.format(name=name))
    if runs_remain:
        warn(Message.TENANT_RUNS_REMAIN.format(name=name))
    note(Message.TENANT_ELSEWHERE.format(hours=int(WRITTEN_ANSWERS.lifetime_s // 3_600)))


def _confirmed(tenant: "ListedTenant") -> bool:
    return confirmed(Message.TENANT_CONFIRM.format(**asdict(tenant)))


def _json(name: str, left: "Left") -> dict[str, object]:
    return {
        "tenant": name,
        "rows": {each.name: each.deleted for each in left.tables},
        "remaining": {each.name: each.remaining for each in left.tables if each.remaining},
        "files": left.files,
    }


def _show(name: str, left: "Left") -> None:
    columns = (Message.COLUMN_TABLE, Message.COLUMN_ROWS_DELETED, Message.COLUMN_ROWS_REMAINING)
    rows = [(each.name, str(each.deleted), str(each.remaining)) for each in left.tables]
    if rows:
        print_table(columns, rows)
    say(
        Message.TENANT_DELETED.format(
            name=name, rows=left.deleted, files=left.files, remaining=left.remaining
        )
    )
