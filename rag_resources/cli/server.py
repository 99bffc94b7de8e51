"""`rag up`, `rag down` and `rag serve`: the embedded database server, and the HTTP API."""

import os
from typing import Annotated

import typer

from rag_resources.cli.output import JsonOption, address, say, warn, working, write_json
from rag_resources.cli.session import application, read_settings
from rag_resources.languages.messages import _


def up(as_json: JsonOption = False) -> None:
    """Start the embedded server and migrate the schema."""
    from rag_resources.database.locate import database_url, direct_url, embedded_server
    from rag_resources.database.migrations import migrate

    settings = read_settings()
    with working(_("Opening the database…")):
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
        say(
            _("Own database (DATABASE_URL): PostgreSQL {version} at {address}").format(
                version=server_version(url), address=address(url)
            )
        )
    else:
        state = embedded_server(settings).status()
        say(
            _("Embedded PostgreSQL {version}, running at {address}. Data: {path}").format(
                version=state.version, address=address(url), path=state.data_dir
            )
        )
    if applied:
        say(_("Schema brought up to date: {migrations}.").format(migrations=", ".join(applied)))
    else:
        say(_("The schema is up to date."))


def down(
    force: Annotated[
        bool,
        typer.Option("--force", help=_("Stop it although something that is running needs it.")),
    ] = False,
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
        raise InvalidParameterError(
            _(
                "Nothing was stopped: these need the embedded PostgreSQL and are running (with "
                "their process): {programs}. Stop them first (Ctrl+C, or kill with the process's "
                "number), or use --force."
            ).format(programs=named)
        )
    if as_json:
        server.down()
        write_json({"stopped": state.running, "dataDir": str(state.data_dir)})
        return
    if settings.database_url:
        url = settings.database_url.get_secret_value()
        say(
            _(
                "DATABASE_URL points to a server of your own ({address}), which this command does "
                "not stop."
            ).format(address=address(url))
        )
    if state.running:
        server.down()
        say(_("Embedded PostgreSQL stopped. The data stay in {path}").format(path=state.data_dir))
    elif not settings.database_url:
        say(_("The embedded PostgreSQL was not running."))


def serve(
    host: Annotated[str | None, typer.Option(help=_("Instead of API_HOST."))] = None,
    port: Annotated[int | None, typer.Option(help=_("Instead of API_PORT."))] = None,
    workers: Annotated[int | None, typer.Option(help=_("Instead of API_WORKERS."))] = None,
) -> None:
    """Serve the HTTP API; the options are passed on to its processes by the environment."""
    from rag_resources.api.running import COMMAND, DEFAULT_PORT, check_exposure, free_port
    from rag_resources.api.running import serve as serve_until_stopped
    from rag_resources.programs import announced

    given = {"API_HOST": host, "API_PORT": port, "API_WORKERS": workers}
    os.environ.update({name: str(value) for name, value in given.items() if value is not None})
    settings = read_settings()
    bound = free_port(settings)
    with working(_("Opening the database…")), application() as opened:
        is_open = check_exposure(settings, opened)
    if settings.api_port is None and bound != DEFAULT_PORT:
        warn(_("Port {default} is taken; {port} is used.").format(default=DEFAULT_PORT, port=bound))
    if is_open:
        warn(
            _(
                "There are no keys: this machine is answered without one, and no other. Create "
                "one with rag key create NAME."
            )
        )
    say(
        _(
            "The API listens on http://{host}:{port} (documentation at /docs). Ctrl+C stops it."
        ).format(host=settings.api_host, port=bound)
    )
    address = f"http://{settings.api_host}:{bound}"
    with announced(settings.rag_home, COMMAND, address=address):
        serve_until_stopped(settings, bound)


def server_version(url: str) -> str:
    """Ask a server for its version, such as `16.4`."""
    from rag_resources.database.migrations import connect

    with connect(url) as connection:
        return (connection.info.parameter_status("server_version") or "").partition(" ")[0]
