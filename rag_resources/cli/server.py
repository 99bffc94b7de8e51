"""`rag up|down`: the database server; `rag serve|run|ui|dagster`: the programs on it."""

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from rag_resources.cli.output import (
    JsonOption,
    MixesOption,
    SampleOption,
    conclude,
    is_quiet,
    say,
    warn,
    working,
    write_json,
)
from rag_resources.cli.session import application, read_settings
from rag_resources.cli.usage import ENV_FILE_TOLD, PassedOn
from rag_resources.core.errors import InvalidParameterError
from rag_resources.languages.messages import _

if TYPE_CHECKING:
    from rag_resources.settings import Settings

PROGRAM = "rag_assets"
FORGETTING_S = 3600.0
"""Time limit, enough for thousands of runs: Dagster deletes the events of each run separately."""


def up(as_json: JsonOption = False) -> None:
    """Start the embedded server and migrate the schema."""
    from rag_resources.cli.status import find_server, server_in_words
    from rag_resources.database.locate import database_url, direct_url
    from rag_resources.database.migrations import migrate

    settings = read_settings()
    with working(_("Opening the database…")):
        database_url(settings)
        applied = list(migrate(direct_url(settings)))
    server, __ = find_server(settings)
    if as_json:
        names = ("version", "address", "embedded")
        write_json({name: server[name] for name in names} | {"applied": applied})
        return
    say(server_in_words(server))
    if applied:
        say(_("Schema brought up to date."))


def down(
    force: Annotated[
        bool, typer.Option("--force", help=_("Stop it although something that runs needs it."))
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Stop the embedded server, unless programs that need it run."""
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
                "Nothing was stopped: these need the embedded PostgreSQL: {programs}. Stop them "
                "first, or use --force."
            ).format(programs=named)
        )
    if state.running:
        server.down()
    message = (
        _("Embedded PostgreSQL stopped. The data stay in {path}").format(path=state.data_dir)
        if state.running
        else _("The embedded PostgreSQL was not running.")
    )
    conclude(message, {"stopped": state.running, "dataDir": state.data_dir}, as_json=as_json)


def serve(
    host: Annotated[
        str | None, typer.Option(help=_("Instead of {setting}.").format(setting="API_HOST"))
    ] = None,
    port: Annotated[
        int | None, typer.Option(help=_("Instead of {setting}.").format(setting="API_PORT"))
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help=_("Instead of {setting}.").format(setting="API_WORKERS"))
    ] = None,
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
        warn(_("There are no keys: only this machine is answered. “rag key create NAME”."))
    address = f"http://{settings.api_host}:{bound}"
    say(_("The API listens on {address}. Ctrl+C stops it.").format(address=address))
    with announced(settings.rag_home, COMMAND, address=address):
        serve_until_stopped(settings, bound)


def run(sample: SampleOption = False, yes: MixesOption = False) -> None:
    """Replace this process by the main job."""
    flags = {"--sample": sample, "--yes": yes, "--quiet": is_quiet()}
    _become("run", *(flag for flag, given in flags.items() if given))


def ui() -> None:
    """Replace this process by Dagster's webserver and daemon."""
    _become("ui")


def dagster(arguments: PassedOn = None) -> None:
    """Replace this process by Dagster's command line, with the instance of this RAG_HOME."""
    _become("dagster", *(arguments or []))


def forget_runs(settings: "Settings", tenant: str) -> bool:
    """Delete Dagster's records of a tenant's runs; False if some may be left."""
    if not (settings.instance_folder / "dagster.yaml").exists():
        return True  # Nothing ever ran here.
    command = [sys.executable, "-m", PROGRAM, "forget", "--", tenant]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, timeout=FORGETTING_S, check=False)  # noqa: S603 - no shell
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def _become(*arguments: str) -> None:
    """Replace this process, so that signals and the exit code are those of the program."""
    sys.stdout.flush()
    sys.stderr.flush()
    command = [sys.executable, "-m", PROGRAM, *arguments]
    os.execve(sys.executable, command, {**os.environ, ENV_FILE_TOLD: "1"})  # noqa: S606 - our own program
