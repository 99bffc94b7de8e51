"""`rag key`: the keys of the HTTP API."""

from typing import Annotated

import typer

from rag_resources.cli.output import JsonOption, conclude, picked, print_table, say, write_json
from rag_resources.cli.session import application
from rag_resources.cli.usage import command, group
from rag_resources.languages.messages import _, joined

app = group("key", _("Keys of the API: create, see and revoke them."))


@command(app, "create", _("Creates a key of this tenant (TENANT) and writes it once only."))
def create(
    name: Annotated[str, typer.Argument(metavar="NOMBRE", help=_("Why; it is stored."))],
    role: Annotated[
        str,
        typer.Option(
            "--role", metavar="PAPEL", help=_("owner, writer, reader (the default) or operator.")
        ),
    ] = "reader",
    as_json: JsonOption = False,
) -> None:
    """Create a key and write it once."""
    from rag_resources.core.api_keys import ApiRole
    from rag_resources.core.errors import InvalidParameterError
    from rag_resources.core.quoting import shown

    if role not in list(ApiRole):
        raise InvalidParameterError(
            _("“{value}” is not one of the options: {expected}").format(
                value=shown(role), expected=", ".join(ApiRole)
            )
        )
    with application() as opened:
        key, stored = opened.keys.create(name, ApiRole(role))
    told = _("Key {key_id} ({role}). Keep it now, it is not shown again:").format(
        key_id=stored.key_id, role=stored.role.value
    )
    fields = picked(stored, "name", "role", id="key_id") | {"key": key}
    conclude(joined("\n", (told, key)), fields, as_json=as_json)


@command(app, "list", _("Shows the keys of this tenant, without their secret."))
def list_keys(as_json: JsonOption = False) -> None:
    """Show the keys without their secrets."""
    with application() as opened:
        keys = opened.keys.list()
    if as_json:
        rows = [
            picked(key, "name", "role", "created_at", "revoked_at", id="key_id") for key in keys
        ]
        write_json({"keys": rows})
        return
    if not keys:
        say(_("There are none."))
        return
    columns = (
        _("Key"),
        _("name"),
        _("role"),
        _("State"),
        _("Created"),
    )
    cells = [
        (
            key.key_id,
            key.name,
            key.role.value,
            _("revoked") if key.revoked_at else _("valid"),
            f"{key.created_at:%Y-%m-%d}",
        )
        for key in keys
    ]
    print_table(columns, cells, prose=True)


@command(app, "revoke", _("Revokes a key."))
def revoke(
    key_id: Annotated[
        str,
        typer.Argument(metavar="CLAVE", help=_("Identifier of the key, as rag key list shows it.")),
    ],
    as_json: JsonOption = False,
) -> None:
    """Revoke a key."""
    from rag_resources.store.api_keys import KEY_CACHE_S

    with application() as opened:
        opened.keys.revoke(key_id)
    told = _("Key {key_id} revoked. The processes of the API forget it within {seconds} s.").format(
        key_id=key_id, seconds=KEY_CACHE_S
    )
    conclude(told, {"id": key_id, "revoked": True, "withinSeconds": KEY_CACHE_S}, as_json=as_json)
