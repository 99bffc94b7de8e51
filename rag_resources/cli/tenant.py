"""`rag tenant`: the tenants that share the database."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from rag_resources.cli.launch import forget_runs
from rag_resources.cli.output import (
    JsonOption,
    conclude,
    confirmed,
    console,
    note,
    say,
    table,
    warn,
    write_json,
)
from rag_resources.cli.session import application
from rag_resources.cli.usage import command, group
from rag_resources.core.errors import InvalidParameterError
from rag_resources.core.messages import Message

if TYPE_CHECKING:
    from rag_resources.application.tenants import Left
    from rag_resources.core.quotas import Quota, Usage
    from rag_resources.store.tenants import ListedTenant

app = group("tenant", Message.HELP_TENANT)

Name = Annotated[str, typer.Argument(metavar="CLIENTE", help=Message.HELP_TENANT_NAME)]


@command(app, "create", Message.HELP_TENANT_CREATE)
def create(name: Name, as_json: JsonOption = False) -> None:
    """Create a tenant."""
    with application() as opened:
        created = opened.tenants.create(name)
    message = Message.TENANT_CREATED if created else Message.TENANT_EXISTS
    conclude(message.format(name=name), {"tenant": name, "created": created}, as_json=as_json)


@command(app, "list", Message.HELP_TENANT_LIST)
def list_tenants(as_json: JsonOption = False) -> None:
    """Show the tenants and how much each has."""
    with application() as opened:
        tenants = opened.tenants.list()
    if as_json:
        write_json(
            {
                "tenants": [
                    {
                        "name": each.name,
                        "notes": each.notes,
                        "documents": each.documents,
                        "questions": each.questions,
                        "keys": each.keys,
                        "createdAt": each.created_at.isoformat() if each.created_at else None,
                    }
                    for each in tenants
                ]
            }
        )
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
    console().print(table(columns, [_cells(each) for each in tenants]))


class Limit(StrEnum):
    """The limits of a quota, by the names of their options."""

    NOTES = "notes"
    MEGABYTES = "megabytes"
    QUESTIONS = "questions"
    UPLOAD_HOURS = "upload-hours"


_FIELDS = {
    Limit.NOTES: "notes",
    Limit.MEGABYTES: "size_bytes",
    Limit.QUESTIONS: "questions_a_minute",
    Limit.UPLOAD_HOURS: "upload_hours",
}


@command(app, "quota", Message.HELP_TENANT_QUOTA)
def quota(
    name: Name,
    notes: Annotated[
        int | None, typer.Option(min=0, max=10**12, help=Message.HELP_QUOTA_NOTES)
    ] = None,
    megabytes: Annotated[
        int | None, typer.Option(min=0, max=10**12, help=Message.HELP_QUOTA_MEGABYTES)
    ] = None,
    questions: Annotated[
        int | None, typer.Option(min=1, max=10**6, help=Message.HELP_QUOTA_QUESTIONS)
    ] = None,
    upload_hours: Annotated[
        int | None, typer.Option(min=1, max=87_600, help=Message.HELP_QUOTA_UPLOADS)
    ] = None,
    without: Annotated[list[Limit] | None, typer.Option(help=Message.HELP_QUOTA_WITHOUT)] = None,
    as_json: JsonOption = False,
) -> None:
    """Show the limits of a tenant, or change those that options name."""
    from rag_resources.application.keys import KEY_CACHE_S
    from rag_resources.core.quotas import MEGABYTE

    given = {
        "notes": notes,
        "size_bytes": None if megabytes is None else megabytes * MEGABYTE,
        "questions_a_minute": questions,
        "upload_hours": upload_hours,
    }
    changes = {field: value for field, value in given.items() if value is not None}
    removed = {_FIELDS[limit]: None for limit in without or ()}
    if changes.keys() & removed:
        raise InvalidParameterError(Message.TENANT_QUOTA_TWICE)
    with application() as opened:
        opened.tenants.find(name)
        limits, usage = opened.tenants.quota(name), opened.tenants.usage(name)
        if changes or removed:
            limits = replace(limits, **{**changes, **removed})
            opened.tenants.limit(name, limits)
    if as_json:
        write_json({"tenant": name, "quota": _camel(limits), "usage": _camel(usage)})
        return
    _show_quota(limits, usage)
    if changes or removed:
        note(Message.TENANT_QUOTA_STORED.format(seconds=KEY_CACHE_S))


def _camel(values: "Quota | Usage") -> dict[str, int | None]:
    """Return the fields under their camelCase names in JSON."""
    from pydantic.alias_generators import to_camel

    return {to_camel(field): value for field, value in asdict(values).items()}


def _show_quota(limits: "Quota", usage: "Usage") -> None:
    rows = [
        (Message.QUOTA_ROW_NOTES, str(usage.notes), _written(limits.notes)),
        (Message.QUOTA_ROW_SIZE, _megabytes(usage.size_bytes), _megabytes(limits.size_bytes)),
        (Message.QUOTA_ROW_QUESTIONS, "", _written(limits.questions_a_minute)),
        (Message.QUOTA_ROW_UPLOADS, "", _hours(limits.upload_hours)),
    ]
    columns = (Message.COLUMN_QUOTA, Message.COLUMN_QUOTA_USED, Message.COLUMN_QUOTA_LIMIT)
    console().print(table(columns, rows))


def _written(limit: int | None) -> str:
    return Message.QUOTA_NONE if limit is None else str(limit)


def _megabytes(size: int | None) -> str:
    from rag_resources.core.quotas import MEGABYTE

    if size is None:
        return Message.QUOTA_NONE
    return Message.QUOTA_MEGABYTES.format(megabytes=size / MEGABYTE)


def _hours(hours: int | None) -> str:
    return Message.QUOTA_NONE if hours is None else Message.QUOTA_HOURS.format(hours=hours)


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
    return confirmed(
        Message.TENANT_CONFIRM.format(
            name=tenant.name,
            notes=tenant.notes,
            documents=tenant.documents,
            questions=tenant.questions,
            keys=tenant.keys,
        )
    )


def _cells(tenant: "ListedTenant") -> tuple[str, ...]:
    counts = (tenant.notes, tenant.documents, tenant.questions, tenant.keys)
    created = f"{tenant.created_at:%Y-%m-%d}" if tenant.created_at else ""
    return tenant.name, *map(str, counts), created


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
        console().print(table(columns, rows))
    say(
        Message.TENANT_DELETED.format(
            name=name, rows=left.deleted, files=left.files, remaining=left.remaining
        )
    )
