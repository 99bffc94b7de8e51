"""`rag tenant`: the tenants that share the database."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

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
from rag_resources.cli.server import forget_runs
from rag_resources.cli.session import application
from rag_resources.cli.usage import command, group
from rag_resources.core.errors import InvalidParameterError
from rag_resources.languages.messages import _

if TYPE_CHECKING:
    from rag_resources.application.tenants import Left
    from rag_resources.store.tenants import ListedTenant

app = group("tenant", _("Tenants that share the database: create, see and delete them."))

Name = Annotated[
    str, typer.Argument(metavar="CLIENTE", help=_("Name of the tenant, that of TENANT."))
]


@command(app, "create", _("Creates a tenant."))
def create(
    name: Name,
    upload_hours: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=87_600,
            help=_("Hours that an uploaded document lives if it does not say when it expires."),
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Create a tenant, or change the lifetime of its uploads."""
    with application() as opened:
        created = opened.tenants.create(name, upload_hours=upload_hours)
    message = (
        _("Tenant {name} created. With TENANT={name}, each command works for it.")
        if created
        else _("The tenant {name} was created before.")
    )
    conclude(message.format(name=name), {"tenant": name, "created": created}, as_json=as_json)


@command(app, "list", _("Shows the tenants and how much each has."))
def list_tenants(as_json: JsonOption = False) -> None:
    """Show the tenants and how much each has."""
    with application() as opened:
        tenants = opened.tenants.list()
    if as_json:
        write_json({"tenants": tenants})
        return
    if not tenants:
        say(_("There are none."))
        return
    columns = (
        _("tenant"),
        _("Notes"),
        _("Documents"),
        _("Questions"),
        _("keys"),
        _("Created"),
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


@command(
    app,
    "promote",
    _(
        "Gives a large tenant vector indexes of its own, so that its questions find what is its "
        "own among everybody's. Nothing is stopped."
    ),
)
def promote(
    name: Name,
    undo: Annotated[bool, typer.Option("--undo", help=_("Takes them away."))] = False,
    as_json: JsonOption = False,
) -> None:
    """Build vector indexes for a large tenant alone, or drop them."""
    with application() as opened:
        if undo:
            opened.tenants.demote(name)
            built: Sequence[str] = ()
        else:
            built = opened.tenants.promote(name)
    told = _("Tenant {name}: vector indexes of its own: {count}.").format(
        name=name, count=len(built)
    )
    conclude(told, {"tenant": name, "ownIndexes": not undo, "built": len(built)}, as_json=as_json)


@command(app, "delete", _("Deletes for ever all that is of a tenant, and says what was deleted."))
def delete(
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", help=_("Deletes without asking."))] = False,
    as_json: JsonOption = False,
) -> None:
    """Delete everything of a tenant after confirmation by a person, and report it."""
    with application() as opened:
        tenant = opened.tenants.find(name)
        if not (yes or _confirmed(tenant)):
            raise InvalidParameterError(
                _("Nothing was deleted. To delete without being asked, add --yes.")
            )
        left = opened.tenants.delete(name)
        runs_remain = not forget_runs(opened.settings, name)
    if as_json:
        write_json(_json(name, left))
    else:
        _show(name, left)
    if left.remaining:
        warn(
            _(
                "Somebody has written for {name} during the deletion. Repeat rag tenant delete "
                "when nobody writes."
            ).format(name=name)
        )
    if runs_remain:
        warn(
            _(
                "Dagster still keeps runs of {name}. Delete them with python -m rag_assets forget "
                "{name} once its database answers."
            ).format(name=name)
        )
    note(_("The notes in their source folder and backups are not touched."))


def _confirmed(tenant: "ListedTenant") -> bool:
    return confirmed(
        _(
            "Delete for ever all that is of {name} (notes: {notes}, documents: {documents}, "
            "golden questions: {questions}, keys: {keys})? (yes/no)"
        ).format(**asdict(tenant))
    )


def _json(name: str, left: "Left") -> dict[str, object]:
    return {
        "tenant": name,
        "rows": {each.name: each.deleted for each in left.tables},
        "remaining": {each.name: each.remaining for each in left.tables if each.remaining},
        "files": left.files,
    }


def _show(name: str, left: "Left") -> None:
    columns = (_("table"), _("rows deleted"), _("remain"))
    rows = [(each.name, str(each.deleted), str(each.remaining)) for each in left.tables]
    if rows:
        print_table(columns, rows)
    say(
        _(
            "Deleted all that was of {name}: rows: {rows}, files: {files}. Rows that remain, "
            "checked: {remaining}."
        ).format(name=name, rows=left.deleted, files=left.files, remaining=left.remaining)
    )
