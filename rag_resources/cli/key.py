"""`rag key`: the keys of the HTTP API."""

import time
from datetime import UTC, datetime
from typing import Annotated

import typer

from rag_resources.cli.output import JsonOption, conclude, picked, print_table, say, write_json
from rag_resources.cli.search_options import (
    MetadataOption,
    SinceOption,
    SourceOption,
    TagOption,
    UntilOption,
    filters_of,
)
from rag_resources.cli.session import application
from rag_resources.cli.usage import command, group
from rag_resources.core.messages import Message
from rag_resources.core.texts import joined

app = group("key", Message.HELP_KEY)


@command(app, "create", Message.HELP_KEY_CREATE)
def create(
    name: Annotated[str, typer.Argument(metavar="NOMBRE", help=Message.HELP_KEY_NAME)],
    role: Annotated[
        str, typer.Option("--role", metavar="PAPEL", help=Message.HELP_KEY_ROLE)
    ] = "reader",
    as_json: JsonOption = False,
) -> None:
    """Create a key and write it once."""
    from rag_resources.core.api_keys import ApiRole
    from rag_resources.core.errors import InvalidParameterError
    from rag_resources.core.quoting import shown

    if role not in list(ApiRole):
        raise InvalidParameterError(Message.KEY_ROLE_UNKNOWN.format(role=shown(role)))
    with application() as opened:
        key, stored = opened.keys.create(name, ApiRole(role))
    told = Message.KEY_CREATED.format(key_id=stored.key_id, role=stored.role.value)
    fields = picked(stored, "name", "role", id="key_id") | {"key": key}
    conclude(joined("\n", (told, key)), fields, as_json=as_json)


@command(app, "list", Message.HELP_KEY_LIST)
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
        say(Message.KEY_NONE)
        return
    columns = (
        Message.COLUMN_KEY_ID,
        Message.COLUMN_KEY_NAME,
        Message.COLUMN_KEY_ROLE,
        Message.COLUMN_KEY_STATE,
        Message.COLUMN_KEY_CREATED,
    )
    cells = [
        (
            key.key_id,
            key.name,
            key.role.value,
            Message.KEY_IS_REVOKED if key.revoked_at else Message.KEY_VALID,
            f"{key.created_at:%Y-%m-%d}",
        )
        for key in keys
    ]
    print_table(columns, cells, prose=True)


@command(app, "revoke", Message.HELP_KEY_REVOKE)
def revoke(
    key_id: Annotated[str, typer.Argument(metavar="CLAVE", help=Message.HELP_KEY_ID)],
    as_json: JsonOption = False,
) -> None:
    """Revoke a key."""
    from rag_resources.application.keys import KEY_CACHE_S

    with application() as opened:
        opened.keys.revoke(key_id)
    told = Message.KEY_REVOKED.format(key_id=key_id, seconds=KEY_CACHE_S)
    conclude(told, {"id": key_id, "revoked": True, "withinSeconds": KEY_CACHE_S}, as_json=as_json)


@command(app, "scope", Message.HELP_KEY_SCOPE)
def scope(
    key: Annotated[str, typer.Argument(metavar="CLAVE", help=Message.HELP_KEY_WHOLE)],
    hours: Annotated[
        int, typer.Option("--hours", min=1, metavar="N", help=Message.HELP_KEY_HOURS)
    ] = 24,
    source: SourceOption = None,
    tag: TagOption = None,
    note_id: Annotated[
        list[str] | None,
        typer.Option("--note", metavar="UUID", help=Message.HELP_FILTER_NOTE_ID),
    ] = None,
    since: SinceOption = None,
    until: UntilOption = None,
    metadata: MetadataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a key that only searches, within filters, until it expires; nothing is stored."""
    from rag_resources.core.api_keys import Scope, scoped_key
    from rag_resources.core.errors import InvalidParameterError

    filters = filters_of(
        source=source, tag=tag, note_id=note_id, since=since, until=until, metadata=metadata
    )
    fields = filters.model_dump(mode="json", exclude_defaults=True)
    expires_at = int(time.time()) + hours * 3_600
    try:
        scoped = scoped_key(key, Scope(fields, expires_at))
    except ValueError as error:
        raise InvalidParameterError(Message.KEY_NOT_WHOLE) from error
    until_when = datetime.fromtimestamp(expires_at, UTC)
    told = {"key": scoped, "filters": fields, "expiresAt": until_when}
    conclude(scoped, told, as_json=as_json)
