"""`rag up`, `rag down` and `rag serve`: the embedded database server, and the HTTP API."""

from typing import Annotated

import typer

from rag_resources.cli.output import JsonOption, address, say, warn, working, write_json
from rag_resources.cli.session import application, read_settings
from rag_resources.core.messages import Message


def up(as_json: JsonOption = False) -> None:
    """Start the embedded server and migrate the schema."""
    from rag_resources.database.locate import database_url, direct_url, embedded_server
    from rag_resources.database.migrations import migrate

    settings = read_settings()
    with working(Message.CLI_OPENING):
        url = database_url(settings)
        applied = migrate(direct_url(settings))
    if as_json:
        write_json(
            {
                "version": server_version(url),
                "address": address(url),
                "embedded": settings.database_url is None,
                "applied": list(applied),
            }
        )
        return
    if settings.database_url:
        say(Message.SERVER_OWN_DATABASE.format(version=server_version(url), address=address(url)))
    else:
        state = embedded_server(settings).status()
        say(
            Message.SERVER_UP.format(
                version=state.version, address=address(url), path=state.data_dir
            )
        )
    if applied:
        say(Message.SERVER_SCHEMA_APPLIED.format(migrations=", ".join(applied)))
    else:
        say(Message.SERVER_SCHEMA_CURRENT)


def down(
    force: Annotated[bool, typer.Option("--force", help=Message.HELP_DOWN_FORCE)] = False,
    as_json: JsonOption = False,
) -> None:
    """Stop the embedded server, unless programs that need it run."""
    from rag_resources.core.errors import InvalidParameterError
    from rag_resources.database.locate import embedded_server
    from rag_resources.programs import running_programs

    settings = read_settings()
    server = embedded_server(settings)
    state = server.status()
    programs = running_programs(settings.rag_home)
    if state.running and programs and not (settings.database_url or force):
        named = ", ".join(f"«{each.command}» ({each.pid})" for each in programs)
        raise InvalidParameterError(Message.SERVER_IN_USE.format(programs=named))
    if as_json:
        server.down()
        write_json({"stopped": state.running, "dataDir": str(state.data_dir)})
        return
    if settings.database_url:
        url = settings.database_url.get_secret_value()
        say(Message.SERVER_NOT_OURS.format(address=address(url)))
    if state.running:
        server.down()
        say(Message.SERVER_DOWN.format(path=state.data_dir))
    elif not settings.database_url:
        say(Message.SERVER_ALREADY_DOWN)


def serve() -> None:
    """Serve the HTTP API."""
    from rag_resources.api.running import COMMAND, DEFAULT_PORT, check_exposure, free_port
    from rag_resources.api.running import serve as serve_until_stopped
    from rag_resources.programs import announced

    settings = read_settings()
    port = free_port(settings)
    with working(Message.CLI_OPENING), application() as opened:
        is_open = check_exposure(settings, opened)
    if settings.api_port is None and port != DEFAULT_PORT:
        warn(Message.API_PORT_OTHER.format(default=DEFAULT_PORT, port=port))
    if is_open:
        warn(Message.API_OPEN)
    say(Message.API_SERVING.format(host=settings.api_host, port=port))
    address = f"http://{settings.api_host}:{port}"
    with announced(settings.rag_home, COMMAND, address=address):
        serve_until_stopped(settings, port)


def server_version(url: str) -> str:
    """Ask a server for its version, such as `16.4`."""
    from rag_resources.database.migrations import connect

    with connect(url) as connection:
        return (connection.info.parameter_status("server_version") or "").partition(" ")[0]
